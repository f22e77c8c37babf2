"""The parser's state machine: selection, errors, loops."""

from __future__ import annotations

import pytest
from jit_rig import PARSER_ERROR, Rig, header, packet_var, program

from p4emu.ir.nodes import (
    BOOL,
    Assign,
    Binary,
    Bits,
    Const,
    Extract,
    Goto,
    KeysetAny,
    KeysetRange,
    KeysetValue,
    Read,
    Select,
    State,
    Verify,
)
from p4emu.jit.parser import MAX_LOOP_STEPS

BYTE = Bits(8)


def error_of(rig: Rig) -> str:
    return rig.image.errors[rig.get(PARSER_ERROR)]


@pytest.mark.parametrize(
    ("frame", "state", "error"),
    [
        (b"\x01\x00", "value", "NoError"),
        (b"\xf5\x00", "mask", "NoError"),
        (b"\x10\x07", "range", "NoError"),
        (b"\x1f\x07", "range", "NoError"),
        (b"\x20\x07", "", "NoMatch"),
        (b"\x01\x01", "", "NoMatch"),
        (b"\x30\x09", "any", "NoError"),
        (b"\x02\x00", "", "NoError"),
    ],
)
def test_the_first_matching_case_is_taken(frame: bytes, state: str, error: str) -> None:
    head = header("hdr.h", [8, 8])
    names = ["value", "mask", "range", "any"]
    marks = {name: packet_var(f"meta.{name}", BYTE) for name in names}
    select = Select(
        (Read(head.fields[0]), Read(head.fields[1])),
        (
            ((KeysetValue(1), KeysetValue(0)), "value"),
            ((KeysetValue(2), KeysetValue(0)), "reject"),
            ((KeysetValue(0x95, 0x0F), KeysetAny()), "mask"),
            ((KeysetRange(0x10, 0x1F), KeysetValue(7)), "range"),
            ((KeysetAny(), KeysetValue(9)), "any"),
        ),
    )
    states = [State("start", (Extract(head),), select)]
    states += [
        State(name, (Assign(mark, Const(1, BYTE)),), Goto("accept")) for name, mark in marks.items()
    ]
    rig = Rig(program(headers=[head], variables=list(marks.values()), parser=states))
    rig.ingress(frame)
    assert {name for name in names if rig.get(marks[name])} == ({state} if state else set())
    assert error_of(rig) == error
    assert rig.packet.payload == 2


def test_verify_raises_the_error_it_names() -> None:
    head = header("hdr.h", [8])
    reached = packet_var("meta.reached", BYTE)
    condition = Binary("<", Read(head.fields[0]), Const(10, BYTE), BOOL)
    body = (Extract(head), Verify(condition, 4), Assign(reached, Const(1, BYTE)))
    rig = Rig(
        program(headers=[head], variables=[reached], parser=[State("start", body, Goto("accept"))])
    )
    rig.ingress(b"\x09")
    assert (error_of(rig), rig.get(reached)) == ("NoError", 1)
    rig.ingress(b"\x0a")
    assert (error_of(rig), rig.get(reached)) == ("HeaderTooShort", 0)
    assert rig.get(head.valid) == 1


def test_a_loop_that_consumes_ends_with_the_packet() -> None:
    head = header("hdr.h", [7, 1])
    select = Select(
        (Read(head.fields[1]),), (((KeysetValue(1),), "start"), ((KeysetAny(),), "accept"))
    )
    rig = Rig(program(headers=[head], parser=[State("start", (Extract(head),), select)]))
    rig.ingress(b"\x03\x05\x07\x02\x01")
    assert (error_of(rig), rig.packet.payload, rig.get(head.fields[0])) == ("NoError", 4, 1)
    rig.ingress(b"\x01" * 9)
    assert (error_of(rig), rig.packet.payload) == ("PacketTooShort", 9)


def test_a_loop_that_does_not_consume_times_out() -> None:
    count = packet_var("meta.count", Bits(32))
    add = Binary("+", Read(count), Const(1, Bits(32)), Bits(32))
    states = [State("start", (), Goto("a"))]
    states += [State("a", (Assign(count, add),), Goto("b")), State("b", (), Goto("a"))]
    rig = Rig(program(variables=[count], parser=states))
    rig.ingress(b"x")
    assert error_of(rig) == "ParserTimeout"
    assert rig.get(count) == MAX_LOOP_STEPS + 1


def test_a_program_without_a_parser_has_all_payload() -> None:
    rig = Rig(program())
    rig.ingress(b"abc")
    assert (rig.packet.payload, rig.egress()) == (0, b"")
