"""Headers come off the wire and go back bit by bit, whatever the widths of their fields."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jit_rig import PARSER_ERROR, Rig, header, local_var, packet_var, program

from p4emu.ir.nodes import (
    BOOL,
    Advance,
    Assign,
    Bits,
    Cast,
    Const,
    Emit,
    Extract,
    Goto,
    If,
    Lookahead,
    Read,
    SetValid,
    State,
)
from p4emu.jit.layout import CACHE_LINE


def split(data: bytes, widths: Sequence[int]) -> list[int]:
    """The fields of a header, first bit first."""
    bits, end = int.from_bytes(data, "big"), len(data) * 8
    values = []
    for width in widths:
        end -= width
        values.append((bits >> end) & ((1 << width) - 1))
    return values


# Enough for every path; more only costs time in LLVM.
MOST_BITS = 3000


@st.composite
def layouts(draw: st.DrawFn) -> list[int]:
    """Field widths that add up to whole bytes; runs of equal fields often."""
    common = st.sampled_from([1, 4, 8, 13, 16, 32, 48, 64, 128])
    width = st.one_of(common, st.integers(1, 200))
    widths: list[int] = []
    for _ in range(draw(st.integers(1, 8))):
        run = [draw(width)] * draw(st.sampled_from([1, 1, 1, 2, 8, 9, 16, 37]))
        if sum(widths) + sum(run) <= MOST_BITS:
            widths += run
    rest = -sum(widths) % 8
    return [*widths, rest] if rest else widths or [8]


@pytest.mark.parametrize("lead", [0, 3, 8])
@pytest.mark.parametrize("width", [4095, 4096])
def test_the_widest_fields(lead: int, width: int) -> None:
    widths = [w for w in (lead, width) if w]
    widths += [w for w in (-sum(widths) % 8, 8) if w]
    head = header("hdr.h", widths)
    rig = Rig(program(headers=[head]))
    frame = bytes((n * n * 7 + 1) & 0xFF for n in range(sum(widths) // 8))
    rig.ingress(frame)
    assert [rig.get(field) for field in head.fields] == split(frame, widths)
    assert rig.egress() == frame


@settings(max_examples=60, deadline=None)
@given(st.lists(layouts(), min_size=1, max_size=2), st.data())
def test_extract_and_emit_are_inverse(shapes: list[list[int]], data: st.DataObject) -> None:
    headers = [header(f"hdr.h{n}", widths) for n, widths in enumerate(shapes)]
    rig = Rig(program(headers=headers))
    sizes = [sum(widths) // 8 for widths in shapes]
    seed = data.draw(st.integers(0, 255))
    frame = bytes((seed + 37 * n + (n * n >> 3)) & 0xFF for n in range(sum(sizes)))
    rig.ingress(frame + b"payload")
    assert rig.packet.payload == len(frame)
    start = 0
    for head, widths, size in zip(headers, shapes, sizes, strict=True):
        assert rig.get(head.valid) == 1
        got = [rig.get(field) for field in head.fields]
        assert got == split(frame[start : start + size], widths)
        start += size
    assert rig.egress() == frame
    # And what the program sets is what is sent.
    field = data.draw(st.sampled_from([field for head in headers for field in head.fields]))
    assert isinstance(field.type, Bits)
    value = data.draw(st.integers(0, (1 << field.type.width) - 1))
    values = {f: rig.get(f) for head in headers for f in head.fields} | {field: value}
    rig.set(field, value)
    bits = 0
    for var, number in values.items():
        assert isinstance(var.type, Bits)
        bits = bits << var.type.width | number
    assert rig.egress() == bits.to_bytes(sum(sizes), "big")


def test_signed_fields_are_stored_zero_extended() -> None:
    head = header("hdr.h", [4, 12])
    signed = packet_var("meta.s", Bits(12, signed=True))

    assign = Assign(signed, Cast(Read(head.fields[1]), Bits(12, signed=True)))
    rig = Rig(program(headers=[head], variables=[signed], ingress=[assign]))
    rig.ingress(b"\x0f\xfe")
    assert rig.get(signed) == -2


def test_equal_fields_are_an_array_on_a_cache_line() -> None:
    head = header("hdr.h", [8, *[32] * 40, 8])
    rig = Rig(program(headers=[head]))
    offsets = [rig.image.variables[field.name][0] for field in head.fields[1:41]]
    assert offsets[0] % CACHE_LINE == 0
    assert offsets == list(range(offsets[0], offsets[0] + 160, 4))


def test_invalid_headers_are_not_sent_and_keep_their_fields() -> None:
    one, two = header("hdr.one", [8]), header("hdr.two", [16])
    copy = packet_var("meta.copy", Bits(8))
    body = [SetValid(one, False), Assign(copy, Read(one.fields[0]))]
    rig = Rig(program(headers=[one, two], variables=[copy], ingress=body))
    rig.ingress(b"\x12\x34\x56")
    assert rig.get(copy) == 0x12
    assert rig.egress() == b"\x34\x56"


def test_a_header_emitted_twice_has_room() -> None:
    head = header("hdr.h", [24])
    rig = Rig(program(headers=[head], deparser=(Emit(head), Emit(head))))
    rig.ingress(b"abc")
    assert rig.image.max_header_bytes == 6
    assert rig.egress() == b"abcabc"


def test_emit_under_a_condition_counts_the_longer_branch() -> None:
    one, two = header("hdr.one", [8]), header("hdr.two", [16])
    choice = If(Read(one.valid), (Emit(one),), (Emit(two),))
    rig = Rig(program(headers=[one, two], deparser=(choice,)))
    assert rig.image.max_header_bytes == 2
    rig.ingress(b"\x01\x02\x03")
    assert rig.egress() == b"\x01"


@pytest.mark.parametrize("width", [1, 3, 8, 12, 16, 24, 48, 64, 65, 72, 100, 128, 200])
def test_lookahead_does_not_consume(width: int) -> None:
    head = header("hdr.h", [208])
    seen = packet_var("meta.seen", Bits(width))
    body = (Assign(seen, Lookahead(Bits(width))), Extract(head))
    rig = Rig(
        program(headers=[head], variables=[seen], parser=[State("start", body, Goto("accept"))])
    )
    frame = bytes(range(200, 226))
    rig.ingress(frame)
    assert rig.get(seen) == int.from_bytes(frame, "big") >> (208 - width)
    assert rig.get(head.fields[0]) == int.from_bytes(frame, "big")
    assert rig.packet.payload == 26


def test_advance_skips_bytes() -> None:
    head = header("hdr.h", [8])
    body = (Advance(Const(24, Bits(32))), Extract(head))
    rig = Rig(program(headers=[head], parser=[State("start", body, Goto("accept"))]))
    rig.ingress(b"abcdef")
    assert rig.get(head.fields[0]) == ord("d")
    assert rig.packet.payload == 4


@pytest.mark.parametrize(
    ("bits", "error"), [(9, "ParserInvalidArgument"), (56, "PacketTooShort"), (2**32 - 8, None)]
)
def test_a_bad_advance_is_a_parser_error(bits: int, error: str | None) -> None:
    body = (Advance(Const(bits, Bits(32))),)
    rig = Rig(program(parser=[State("start", body, Goto("accept"))]))
    rig.ingress(b"abcdef")
    assert rig.image.errors[rig.get(PARSER_ERROR)] == (error or "PacketTooShort")
    assert rig.packet.payload == 0


@pytest.mark.parametrize("missing", [1, 3, 1024])
def test_a_short_packet_leaves_its_header_invalid(missing: int) -> None:
    one, two = header("hdr.one", [16]), header("hdr.two", [32] * 256)
    reached = packet_var("meta.reached", BOOL)
    rig = Rig(
        program(headers=[one, two], variables=[reached], ingress=[Assign(reached, Const(1, BOOL))])
    )
    frame = bytes(2 + 1024 - missing)
    rig.ingress(frame)
    assert rig.image.errors[rig.get(PARSER_ERROR)] == "PacketTooShort"
    assert (rig.get(one.valid), rig.get(two.valid), rig.get(reached)) == (1, 0, 1)
    assert rig.packet.payload == 2
    assert rig.egress() == bytes(2)


def test_local_copies_see_what_extract_wrote() -> None:
    """Values known before an extract must not survive it."""
    head = header("hdr.h", [8])
    before, after = packet_var("meta.before", Bits(8)), packet_var("meta.after", Bits(8))
    tmp = local_var("tmp", Bits(8))
    body = (
        Assign(tmp, Read(head.fields[0])),
        Assign(before, Read(tmp)),
        Extract(head),
        Assign(after, Read(head.fields[0])),
        Extract(head),
    )
    rig = Rig(
        program(
            headers=[head],
            variables=[before, after],
            parser=[State("start", body, Goto("accept"))],
        )
    )
    rig.ingress(b"\x07\x09")
    assert [rig.get(v) for v in (before, after, head.fields[0])] == [0, 7, 9]
