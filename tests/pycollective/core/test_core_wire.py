"""Frames built and taken apart by the C++ core."""

from __future__ import annotations

import struct

import pytest

from pycollective import _core

ADDRESSES = {
    "source_mac": "02:50:43:00:01:03",
    "destination_mac": "02:50:43:ff:ff:fe",
    "source_ipv4": "10.0.1.4",
    "destination_ipv4": "10.255.255.254",
}


def header(**fields: int) -> _core.InaHeader:
    values: dict[str, int] = {
        "opcode": _core.Opcode.CONTRIBUTE,
        "job": 1,
        "rank": 3,
        "epoch": 7,
        "slot": 0x1234,
        "slot_version": 1,
        "sequence": 0xDEADBEEF,
        "chunk": 0x01020304,
        "lane_count": 2,
        "exponent": -5,
        "fingerprint": 0xCAFEF00D,
    }
    return _core.InaHeader(**(values | fields))


def test_a_frame_has_its_fields_where_the_specification_puts_them() -> None:
    lanes = struct.pack(">2i", -1, 2)
    frame = _core.build_frame(header(flags=_core.Flag.DATA), lanes=lanes, **ADDRESSES)

    assert frame[:14].hex() == "025043fffffe0250430001030800"
    assert frame[34:38] == struct.pack(">HH", _core.INA_UDP_PORT, _core.INA_UDP_PORT)
    assert struct.unpack(">4BHHHHIIHbBI", frame[42:70]) == (
        *(1, 1, 0, 0, 1, 3, 7, 0x1234 << 1 | 1, 0xDEADBEEF, 0x01020304, 2, -5, 0x10, 0xCAFEF00D),
    )
    assert frame[70:] == lanes


def test_the_description_covers_the_header_without_gaps() -> None:
    end = 0
    for field in _core.ina_fields():
        assert field.bit_offset == end
        end += field.width
    assert end == 8 * _core.INA_HEADER_BYTES
    assert [f.name for f in _core.ina_fields() if f.signed] == ["exponent"]


def test_a_frame_taken_apart_is_what_it_was_built_from() -> None:
    lanes = bytes(range(64))
    original = header(flags=_core.Flag.DATA | _core.Flag.RETRANSMIT)
    parsed = _core.parse_frame(_core.build_frame(original, lanes=lanes, **ADDRESSES))

    assert parsed.header == original
    assert parsed.lanes == lanes
    assert {name: getattr(parsed, name) for name in ADDRESSES} == ADDRESSES


def test_headers_compare_by_value() -> None:
    assert header() == header()
    assert header() != header(rank=4)
    assert header() != "header"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda f: f[:20], "truncated"),
        (lambda f: f[:-1], "truncated"),
        (lambda f: f[:12] + b"\x86\xdd" + f[14:], "not_ina"),
        (lambda f: f[:26] + b"\x0b" + f[27:], "ipv4_checksum"),
        (lambda f: f[:60] + b"\x00\x00" + f[62:], "udp_checksum"),
    ],
)
def test_a_damaged_frame_is_refused_with_its_reason(damage, reason) -> None:  # type: ignore[no-untyped-def]
    frame = _core.build_frame(header(), **ADDRESSES)
    with pytest.raises(ValueError, match=f"^{reason}$"):
        _core.parse_frame(damage(frame))


def test_lanes_that_contradict_the_header_are_refused() -> None:
    with pytest.raises(ValueError, match="DATA"):
        _core.build_frame(header(), lanes=bytes(4), **ADDRESSES)
    with pytest.raises(ValueError, match="DATA"):
        _core.build_frame(header(flags=_core.Flag.DATA), **ADDRESSES)
    with pytest.raises(ValueError, match="whole number"):
        _core.build_frame(header(flags=_core.Flag.DATA), lanes=bytes(5), **ADDRESSES)


def test_values_that_do_not_fit_their_field_are_refused() -> None:
    with pytest.raises(ValueError, match="15 bits"):
        header(slot=1 << 15)
    with pytest.raises(ValueError, match="0 or 1"):
        header(slot_version=2)
    with pytest.raises(ValueError, match="8 bits"):
        header(exponent=-129)
    with pytest.raises(TypeError):
        header(rank=1 << 16)
    with pytest.raises(TypeError, match="no field 'slots'"):
        _core.InaHeader(slots=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("text", ["", "02:50:43:00:01", "02:50:43:00:01:zz", "02-50-43-00-01-00"])
def test_a_bad_mac_address_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is no MAC address"):
        _core.build_frame(header(), **(ADDRESSES | {"source_mac": text}))


@pytest.mark.parametrize("text", ["", "10.0.1", "10.0.1.256", "10.0.1.1.1", "a.b.c.d"])
def test_a_bad_ipv4_address_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is no IPv4 address"):
        _core.build_frame(header(), **(ADDRESSES | {"source_ipv4": text}))
