"""Byte strings: the canonical form, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4emu.errors import SwitchError
from p4emu.p4runtime.values import decode, decode_signed, encode, encode_signed


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, b"\x00"), (1, b"\x01"), (255, b"\xff"), (256, b"\x01\x00"), (0x63, b"\x63")],
)
def test_unsigned_values_have_the_shortest_form(value: int, data: bytes) -> None:
    assert encode(value) == data


@pytest.mark.parametrize(
    ("value", "width", "data"),
    [
        (0, 8, b"\x00"),
        (99, 8, b"\x63"),
        (-99, 8, b"\x9d"),
        (-1, 32, b"\xff"),
        (-128, 8, b"\x80"),
        (128, 12, b"\x00\x80"),
        (-739, 12, b"\xfd\x1d"),
    ],
)
def test_signed_values_have_the_shortest_twos_complement(
    value: int, width: int, data: bytes
) -> None:
    assert encode_signed(value & ((1 << width) - 1), width) == data
    assert decode_signed(data, width, "x") == value & ((1 << width) - 1)


@given(st.integers(1, 200).flatmap(lambda w: st.tuples(st.just(w), st.integers(0, (1 << w) - 1))),
       st.integers(0, 3))  # fmt: skip
def test_every_value_survives_with_any_padding(case: tuple[int, int], padding: int) -> None:
    width, pattern = case
    assert decode(bytes(padding) + encode(pattern), width, "x") == pattern
    signed = encode_signed(pattern, width)
    fill = b"\xff" if signed[0] & 0x80 else b"\x00"
    assert decode_signed(fill * padding + signed, width, "x") == pattern
    if len(signed) > 1:  # one byte less has another value
        assert int.from_bytes(signed[1:], "big", signed=True) != int.from_bytes(
            signed, "big", signed=True
        )


@pytest.mark.parametrize("read", [decode, decode_signed])
def test_the_empty_string_is_no_value(read: object) -> None:
    with pytest.raises(SwitchError, match=r"port: the byte string is empty") as caught:
        read(b"", 9, "port")  # type: ignore[operator]
    assert caught.value.code == "INVALID_ARGUMENT"


def test_values_that_do_not_fit_are_out_of_range() -> None:
    with pytest.raises(SwitchError, match=r"port: 0x0200 does not fit bit<9>") as caught:
        decode(b"\x02\x00", 9, "port")
    assert caught.value.code == "OUT_OF_RANGE"
    with pytest.raises(SwitchError, match=r"int<9>"):
        decode_signed(b"\x01\x00", 9, "port")
    with pytest.raises(SwitchError, match=r"\.\.\."):
        decode(b"\x01" * 100_000, 9, "port")
