"""What IR expressions mean, in Python integers: the reference that machine code is compared with.

Values are numbers as P4 sees them: `int<W>` from -2^(W-1), `bit<W>` and bool from 0. Also the
hypothesis strategies that make random well-typed expressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from p4emu.ir.nodes import (
    BOOL,
    Binary,
    Bits,
    Bool,
    Cast,
    Concat,
    Const,
    Expr,
    Mux,
    Read,
    Slice,
    Type,
    Unary,
    Var,
)


def width_of(type_: Type) -> int:
    return type_.width if isinstance(type_, Bits) else 1


def wrap(value: int, type_: Type) -> int:
    """The number of `type_` with the same low bits."""
    width = width_of(type_)
    value &= (1 << width) - 1
    if isinstance(type_, Bits) and type_.signed and value >> (width - 1):
        value -= 1 << width
    return value


def clamp(value: int, type_: Bits) -> int:
    low = -(1 << (type_.width - 1)) if type_.signed else 0
    return min(max(value, low), low + (1 << type_.width) - 1)


def evaluate(expr: Expr, values: Mapping[Var, int]) -> int:
    """The value of `expr`."""
    if isinstance(expr, Const):
        return wrap(expr.value, expr.type)
    if isinstance(expr, Read):
        return values[expr.var]
    if isinstance(expr, Unary):
        operand = evaluate(expr.operand, values)
        return wrap({"-": -operand, "~": ~operand, "!": operand ^ 1}[expr.op], expr.type)
    if isinstance(expr, Cast):
        return wrap(evaluate(expr.operand, values), expr.type)
    if isinstance(expr, Slice):
        return wrap(evaluate(expr.operand, values) >> expr.lo, expr.type)
    if isinstance(expr, Concat):
        right = width_of(expr.right.type)
        low = evaluate(expr.right, values) & ((1 << right) - 1)
        return wrap((evaluate(expr.left, values) << right) | low, expr.type)
    if isinstance(expr, Mux):
        chosen = expr.then if evaluate(expr.condition, values) else expr.otherwise
        return evaluate(chosen, values)
    assert isinstance(expr, Binary)
    return binary(expr, evaluate(expr.left, values), evaluate(expr.right, values))


def binary(expr: Binary, left: int, right: int) -> int:
    op, type_ = expr.op, expr.type
    if op == "==":
        return int(left == right)
    if op == "!=":
        return int(left != right)
    if op == "<":
        return int(left < right)
    if op == "<=":
        return int(left <= right)
    if op == ">":
        return int(left > right)
    if op == ">=":
        return int(left >= right)
    if op in ("&&", "&"):
        return wrap(left & right, type_)
    if op in ("||", "|"):
        return wrap(left | right, type_)
    if op == "^":
        return wrap(left ^ right, type_)
    assert isinstance(type_, Bits)
    if op == "|+|":
        return clamp(left + right, type_)
    if op == "|-|":
        return clamp(left - right, type_)
    if op == "<<":
        return wrap(left << right, type_) if right < type_.width else 0
    if op == ">>":
        return left >> min(right, type_.width)
    if op in ("/", "%"):
        if right == 0:
            return 0
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return wrap(quotient if op == "/" else left - quotient * right, type_)
    return wrap({"+": left + right, "-": left - right, "*": left * right}[op], type_)


# --- random expressions ------------------------------------------------------------------------

_EDGE_WIDTHS = [1, 8, 16, 31, 32, 33, 48, 64, 65, 128, 129]
WIDTHS = st.one_of(st.sampled_from(_EDGE_WIDTHS), st.integers(1, 130))
BITS = st.builds(Bits, WIDTHS, st.booleans())


def numbers(type_: Type) -> st.SearchStrategy[int]:
    """Values of a type, the extremes often."""
    width = width_of(type_)
    edges = [0, 1, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1]
    raw = st.one_of(st.sampled_from(edges), st.integers(0, (1 << width) - 1), st.integers(0, 140))
    return raw.map(lambda value: wrap(value, type_))


@st.composite
def expressions(draw: st.DrawFn, type_: Type, variables: Sequence[Var], depth: int) -> Expr:
    """A well-typed expression of `type_` over `variables` and constants."""
    own = [var for var in variables if var.type == type_]
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        if own and draw(st.booleans()):
            return Read(draw(st.sampled_from(own)))
        if variables and draw(st.integers(0, 3)) > 0:
            return cast(Read(draw(st.sampled_from(list(variables)))), type_)
        return Const(draw(numbers(type_)), type_)

    def inner(of: Type) -> Expr:
        return draw(expressions(of, variables, depth - 1))

    if isinstance(type_, Bool):
        kind = draw(st.sampled_from(["compare", "logic", "not", "mux"]))
        if kind == "compare":
            operand = draw(BITS)
            op = draw(st.sampled_from(["==", "!=", "<", "<=", ">", ">="]))
            return Binary(op, inner(operand), inner(operand), BOOL)
        if kind == "logic":
            op = draw(st.sampled_from(["&&", "||", "==", "!="]))
            return Binary(op, inner(BOOL), inner(BOOL), BOOL)
        if kind == "not":
            return Unary("!", inner(BOOL), BOOL)
        return Mux(inner(BOOL), inner(BOOL), inner(BOOL))
    kinds = ["arithmetic", "shift", "unary", "cast", "mux"]
    if not type_.signed:
        kinds.append("slice")
    if type_.width > 1:
        kinds.append("concat")
    kind = draw(st.sampled_from(kinds))
    if kind == "arithmetic":
        op = draw(st.sampled_from(["+", "-", "*", "/", "%", "|+|", "|-|", "&", "|", "^"]))
        return Binary(op, inner(type_), inner(type_), type_)
    if kind == "shift":
        amount = Bits(draw(st.integers(1, 130)))
        return Binary(draw(st.sampled_from(["<<", ">>"])), inner(type_), inner(amount), type_)
    if kind == "unary":
        return Unary(draw(st.sampled_from(["-", "~"])), inner(type_), type_)
    if kind == "cast":
        return Cast(inner(draw(BITS)), type_)
    if kind == "slice":
        operand = draw(st.builds(Bits, st.integers(type_.width, 130), st.booleans()))
        low = draw(st.integers(0, operand.width - type_.width))
        return Slice(inner(operand), low + type_.width - 1, low)
    if kind == "concat":
        left = draw(st.integers(1, type_.width - 1))
        right = Bits(type_.width - left, draw(st.booleans()))
        return Concat(inner(Bits(left, type_.signed)), inner(right), type_)
    return Mux(inner(BOOL), inner(type_), inner(type_))


def cast(expr: Expr, type_: Type) -> Expr:
    """`expr` as `type_`, through bit<1> where bool is on one side."""
    if expr.type == type_:
        return expr
    if BOOL in (expr.type, type_):
        one = Cast(expr, Bits(1))
        return one if type_ == Bits(1) else Cast(one, type_)
    return Cast(expr, type_)
