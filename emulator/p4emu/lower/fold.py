"""Builds IR expressions, folding those whose operands are constants.

The front end folds what the source alone decides. What is left for here depends on the instance:
constructor parameters, constant arguments of inlined calls. Only folds that shorten: no algebra,
LLVM does that better.

Each function builds the node of its name; `constant` makes a literal and wraps it to its type.
"""

from __future__ import annotations

from p4emu.ir.nodes import (
    BOOL,
    Binary,
    BinaryOp,
    Bits,
    Bool,
    Cast,
    Concat,
    Const,
    Expr,
    Mux,
    Slice,
    Type,
    Unary,
)

TRUE = Const(1, BOOL)
FALSE = Const(0, BOOL)

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})


def wrap(value: int, type_: Type) -> int:
    """`value` reduced to the range of `type_`, in two's complement."""
    if isinstance(type_, Bool):
        return value & 1
    value &= (1 << type_.width) - 1
    if type_.signed and value >> (type_.width - 1):
        value -= 1 << type_.width
    return value


def constant(value: int, type_: Type) -> Const:
    """A literal of `type_`, wrapped to its range."""
    return Const(wrap(value, type_), type_)


def pattern(value: int, width: int) -> int:
    """The bit pattern of a possibly negative value as a number of `width` bits."""
    return value & ((1 << width) - 1)


def unary(op: str, operand: Expr) -> Expr:
    """`-`, `~` or `!`."""
    if isinstance(operand, Const):
        value = {"-": -operand.value, "~": ~operand.value, "!": operand.value ^ 1}[op]
        return constant(value, operand.type)
    if op == "!" and isinstance(operand, Unary) and operand.op == "!":
        return operand.operand
    return Unary(op, operand, operand.type)  # type: ignore[arg-type]


def binary(op: BinaryOp, left: Expr, right: Expr) -> Expr:
    """Any binary operator but `++`; operand types must already agree as `ir.Binary` demands."""
    type_ = BOOL if op in _COMPARISONS else left.type
    if isinstance(left, Const) and isinstance(right, Const):
        value = _evaluate(op, left.value, right.value, left.type)
        if value is not None:
            return constant(value, type_)
    if op == "&&":
        if isinstance(left, Const):
            return right if left.value else FALSE
        if isinstance(right, Const) and right.value:
            return left
    elif op == "||":
        if isinstance(left, Const):
            return TRUE if left.value else right
        if isinstance(right, Const) and not right.value:
            return left
    return Binary(op, left, right, type_)


def _evaluate(op: str, left: int, right: int, type_: Type) -> int | None:
    """The mathematical value, to be wrapped by the caller; None for division by zero."""
    if op in ("/", "%"):
        if right == 0:
            return None
        quotient = abs(left) // abs(right)
        if (left < 0) != (right < 0):
            quotient = -quotient
        return quotient if op == "/" else left - quotient * right
    if op in ("<<", ">>"):
        # A distance beyond the width shifts everything out; do not build a huge number for it.
        width = type_.width if isinstance(type_, Bits) else 1
        distance = min(right, width)
        return left << distance if op == "<<" else left >> distance
    if op in ("|+|", "|-|"):
        assert isinstance(type_, Bits)
        value = left + right if op == "|+|" else left - right
        low = -(1 << (type_.width - 1)) if type_.signed else 0
        high = low + (1 << type_.width) - 1
        return max(low, min(high, value))
    return int(
        {
            "+": left + right,
            "-": left - right,
            "*": left * right,
            "&": left & right,
            "|": left | right,
            "^": left ^ right,
            "==": left == right,
            "!=": left != right,
            "<": left < right,
            "<=": left <= right,
            ">": left > right,
            ">=": left >= right,
            "&&": left and right,
            "||": left or right,
        }[op]
    )


def cast(operand: Expr, type_: Type) -> Expr:
    """To another width, signedness, or between bool and bit<1>; nothing when it is that already."""
    if operand.type == type_:
        return operand
    if isinstance(operand, Const):
        return constant(operand.value, type_)
    return Cast(operand, type_)


def slice_(operand: Expr, hi: int, lo: int) -> Expr:
    """operand[hi:lo]; the whole of an unsigned operand is the operand."""
    type_ = operand.type
    assert isinstance(type_, Bits)
    if lo == 0 and hi == type_.width - 1:
        return cast(operand, Bits(type_.width))
    if isinstance(operand, Const):
        return constant(operand.value >> lo, Bits(hi - lo + 1))
    return Slice(operand, hi, lo)


def concat(left: Expr, right: Expr) -> Expr:
    """left ++ right."""
    assert isinstance(left.type, Bits)
    assert isinstance(right.type, Bits)
    type_ = Bits(left.type.width + right.type.width, left.type.signed)
    if isinstance(left, Const) and isinstance(right, Const):
        low = pattern(right.value, right.type.width)
        return constant(left.value << right.type.width | low, type_)
    return Concat(left, right, type_)


def mux(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    """condition ? then : otherwise."""
    if isinstance(condition, Const):
        return then if condition.value else otherwise
    return Mux(condition, then, otherwise)
