"""IR expressions to LLVM values. A value of `bit<W>`, `int<W>` or `bool` is an `iW` or `i1`.

LLVM leaves some operations undefined that P4 defines, or that must at least not be undefined here:
shifts by the width or more give 0 (or the sign), division by zero gives 0, and the quotient of the
smallest number and -1 wraps. Every operation below is total.

Entry point: `ExpressionEmitter.value`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir as ll

from p4emu.ir.nodes import (
    Binary,
    Bits,
    Cast,
    Concat,
    Const,
    Expr,
    Lookahead,
    Mux,
    Read,
    Slice,
    Type,
    Unary,
)
from p4emu.jit.division import WIDEST_INSTRUCTION, divide_wide
from p4emu.jit.errors import UnsupportedNodeError
from p4emu.jit.frame import Frame, int_type, llvm_type
from p4emu.jit.layout import width_of
from p4emu.jit.wire import fit, shift_left, shift_right

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})


def is_signed(type_: Type) -> bool:
    """Whether a type is `int<W>`."""
    return isinstance(type_, Bits) and type_.signed


class ExpressionEmitter:
    """Emits expressions at the frame's current place.

    `lookahead` is what parsers do for `Lookahead`; elsewhere there is none.
    """

    def __init__(self, frame: Frame, lookahead: Callable[[Lookahead], Any] | None = None) -> None:
        self._frame = frame
        self._lookahead = lookahead

    def value(self, expr: Expr) -> Any:
        """The value of `expr`."""
        builder = self._frame.builder
        if isinstance(expr, Read):
            return self._frame.read(expr.var)
        if isinstance(expr, Const):
            return constant(expr.value, expr.type)
        if isinstance(expr, Binary):
            return self._binary(expr)
        if isinstance(expr, Unary):
            operand = self.value(expr.operand)
            return builder.neg(operand) if expr.op == "-" else builder.not_(operand)
        if isinstance(expr, Cast):
            return self._cast(expr)
        if isinstance(expr, Slice):
            operand = shift_right(builder, self.value(expr.operand), expr.lo)
            return fit(builder, operand, expr.hi - expr.lo + 1)
        if isinstance(expr, Concat):
            left, right = self.value(expr.left), self.value(expr.right)
            width = left.type.width + right.type.width
            high = shift_left(builder, fit(builder, left, width), right.type.width)
            return builder.or_(high, fit(builder, right, width))
        if isinstance(expr, Mux):
            condition = self.value(expr.condition)
            then, otherwise = self.value(expr.then), self.value(expr.otherwise)
            return builder.select(condition, then, otherwise)
        if isinstance(expr, Lookahead) and self._lookahead is not None:
            return self._lookahead(expr)
        raise UnsupportedNodeError(expr, "an expression")

    # --- casts ---

    def _cast(self, expr: Cast) -> Any:
        operand = self.value(expr.operand)
        width = width_of(expr.type)
        if width > operand.type.width and is_signed(expr.operand.type):
            return self._frame.builder.sext(operand, int_type(width))
        return fit(self._frame.builder, operand, width)

    # --- binary operations ---

    def _binary(self, expr: Binary) -> Any:
        builder = self._frame.builder
        left, right = self.value(expr.left), self.value(expr.right)
        signed = is_signed(expr.left.type)
        op = expr.op
        if op in _COMPARISONS:
            compare = builder.icmp_signed if signed else builder.icmp_unsigned
            return compare(op, left, right)
        if op in ("&&", "&"):
            return builder.and_(left, right)
        if op in ("||", "|"):
            return builder.or_(left, right)
        if op == "^":
            return builder.xor(left, right)
        if op == "+":
            return builder.add(left, right)
        if op == "-":
            return builder.sub(left, right)
        if op == "*":
            return builder.mul(left, right)
        if op in ("|+|", "|-|"):
            return self._saturating(op, left, right, signed)
        if op in ("<<", ">>"):
            return self._shift(op, left, right, signed)
        if op in ("/", "%"):
            return self._divide(op, left, right, signed)
        raise UnsupportedNodeError(expr, f"an expression ({op})")

    def _saturating(self, op: str, left: Any, right: Any, signed: bool) -> Any:
        name = ("s" if signed else "u") + ("add" if op == "|+|" else "sub") + ".sat"
        return self._frame.builder.call(self._frame.intrinsic(name, left.type, 2), [left, right])

    def _shift(self, op: str, left: Any, right: Any, signed: bool) -> Any:
        builder = self._frame.builder
        width = left.type.width
        if isinstance(right, ll.Constant):
            return self._shift_constant(op, left, int(right.constant), signed)
        if right.type.width < (width - 1).bit_length() + 1:
            # The amount's type cannot reach the width; or the comparison below needs more bits.
            right = fit(builder, right, (width - 1).bit_length() + 1)
        too_far = builder.icmp_unsigned(">=", right, ll.Constant(right.type, width))
        last = ll.Constant(right.type, width - 1)
        amount = fit(builder, builder.select(too_far, last, right), width)
        if op == ">>" and signed:
            return builder.ashr(left, amount)
        shifted = builder.shl(left, amount) if op == "<<" else builder.lshr(left, amount)
        return builder.select(too_far, ll.Constant(left.type, 0), shifted)

    def _shift_constant(self, op: str, left: Any, amount: int, signed: bool) -> Any:
        builder = self._frame.builder
        width = left.type.width
        if op == ">>" and signed:
            return builder.ashr(left, ll.Constant(left.type, min(amount, width - 1)))
        if amount >= width:
            return ll.Constant(left.type, 0)
        shift = shift_left if op == "<<" else shift_right
        return shift(builder, left, amount)

    def _divide(self, op: str, left: Any, right: Any, signed: bool) -> Any:
        builder = self._frame.builder
        type_ = left.type
        zero, one = ll.Constant(type_, 0), ll.Constant(type_, 1)
        by_zero = builder.icmp_unsigned("==", right, zero)
        divisor = builder.select(by_zero, one, right)
        # Signed division is done with one bit more, see below.
        if type_.width + signed > WIDEST_INSTRUCTION:
            result = divide_wide(self._frame, op, left, divisor, signed)
        elif signed:
            result = self._divide_signed(op, left, divisor)
        elif op == "/":
            result = builder.udiv(left, divisor)
        else:
            result = builder.urem(left, divisor)
        return builder.select(by_zero, zero, result)

    def _divide_signed(self, op: str, left: Any, divisor: Any) -> Any:
        builder = self._frame.builder
        # One more bit, so that the smallest number divided by -1 does not trap.
        wide = int_type(left.type.width + 1)
        left, divisor = builder.sext(left, wide), builder.sext(divisor, wide)
        result = builder.sdiv(left, divisor) if op == "/" else builder.srem(left, divisor)
        return builder.trunc(result, int_type(wide.width - 1))


def constant(value: int, type_: Type) -> Any:
    """A literal as an LLVM constant; negative numbers in two's complement."""
    return ll.Constant(llvm_type(type_), value & ((1 << width_of(type_)) - 1))
