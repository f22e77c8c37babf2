"""Arithmetic of compile-time constants: exact integers, wrapped where a type has a width.

Pure functions over Python values. They return None where there is no value (division by zero) and
raise `TooLarge` where exact integers would grow without bounds.
"""

from __future__ import annotations

from p4emu.frontend import ast
from p4emu.frontend.program import Constant
from p4emu.frontend.types import BitsType, Type

MAX_BITS = 1 << 17
"""Bits of any integer at compile time."""


class TooLarge(Exception):
    """An integer beyond MAX_BITS."""


def wrap(value: int, type_: Type) -> int:
    """`value` reduced to the range of a BitsType in two's complement; unchanged for others."""
    if not isinstance(type_, BitsType):
        if value.bit_length() > MAX_BITS:
            raise TooLarge
        return value
    value &= (1 << type_.width) - 1
    if type_.signed and value >> (type_.width - 1):
        value -= 1 << type_.width
    return value


def fits(value: int, type_: BitsType) -> bool:
    """Whether the type has this value; for `bit<W>` also negative ones of W bits are let pass."""
    if type_.signed:
        return -(1 << (type_.width - 1)) <= value < 1 << (type_.width - 1)
    return -(1 << (type_.width - 1)) <= value < 1 << type_.width


def unary(operator: ast.UnaryOperator, value: Constant, type_: Type) -> Constant | None:
    """`!` of a bool, `-`, `+`, `~` of an integer of `type_`."""
    if operator == "!":
        return not value
    if not isinstance(value, int):
        return None
    return wrap({"-": -value, "+": value, "~": ~value}[operator], type_)


def binary(
    operator: ast.BinaryOperator, left: Constant, right: Constant, type_: Type, right_type: Type
) -> Constant | None:
    """Any operator on operands of `type_`; `right_type` differs in shifts and `++`."""
    if operator in ("==", "!="):
        return (left == right) == (operator == "==")
    if operator == "&&":
        return bool(left) and bool(right)
    if operator == "||":
        return bool(left) or bool(right)
    if isinstance(left, str) and isinstance(right, str):
        return left + right if operator == "++" else None
    if not isinstance(left, int) or not isinstance(right, int):
        return None
    if operator in ("<", "<=", ">", ">="):
        return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[
            operator
        ]
    if operator == "++":
        if not isinstance(type_, BitsType) or not isinstance(right_type, BitsType):
            return None
        low = right & ((1 << right_type.width) - 1)
        result = BitsType(type_.width + right_type.width, type_.signed)
        return wrap((left << right_type.width) | low, result)
    if operator in ("<<", ">>"):
        return _shift(operator, left, right, type_)
    if operator in ("/", "%"):
        if right == 0:
            return None
        quotient = abs(left) // abs(right)
        if (left < 0) != (right < 0):
            quotient = -quotient
        return wrap(quotient if operator == "/" else left - quotient * right, type_)
    if operator in ("|+|", "|-|"):
        if not isinstance(type_, BitsType):
            return None
        value = left + right if operator == "|+|" else left - right
        low = -(1 << (type_.width - 1)) if type_.signed else 0
        return max(low, min(low + (1 << type_.width) - 1, value))
    if operator == "*" and left.bit_length() + right.bit_length() > MAX_BITS:
        raise TooLarge
    return wrap(
        {
            "+": lambda: left + right,
            "-": lambda: left - right,
            "*": lambda: left * right,
            "&": lambda: left & right,
            "|": lambda: left | right,
            "^": lambda: left ^ right,
        }[operator](),
        type_,
    )


def _shift(operator: str, left: int, right: int, type_: Type) -> int | None:
    if right < 0:
        return None
    if isinstance(type_, BitsType):
        right = min(right, type_.width)
    elif operator == "<<" and left.bit_length() + right > MAX_BITS:
        raise TooLarge
    else:
        right = min(right, MAX_BITS)
    return wrap(left << right if operator == "<<" else left >> right, type_)


def bits(value: int, high: int, low: int) -> int:
    """value[high:low] as an unsigned number."""
    return (value >> low) & ((1 << (high - low + 1)) - 1)
