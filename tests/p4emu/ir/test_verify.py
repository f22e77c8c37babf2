"""The verifier accepts a sound program and names the rule and the place when one is broken."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from p4emu.ir import IRError, verify
from p4emu.ir.nodes import (
    BOOL,
    Action,
    ActionCall,
    Apply,
    Assign,
    AssignSlice,
    Binary,
    Bits,
    Block,
    Cast,
    Concat,
    Const,
    Count,
    Counter,
    Emit,
    Entry,
    Extract,
    Goto,
    Hash,
    Header,
    If,
    Key,
    KeyMatch,
    KeysetValue,
    Leave,
    Lookahead,
    Program,
    Read,
    Register,
    RegisterRead,
    Select,
    Slice,
    State,
    Stmt,
    Switch,
    Table,
    Unary,
    Var,
)

BYTE = Bits(8)
HALF = Bits(16)


class Sample:
    """A small sound program whose parts a test may replace."""

    def __init__(self) -> None:
        self.field = Var("hdr.h.a", BYTE, "packet")
        self.wide = Var("hdr.h.b", HALF, "packet")
        self.header = Header("hdr.h", (self.field, self.wide), Var("hdr.h.$valid", BOOL, "packet"))
        self.meta = Var("meta.m", BYTE, "packet")
        self.local = Var("tmp", BYTE, "local")
        self.flag = Var("hit", BOOL, "local")
        self.param = Var("value", BYTE, "local")
        self.register = Register("Ingress.r", BYTE, 4)
        self.counter = Counter("Ingress.c", "packets", 4)
        self.table = Table(
            name="Ingress.t",
            keys=(Key("hdr.h.a", Read(self.field), "exact"),),
            actions=(
                Action("Ingress.set", (self.param,), (Assign(self.meta, Read(self.param)),)),
                Action("Ingress.leave", (), (Leave("exit"),)),
            ),
            default=ActionCall(1),
            size=16,
            entries=(Entry((KeyMatch(1, 255),), ActionCall(0, (7,)), 1),),
        )
        self.program = Program(
            name="sample",
            headers=[self.header],
            packet_vars=[self.meta],
            standard={"egress_spec": self.meta},
            errors=["NoError"],
            parser={
                "start": State(
                    "start",
                    (Extract(self.header),),
                    Select((Read(self.field),), (((KeysetValue(1, 15),), "accept"),)),
                )
            },
            ingress=(
                Block(
                    "exit",
                    (
                        RegisterRead(self.register, self.local, Read(self.wide)),
                        Apply(self.table, hit=self.flag),
                        If(Read(self.flag), (Count(self.counter, Read(self.local)),)),
                    ),
                ),
            ),
            deparser=(Emit(self.header),),
            tables=[self.table],
            registers=[self.register],
            counters=[self.counter],
        )


def test_a_sound_program_passes() -> None:
    verify(Sample().program)


def byte(value: int) -> Const:
    return Const(value, BYTE)


# Each case gives statements for ingress, and words the error must contain.
BROKEN: dict[str, tuple[Callable[[Sample], Stmt], str]] = {
    "assignment of another width": (
        lambda s: Assign(s.meta, Read(s.wide)),
        "puts bit<16> into bit<8>",
    ),
    "assignment of another signedness": (
        lambda s: Assign(s.meta, Const(-1, Bits(8, True))),
        "puts int<8> into bit<8>",
    ),
    "operands that differ": (
        lambda s: Assign(s.meta, Binary("+", Read(s.field), Read(s.wide), BYTE)),
        "bit<8> and bit<16>",
    ),
    "comparison that is not bool": (
        lambda s: Assign(s.meta, Binary("<", Read(s.field), Read(s.meta), BYTE)),
        "(hdr.h.a < meta.m)",
    ),
    "logic on numbers": (
        lambda s: If(Binary("&&", Read(s.field), Read(s.meta), BOOL), ()),
        "bit<8> and bit<8>",
    ),
    "signed shift distance": (
        lambda s: Assign(s.meta, Binary("<<", byte(1), Const(1, Bits(8, True)), BYTE)),
        "int<8>",
    ),
    "not of a number": (lambda s: If(Unary("!", Read(s.meta), BOOL), ()), "!meta.m"),
    "negated bool": (lambda s: If(Unary("-", Read(s.flag), BOOL), ()), "-hit"),
    "condition that is a number": (lambda s: If(Read(s.meta), ()), "condition meta.m is bit<8>"),
    "cast of bool to a byte": (lambda s: Assign(s.meta, Cast(Read(s.flag), BYTE)), "hit"),
    "slice outside": (lambda s: Assign(s.meta, Slice(Read(s.meta), 8, 1)), "meta.m[8:1]"),
    "slice assignment outside": (
        lambda s: AssignSlice(s.meta, 8, 8, Const(0, Bits(1))),
        "outside of bit<8>",
    ),
    "slice assignment of another width": (
        lambda s: AssignSlice(s.meta, 3, 0, byte(1)),
        "puts bit<8> into 4 bits",
    ),
    "concat of another width": (
        lambda s: Assign(s.wide, Concat(Read(s.meta), Read(s.meta), BYTE)),
        "(meta.m ++ meta.m)",
    ),
    "constant too large": (lambda s: Assign(s.meta, byte(256)), "256 does not fit bit<8>"),
    "leave without block": (lambda s: Leave("nowhere"), "'nowhere'"),
    "block inside itself": (lambda s: Block("a", (Block("a", ()),)), "'a' inside itself"),
    "switch names a value twice": (
        lambda s: Switch(Read(s.meta), (((1,), ()), ((2, 1), ()))),
        "1 is named twice",
    ),
    "extract outside of the parser": (lambda s: Extract(s.header), "outside of the parser"),
    "lookahead outside of the parser": (
        lambda s: Assign(s.meta, Lookahead(BYTE)),
        "outside of the parser",
    ),
    "emit outside of the deparser": (lambda s: Emit(s.header), "outside of the deparser"),
    "unknown packet variable": (
        lambda s: Assign(Var("stray", BYTE, "packet"), byte(0)),
        "stray",
    ),
    "unknown register": (
        lambda s: RegisterRead(Register("stray", BYTE, 1), s.local, byte(0)),
        "unknown register",
    ),
    "register element of another type": (
        lambda s: RegisterRead(s.register, s.flag, byte(0)),
        "puts bit<8> into bool",
    ),
    "unknown counter": (
        lambda s: Count(Counter("stray", "packets", 1), byte(0)),
        "unknown counter",
    ),
    "indirect counter without index": (lambda s: Count(s.counter, None), "an index or a direct"),
    "hash result of another width": (
        lambda s: Hash(s.wide, "crc32", (Read(s.field),)),
        "puts bit<32> into bit<16>",
    ),
    "statement that is none": (lambda s: byte(1), "statement 0"),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_statement_is_named_with_its_place(case: str) -> None:
    sample = Sample()
    build, words = BROKEN[case]
    sample.program.ingress = (build(sample), *sample.program.ingress)
    with pytest.raises(IRError) as caught:
        verify(sample.program)
    assert words in caught.value.rule
    assert caught.value.path.startswith("sample.ingress")


def test_a_leave_in_an_action_needs_its_block_around_the_apply() -> None:
    sample = Sample()
    sample.program.ingress = (Apply(sample.table),)
    with pytest.raises(IRError, match=r"ingress\.0\.Ingress\.t\.Ingress\.leave\.0.*'exit'"):
        verify(sample.program)


def test_a_local_variable_belongs_to_one_block() -> None:
    sample = Sample()
    sample.program.egress = (Assign(sample.meta, Read(sample.local)),)
    with pytest.raises(IRError, match="tmp of ingress is used in egress"):
        verify(sample.program)


def test_a_table_is_applied_in_one_block() -> None:
    sample = Sample()
    sample.program.egress = (Block("exit", (Apply(sample.table),)),)
    with pytest.raises(IRError, match=r"Ingress\.t is applied in ingress too"):
        verify(sample.program)


def test_a_transition_names_a_state() -> None:
    sample = Sample()
    sample.program.parser["start"] = State("start", (), Goto("missing"))
    with pytest.raises(IRError, match=r"parser\.start: no state 'missing'"):
        verify(sample.program)


def test_a_keyset_fits_its_selector() -> None:
    sample = Sample()
    select = Select((Read(sample.field),), (((KeysetValue(256),), "accept"),))
    sample.program.parser["start"] = State("start", (), select)
    with pytest.raises(IRError, match="0x100 does not fit 8 bits"):
        verify(sample.program)


def test_an_entry_has_the_arguments_of_its_action() -> None:
    sample = Sample()
    sample.table.entries = (Entry((KeyMatch(1, 255),), ActionCall(0)),)
    with pytest.raises(IRError, match=r"table Ingress\.t\.entry 0: 0 action arguments"):
        verify(sample.program)


def test_a_header_is_whole_bytes() -> None:
    sample = Sample()
    odd = Header("odd", (Var("odd.x", Bits(3), "packet"),), Var("odd.v", BOOL, "packet"))
    sample.program.headers.append(odd)
    with pytest.raises(IRError, match="3 bits are not whole bytes"):
        verify(sample.program)


def test_a_direct_counter_names_its_table() -> None:
    sample = Sample()
    sample.program.counters.append(Counter("Ingress.d", "bytes", 0, "Ingress.t"))
    with pytest.raises(IRError, match=r"Ingress\.d is not that of table Ingress\.t"):
        verify(sample.program)
