"""Checksums and hashes agree with their definitions over the byte string of their fields."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jit_rig import Rig, crc16, header, packet_var, program
from scapy.utils import checksum

from p4emu.ir.nodes import (
    Assign,
    Binary,
    Bits,
    Cast,
    ChecksumAlgorithm,
    Concat,
    Const,
    Expr,
    Hash,
    Read,
    Var,
)

WIDTHS: dict[ChecksumAlgorithm, int] = {
    "csum16": 16,
    "crc16": 16,
    "crc32": 32,
    "identity": 64,
    "xor16": 16,
}


def packed(values: Sequence[tuple[int, int]]) -> bytes:
    """(value, width) pairs as a byte string, zero-padded at the end."""
    bits, length = 0, 0
    for value, width in values:
        bits, length = bits << width | value, length + width
    return (bits << (-length % 8)).to_bytes((length + 7) // 8, "big")


def expected(algorithm: ChecksumAlgorithm, data: bytes) -> int:
    if algorithm == "csum16":
        return int(checksum(data))
    if algorithm == "crc16":
        return crc16(data)
    if algorithm == "crc32":
        return zlib.crc32(data)
    if algorithm == "identity":
        return int.from_bytes(data[:8], "big")
    words = data + bytes(len(data) % 2)
    result = 0
    for index in range(0, len(words), 2):
        result ^= int.from_bytes(words[index : index + 2], "big")
    return result


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.sampled_from([1, 8, 16, 32, 48, 64]), st.integers(1, 140)),
            st.sampled_from([1, 1, 2, 15, 17]),
        ),
        min_size=0,
        max_size=5,
    ),
    st.data(),
)
def test_all_algorithms_over_any_fields(shape: list[tuple[int, int]], data: st.DataObject) -> None:
    widths = [width for width, count in shape for _ in range(count)]
    variables = [packet_var(f"meta.v{n}", Bits(width)) for n, width in enumerate(widths)]
    targets = {name: packet_var(f"meta.{name}", Bits(width)) for name, width in WIDTHS.items()}
    parts = tuple(Read(var) for var in variables)
    rig = Rig(
        program(
            variables=[*variables, *targets.values()],
            ingress=[Hash(target, name, parts) for name, target in targets.items()],
        )
    )
    seed = data.draw(st.randoms(use_true_random=False))
    for pattern in ("zero", "ones", "random"):
        values = [
            {"zero": 0, "ones": (1 << w) - 1, "random": seed.getrandbits(w)}[pattern]
            for w in widths
        ]
        rig.ingress(values=dict(zip(variables, values, strict=True)))
        string = packed(list(zip(values, widths, strict=True)))
        got = {name: rig.get(target) for name, target in targets.items()}
        assert got == {name: expected(name, string) for name in WIDTHS}


@pytest.mark.parametrize("element", [16, 32, 64])
@pytest.mark.parametrize("count", [15, 16, 31, 33, 256])
@pytest.mark.parametrize("lead", [0, 4, 8])
def test_arrays_of_header_fields(element: int, count: int, lead: int) -> None:
    """The vector path, whole and with a remainder, aligned to 16 bits and not."""
    head = header("hdr.h", [element] * count)
    result = packet_var("meta.sum", Bits(16))
    first = [Const(5, Bits(lead))] if lead else []
    parts: tuple[Expr, ...] = (*first, *(Read(field) for field in head.fields))
    rig = Rig(program(headers=[head], variables=[result], ingress=[Hash(result, "csum16", parts)]))
    for frame in (
        bytes(count * element // 8),
        b"\xff" * (count * element // 8),
        bytes((n * 151 + 7) & 0xFF for n in range(count * element // 8)),
    ):
        rig.ingress(frame)
        string = packed([(5, lead)] * bool(lead) + [(byte, 8) for byte in frame])
        assert rig.get(result) == checksum(string)


def test_a_checksum_sees_assignments_before_it() -> None:
    head = header("hdr.h", [32] * 32)
    result = packet_var("meta.sum", Bits(16))
    body = [
        Assign(head.fields[7], Const(0xDEADBEEF, Bits(32))),
        Hash(result, "csum16", tuple(Read(field) for field in head.fields)),
        Assign(head.fields[7], Const(0, Bits(32))),
    ]
    rig = Rig(program(headers=[head], variables=[result], ingress=body))
    frame = bytearray(range(128))
    rig.ingress(bytes(frame))
    frame[28:32] = b"\xde\xad\xbe\xef"
    assert rig.get(result) == checksum(bytes(frame))


def test_hashes_take_expressions_and_signed_values() -> None:
    value = packet_var("meta.value", Bits(8, signed=True))
    result = packet_var("meta.sum", Bits(16))
    doubled: Expr = Binary("+", Read(value), Read(value), Bits(8, signed=True))
    wide = Cast(Read(value), Bits(32, signed=True))
    data: tuple[Expr, ...] = (doubled, Concat(Const(3, Bits(4)), Const(9, Bits(4)), Bits(8)), wide)
    variables: list[Var] = [value, result]
    rig = Rig(program(variables=variables, ingress=[Hash(result, "csum16", data)]))
    rig.ingress(values={value: -3})
    assert rig.get(result) == checksum(b"\xfa\x39\xff\xff\xff\xfd")
