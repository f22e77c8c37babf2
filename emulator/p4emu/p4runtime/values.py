"""Integers as P4Runtime's byte strings and back (P4Runtime Specification, section 8.4).

A value is sent as the shortest big-endian string that holds it, at least one byte; `int<W>` in
two's complement. Longer strings are understood, values that do not fit are refused. Nothing here
knows what the values are for; `what` names them in messages.
"""

from __future__ import annotations

from p4emu.errors import SwitchError


def encode(value: int) -> bytes:
    """The canonical string of a `bit<W>` value."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def encode_signed(pattern: int, width: int) -> bytes:
    """The canonical string of an `int<W>`, given the `width` bits of its two's complement."""
    value = pattern - (1 << width) if pattern >> (width - 1) else pattern
    # One bit more than the magnitude, for the sign; ~value has the magnitude of a negative one.
    bits = (~value if value < 0 else value).bit_length() + 1
    return value.to_bytes((bits + 7) // 8, "big", signed=True)


def decode(data: bytes, width: int, what: str) -> int:
    """The value of a `bit<W>`.

    Raises
    ------
    SwitchError
        INVALID_ARGUMENT: the string is empty. OUT_OF_RANGE: the value has more than `width` bits.
    """
    _check_length(data, what)
    value = int.from_bytes(data, "big")
    if value >> width:
        raise SwitchError("OUT_OF_RANGE", f"{what}: {_shown(data)} does not fit bit<{width}>")
    return value


def decode_signed(data: bytes, width: int, what: str) -> int:
    """The `width` bits of the two's complement of an `int<W>`; raises as `decode` does."""
    _check_length(data, what)
    value = int.from_bytes(data, "big", signed=True)
    if not -(1 << (width - 1)) <= value < 1 << (width - 1):
        raise SwitchError("OUT_OF_RANGE", f"{what}: {_shown(data)} does not fit int<{width}>")
    return value & ((1 << width) - 1)


def _check_length(data: bytes, what: str) -> None:
    if not data:
        raise SwitchError(
            "INVALID_ARGUMENT", f"{what}: the byte string is empty; zero is sent as one zero byte"
        )


def _shown(data: bytes, limit: int = 32) -> str:
    return f"0x{data[:limit].hex()}{'...' if len(data) > limit else ''}"
