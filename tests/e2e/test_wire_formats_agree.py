"""P4, C++ and Scapy have the same headers, bit for bit.

The P4 side is what p4emu's front end reads in p4/include: names, widths and order of the fields.
From these a frame is packed here, with no other knowledge, and compared with the frames that the
C++ core and the Scapy layer build from the same values.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from p4emu import frontend
from p4emu.frontend import ast
from pycollective import _core
from pycollective.contrib import scapy as layer
from pycollective.switch_process import default_program

LANES = 16
ADDRESSES = {
    "source_mac": "02:50:43:00:01:02",
    "destination_mac": "02:50:43:ff:ff:fe",
    "source_ipv4": "10.0.1.3",
    "destination_ipv4": "10.255.255.254",
}


@dataclass(frozen=True)
class Field:
    name: str
    width: int
    signed: bool


@cache
def checked_program() -> frontend.CheckedProgram:
    return frontend.check(default_program(), defines={"INA_LANES": str(LANES)})


def p4_constants(prefix: str) -> dict[str, int]:
    """The program's constants whose names begin so, without that beginning."""
    checked = checked_program()
    found = {}
    for declaration in checked.program.declarations:
        if isinstance(declaration, ast.ConstantDeclaration) and declaration.name.startswith(prefix):
            value = checked.constant(declaration.value)
            assert isinstance(value, int)
            found[declaration.name.removeprefix(prefix)] = value
    return found


@cache
def p4_headers() -> Mapping[str, tuple[Field, ...]]:
    """The fields of every header type of the program, in order of declaration."""
    checked = checked_program()
    return {
        declaration.name: tuple(
            _field(field.name, checked.type_of_ref(field.type)) for field in declaration.fields
        )
        for declaration in checked.program.declarations
        if isinstance(declaration, ast.StructDeclaration) and declaration.kind == "header"
    }


def _field(name: str, type_: Any) -> Field:
    return Field(name, type_.width, type_.signed)


def pack(header: str, values: Mapping[str, int]) -> bytes:
    """The header's bytes as P4 defines them: fields in order, most significant bit first."""
    bits, width = 0, 0
    for field in p4_headers()[header]:
        bits = bits << field.width | values[field.name] & (1 << field.width) - 1
        width += field.width
    return bits.to_bytes(width // 8, "big")


def signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> width - 1 else value


def packed_frame(frame: Packet, values: Mapping[str, int], lanes: list[int]) -> bytes:
    """The whole frame by the P4 headers; addresses and checksums are those of `frame`."""
    ethernet, ip, udp = frame[Ether], frame[IP], frame[UDP]
    content = pack(
        "ethernet_t",
        {"dst": mac(ethernet.dst), "src": mac(ethernet.src), "ether_type": ethernet.type},
    )
    content += pack(
        "ipv4_t",
        {
            "version": 4, "ihl": 5, "dscp": 0, "ecn": 0, "total_length": ip.len,
            "identification": 0, "flags": 0b010, "fragment_offset": 0, "ttl": 64, "protocol": 17,
            "checksum": ip.chksum, "src": ipv4(ip.src), "dst": ipv4(ip.dst),
        },
    )  # fmt: skip
    content += pack(
        "udp_t",
        {"src_port": 0x4E41, "dst_port": 0x4E41, "length": udp.len, "checksum": udp.chksum},
    )
    content += pack("ina_t", values)
    if lanes:
        content += pack("lanes_t", {f"l{_lane_name(i)}": lane for i, lane in enumerate(lanes)})
    return content


def _lane_name(index: int) -> str:
    return p4_headers()["lanes_t"][index].name[1:]


def mac(text: str) -> int:
    return int(text.replace(":", ""), 16)


def ipv4(text: str) -> int:
    return int.from_bytes(bytes(int(part) for part in text.split(".")), "big")


def scapy_fields() -> list[Field]:
    found = []
    for field in layer.INA.fields_desc:
        bits = getattr(field, "size", None)
        width = bits if isinstance(bits, int) else struct.calcsize(field.fmt) * 8
        found.append(Field(field.name, width, field.fmt[-1].islower()))
    return found


def test_the_header_has_the_same_fields_in_all_three() -> None:
    p4 = list(p4_headers()["ina_t"])
    core = [Field(field.name, field.width, field.signed) for field in _core.ina_fields()]
    assert core == p4
    assert [(field.name, field.width) for field in scapy_fields()] == [
        (field.name, field.width) for field in p4
    ]


def test_fields_follow_each_other_without_gaps() -> None:
    offset = 0
    for field in _core.ina_fields():
        assert field.bit_offset == offset
        offset += field.width
    assert offset == 8 * _core.INA_HEADER_BYTES == 8 * len(bytes(layer.INA()))


def test_lanes_are_32_bits_each_one_behind_the_other() -> None:
    lanes = p4_headers()["lanes_t"]
    assert [field.width for field in lanes] == [8 * _core.LANE_BYTES] * LANES


def headers(*, data: bool) -> st.SearchStrategy[dict[str, int]]:
    """Values for all fields of the INA header; the flags say whether there are lanes."""

    def adjust(values: dict[str, int]) -> dict[str, int]:
        values["version"] = 1
        values["flags"] = values["flags"] & ~0x10 | (0x10 if data else 0)
        values["exponent"] = signed(values["exponent"], 8)
        return values

    fields = {field.name: st.integers(0, (1 << field.width) - 1) for field in p4_headers()["ina_t"]}
    # The core has these as enums.
    fields["opcode"] = st.sampled_from([code.value for code in _core.Opcode])
    fields["reduce_op"] = st.sampled_from([op.value for op in _core.ReduceOp])
    fields["element_type"] = st.sampled_from([kind.value for kind in _core.ElementType])
    return st.fixed_dictionaries(fields).map(adjust)


@settings(max_examples=200, deadline=None)
@given(values=headers(data=False))
def test_frames_without_lanes_are_the_same_bytes_in_all_three(values: dict[str, int]) -> None:
    _compare(values, [])


@settings(max_examples=200, deadline=None)
@given(
    values=headers(data=True),
    lanes=st.lists(st.integers(-(2**31), 2**31 - 1), min_size=LANES, max_size=LANES),
)
def test_frames_with_lanes_are_the_same_bytes_in_all_three(
    values: dict[str, int], lanes: list[int]
) -> None:
    _compare(values, lanes)


def _compare(values: dict[str, int], lanes: list[int]) -> None:
    built = bytes(layer.frame(**ADDRESSES, lanes=lanes or None, **values))
    core = _core.build_frame(
        _core.InaHeader(**values), lanes=struct.pack(f">{len(lanes)}i", *lanes), **ADDRESSES
    )
    assert core.hex() == built.hex()
    assert packed_frame(Ether(built), values, lanes).hex() == built.hex()
    parsed = _core.parse_frame(built)
    assert {name: getattr(parsed.header, name) for name in values} == values
    assert parsed.lanes == struct.pack(f">{len(lanes)}i", *lanes)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (layer.Opcode, _core.Opcode),
        (layer.ReduceOp, _core.ReduceOp),
        (layer.ElementType, _core.ElementType),
        (layer.Flag, _core.Flag),
    ],
)
def test_numbers_have_the_same_names_in_scapy_and_in_the_core(ours: Any, theirs: Any) -> None:
    assert {member.name: member.value for member in ours} == {
        member.name: member.value for member in theirs
    }


@pytest.mark.parametrize(
    ("prefix", "kind"),
    [
        ("OPCODE_", _core.Opcode),
        ("REDUCE_", _core.ReduceOp),
        ("FLAG_", _core.Flag),
        ("NACK_", _core.NackReason),
    ],
)
def test_numbers_have_the_same_names_in_p4_and_in_the_core(prefix: str, kind: Any) -> None:
    constants = p4_constants(prefix)
    assert constants
    assert constants.items() <= {member.name: member.value for member in kind}.items()


def test_port_and_version_are_the_same() -> None:
    constants = p4_constants("INA_")
    assert constants["UDP_PORT"] == _core.INA_UDP_PORT == layer.INA_UDP_PORT
    assert constants["VERSION"] == _core.INA_VERSION == layer.INA().version
