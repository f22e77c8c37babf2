"""Division of more than 64 bits, for which LLVM may call a library that Python has not loaded.

It calls `__udivti3` and its kin for 65 to 128 bits. Wider divisions it expands inline, but only
after its optimiser has narrowed those whose operands turn out to be small, to 128 bits for one. So
no division instruction wider than a register ever reaches it: a module gets internal functions that
do long division bit by bit, one for each size it needs. Rare, so small is better than fast.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir as ll

from p4emu.jit.frame import I32, Frame, int_type

WIDEST_INSTRUCTION = 64
"""Bits up to which LLVM divides with instructions of the processor."""

# Functions come in multiples of this size, so that neighbouring widths share one.
_GRANULE = 64


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
    bits = -(-type_.width // _GRANULE) * _GRANULE
    if type_.width < bits:
        operands = [builder.zext(operand, int_type(bits)) for operand in operands]
    function = _long_division(frame.module, "quotient" if op == "/" else "remainder", bits)
    result = builder.call(function, operands)
    if type_.width < bits:
        result = builder.trunc(result, type_)
    if signed:
        negative = left_negative
        if op == "/":
            negative = builder.xor(left_negative, right_negative)
        result = builder.select(negative, builder.neg(result), result)
    return result


def _long_division(module: Any, wanted: str, width: int) -> Any:
    name = f"long_division.{wanted}.{width}"
    known = module.globals.get(name)
    if known is not None:
        return known
    operand = int_type(width)
    # The remainder is shifted before it is compared with the divisor.
    wide = int_type(width + 1)
    function = ll.Function(module, ll.FunctionType(operand, [operand, operand]), name)
    function.linkage = "internal"
    function.attributes.add("nounwind")
    function.attributes.add("noinline")
    dividend, divisor = function.args
    entry, loop, done = (function.append_basic_block(name) for name in ("entry", "loop", "done"))
    builder = ll.IRBuilder(entry)
    wide_divisor = builder.zext(divisor, wide)
    builder.branch(loop)

    builder.position_at_end(loop)
    step = builder.phi(I32, "step")
    # Dividend bits leave at the top while quotient bits enter at the bottom.
    bits = builder.phi(operand, "bits")
    remainder = builder.phi(wide, "remainder")
    top = builder.zext(builder.lshr(bits, ll.Constant(operand, width - 1)), wide)
    shifted = builder.or_(builder.shl(remainder, ll.Constant(wide, 1)), top)
    fits = builder.icmp_unsigned(">=", shifted, wide_divisor)
    next_remainder = builder.select(fits, builder.sub(shifted, wide_divisor), shifted)
    next_bits = builder.or_(builder.shl(bits, ll.Constant(operand, 1)), builder.zext(fits, operand))
    next_step = builder.add(step, ll.Constant(I32, 1))
    more = builder.icmp_unsigned("<", next_step, ll.Constant(I32, width))
    builder.cbranch(more, loop, done)
    step.add_incoming(ll.Constant(I32, 0), entry)
    step.add_incoming(next_step, loop)
    bits.add_incoming(dividend, entry)
    bits.add_incoming(next_bits, loop)
    remainder.add_incoming(ll.Constant(wide, 0), entry)
    remainder.add_incoming(next_remainder, loop)

    builder.position_at_end(done)
    if wanted == "quotient":
        builder.ret(next_bits)
    else:
        builder.ret(builder.trunc(next_remainder, operand))
    return function
