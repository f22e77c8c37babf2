"""Division of 65 to 128 bits, for which LLVM would call a library that Python may not have loaded.

(LLVM expands still wider ones inline.) A module that needs it gets one internal function that does
long division bit by bit: rare, so small is better than fast.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir as ll

from p4emu.jit.frame import I8, Frame, int_type

# Widths of the division instructions that LLVM turns into calls.
LIBRARY_DIVISION = range(65, 129)

_BITS = LIBRARY_DIVISION.stop - 1
_OPERAND = int_type(_BITS)
# The remainder is shifted before it is compared with the divisor.
_REMAINDER = int_type(_BITS + 1)


def divide_wide(frame: Frame, op: str, left: Any, right: Any, signed: bool) -> Any:
    """`left / right` or `left % right`, truncating towards zero; `right` is not 0."""
    builder = frame.builder
    type_ = left.type
    if signed:
        zero = ll.Constant(type_, 0)
        left_negative = builder.icmp_signed("<", left, zero)
        right_negative = builder.icmp_signed("<", right, zero)
        left = builder.select(left_negative, builder.neg(left), left)
        right = builder.select(right_negative, builder.neg(right), right)
    operands = [left, right]
    if type_.width < _BITS:
        operands = [builder.zext(operand, _OPERAND) for operand in operands]
    function = _long_division(frame.module, "quotient" if op == "/" else "remainder")
    result = builder.call(function, operands)
    if type_.width < _BITS:
        result = builder.trunc(result, type_)
    if signed:
        negative = left_negative
        if op == "/":
            negative = builder.xor(left_negative, right_negative)
        result = builder.select(negative, builder.neg(result), result)
    return result


def _long_division(module: Any, wanted: str) -> Any:
    name = f"long_division.{wanted}"
    known = module.globals.get(name)
    if known is not None:
        return known
    function = ll.Function(module, ll.FunctionType(_OPERAND, [_OPERAND, _OPERAND]), name)
    function.linkage = "internal"
    function.attributes.add("nounwind")
    dividend, divisor = function.args
    entry, loop, done = (function.append_basic_block(name) for name in ("entry", "loop", "done"))
    builder = ll.IRBuilder(entry)
    wide_divisor = builder.zext(divisor, _REMAINDER)
    builder.branch(loop)

    builder.position_at_end(loop)
    step = builder.phi(I8, "step")
    # Dividend bits leave at the top while quotient bits enter at the bottom.
    bits = builder.phi(_OPERAND, "bits")
    remainder = builder.phi(_REMAINDER, "remainder")
    top = builder.zext(builder.lshr(bits, ll.Constant(_OPERAND, _BITS - 1)), _REMAINDER)
    shifted = builder.or_(builder.shl(remainder, ll.Constant(_REMAINDER, 1)), top)
    fits = builder.icmp_unsigned(">=", shifted, wide_divisor)
    next_remainder = builder.select(fits, builder.sub(shifted, wide_divisor), shifted)
    next_bits = builder.or_(
        builder.shl(bits, ll.Constant(_OPERAND, 1)), builder.zext(fits, _OPERAND)
    )
    next_step = builder.add(step, ll.Constant(I8, 1))
    more = builder.icmp_unsigned("<", next_step, ll.Constant(I8, _BITS))
    builder.cbranch(more, loop, done)
    step.add_incoming(ll.Constant(I8, 0), entry)
    step.add_incoming(next_step, loop)
    bits.add_incoming(dividend, entry)
    bits.add_incoming(next_bits, loop)
    remainder.add_incoming(ll.Constant(_REMAINDER, 0), entry)
    remainder.add_incoming(next_remainder, loop)

    builder.position_at_end(done)
    if wanted == "quotient":
        builder.ret(next_bits)
    else:
        builder.ret(builder.trunc(next_remainder, _OPERAND))
    return function
