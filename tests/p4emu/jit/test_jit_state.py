"""Registers, counters and tables: layout, ranges, dispatch."""

from __future__ import annotations

import pytest
from jit_rig import Rig, local_var, packet_var, program
from lanes_program import ROWS, lanes_program

from p4emu.ir.nodes import (
    BOOL,
    Action,
    ActionCall,
    Apply,
    Assign,
    Binary,
    Bits,
    Block,
    Const,
    Count,
    Counter,
    If,
    Key,
    Leave,
    Program,
    Read,
    Register,
    RegisterRead,
    RegisterWrite,
    Stmt,
    Switch,
    Table,
)
from p4emu.jit import RuntimeSymbolError, compile_program

BYTE, WORD = Bits(8), Bits(32)


# --- registers ---------------------------------------------------------------------------------


def test_registers_of_one_length_share_rows_and_runs_of_them_a_cache_line() -> None:
    registers = [
        Register("C.tag.value", WORD, 64),
        *(Register(f"C.lane{n}.value", WORD, 64) for n in range(16)),
        Register("C.flag.bit", Bits(1), 64),
        Register("C.other", WORD, 32),
    ]
    # The tag would be part of the run if its name did not end differently.
    registers[0] = Register("C.tag.sequence", WORD, 64)
    rig = Rig(program(registers=registers))
    group, other = rig.image.registers
    offsets = {member.name: member.offset for member in group.members}
    lanes = [offsets[f"C.lane{n}.value"] for n in range(16)]
    assert lanes == list(range(0, 64, 4))
    assert group.row_bytes == 128
    assert group.total_bytes == 65 * 128
    assert {offsets["C.tag.sequence"], offsets["C.flag.bit"]} == {64, 68}
    assert (other.length, other.row_bytes) == (32, 4)


@pytest.mark.parametrize("width", [1, 7, 8, 31, 48, 64, 65, 130])
@pytest.mark.parametrize("signed", [False, True])
def test_a_register_keeps_its_value(width: int, signed: bool) -> None:
    if signed and width == 1:
        width = 2
    type_ = Bits(width, signed)
    register, neighbour = Register("C.r", type_, 4), Register("C.s", type_, 4)
    new, old = packet_var("meta.new", type_), packet_var("meta.old", type_)
    index = packet_var("meta.index", Bits(9))
    body = [
        RegisterRead(register, old, Read(index)),
        RegisterWrite(register, Read(index), Read(new)),
    ]
    rig = Rig(program(variables=[new, old, index], registers=[register, neighbour], ingress=body))
    value = -1 if signed else (1 << width) - 1
    rig.ingress(values={new: value, index: 3})
    assert rig.get(old) == 0
    rig.ingress(values={new: 1, index: 3})
    assert rig.get(old) == value
    assert [rig.register("C.r", n) for n in range(4)] == [0, 0, 0, 1]
    assert [rig.register("C.s", n) for n in range(4)] == [0, 0, 0, 0]


@pytest.mark.parametrize("index_width", [2, 8, 32, 64, 100])
def test_out_of_range_reads_zero_and_writes_nothing(index_width: int) -> None:
    register = Register("C.r", WORD, 3)
    index = packet_var("meta.index", Bits(index_width))
    first, second = packet_var("meta.first", WORD), packet_var("meta.second", WORD)
    body = [
        RegisterRead(register, first, Read(index)),
        RegisterWrite(register, Read(index), Const(7, WORD)),
        RegisterRead(register, second, Read(index)),
    ]
    rig = Rig(program(variables=[index, first, second], registers=[register], ingress=body))
    for bad in {3, (1 << index_width) - 1, 1 << (index_width - 1)} - {0, 1, 2}:
        for n in range(3):
            rig.set_register("C.r", n, 40 + n)
        for _ in range(2):
            rig.ingress(values={index: bad})
            # Nothing comes back from the scratch row either.
            assert (rig.get(first), rig.get(second)) == (0, 0)
        assert [rig.register("C.r", n) for n in range(3)] == [40, 41, 42]


@pytest.mark.parametrize("lanes", [1, 3, 16, 64, 256])
def test_lanes_add_up_and_tell_of_overflow(lanes: int) -> None:
    rig = Rig(lanes_program(lanes))
    ones = 0xFFFFFFFF

    def send(row: int, keep: int, add: int, values: list[int]) -> tuple[list[int], int]:
        words = [row, keep, add, 0]
        frame = b"".join(word.to_bytes(4, "big") for word in words) + bytes(4)
        rig.ingress(frame + b"".join(value.to_bytes(4, "big") for value in values))
        got = [rig.get(f"lanes.f{n}") for n in range(lanes)]
        return got, rig.get("control.f3") >> 31

    first = [(n * 2654435761) & 0x3FFFFFFF for n in range(lanes)]
    second = [(n * 40503 + 5) & 0x3FFFFFFF for n in range(lanes)]
    total = [a + b for a, b in zip(first, second, strict=True)]
    assert send(5, 0, ones, first) == (first, 0)
    assert send(5, ones, ones, second) == (total, 0)
    assert send(5, ones, 0, second) == (total, 0)
    assert send(6, 0, ones, second) == (second, 0)
    assert [rig.register(f"Ingress.lane{n:03x}.accumulators", 5) for n in range(lanes)] == total
    assert rig.register("Ingress.tag.sequences", 5) == 3
    for lane in {0, lanes // 2, lanes - 1}:
        send(7, 0, ones, [0x7FFFFFFF if n == lane else 1 for n in range(lanes)])
        got, overflow = send(7, ones, ones, [1] * lanes)
        assert overflow == 1
        assert got == [0x80000000 if n == lane else 2 for n in range(lanes)]
    before = rig.register("Ingress.lane000.accumulators", ROWS - 1)
    assert send(ROWS, ones, ones, second)[0] == second
    assert rig.register("Ingress.lane000.accumulators", ROWS - 1) == before


# --- counters ----------------------------------------------------------------------------------


def test_counters_count_packets_and_bytes_within_range() -> None:
    counters = [Counter("C.a", "packets", 4), Counter("C.b", "packets_and_bytes", 300)]
    index = packet_var("meta.index", BYTE)
    body = [Count(counter, Read(index)) for counter in counters]
    rig = Rig(program(variables=[index], counters=counters, ingress=body))
    for number in (3, 3, 4, 255):
        rig.ingress(bytes(100), values={index: number})
    assert [rig.counter("C.a", n) for n in range(4)] == [(0, 0), (0, 0), (0, 0), (2, 200)]
    assert [rig.counter("C.b", n) for n in (3, 4, 255)] == [(2, 200), (1, 100), (1, 100)]


# --- tables ------------------------------------------------------------------------------------


class Sample:
    """A table of two keys with an action of three parameters, one that leaves, and a default."""

    def __init__(self) -> None:
        self.port = packet_var("meta.port", Bits(9))
        self.address = packet_var("meta.address", Bits(48))
        self.out = [packet_var(f"meta.out{n}", Bits(w)) for n, w in enumerate((9, 48, 130))]
        self.hit = packet_var("meta.hit", BOOL)
        self.action = packet_var("meta.action", WORD)
        self.after = packet_var("meta.after", BOOL)
        params = tuple(local_var(f"p{n}", var.type) for n, var in enumerate(self.out))
        self.table = Table(
            name="C.t",
            keys=(
                Key("meta.port", Read(self.port), "exact"),
                Key("meta.address", Read(self.address), "ternary"),
            ),
            actions=(
                Action("C.none", (), ()),
                Action(
                    "C.set",
                    params,
                    tuple(Assign(v, Read(p)) for v, p in zip(self.out, params, strict=True)),
                ),
                Action("C.leave", (), (Leave("exit"),)),
            ),
            default=ActionCall(0),
            size=10,
        )
        body: tuple[Stmt, ...] = (
            Apply(self.table, self.hit, self.action),
            Assign(self.after, Const(1, BOOL)),
        )
        self.program: Program = program(
            variables=[
                self.port,
                self.address,
                *self.out,
                self.hit,
                self.action,
                self.after,
            ],
            tables=[self.table],
            ingress=[Block("exit", body)],
        )


def test_a_table_gives_its_key_in_network_order_and_runs_the_action() -> None:
    sample = Sample()
    rig = Rig(sample.program)
    spec = rig.image.tables[0]
    assert spec.key_bytes == 8
    assert [p.offset for p in spec.actions[1].params] == [0, 8, 16]
    wide = (1 << 129) | 12345
    rig.answer = lambda name, key: rig.entry(1, True, (0x1FF, 0x123456789ABC, wide))
    values = {sample.port: 0x101, sample.address: 0x0A0B0C0D0E0F}
    rig.ingress(values=values)
    assert rig.keys == [("C.t", bytes.fromhex("01010a0b0c0d0e0f"))]
    assert [rig.get(var) for var in sample.out] == [0x1FF, 0x123456789ABC, wide]
    assert [rig.get(v) for v in (sample.hit, sample.action, sample.after)] == [1, 1, 1]

    rig.answer = lambda name, key: rig.entry(0, False)
    rig.ingress(values=values)
    assert [rig.get(v) for v in (sample.hit, sample.action, sample.after)] == [0, 0, 1]

    rig.answer = lambda name, key: rig.entry(2, True)
    rig.ingress(values=values)
    assert [rig.get(v) for v in (sample.hit, sample.action, sample.after)] == [1, 2, 0]


def test_a_lookup_does_not_disturb_variables() -> None:
    """Packet variables are kept across the call back into the run time."""
    sample = Sample()
    body = [
        Assign(sample.port, Const(5, Bits(9))),
        Block("exit", (Apply(sample.table),)),
        Assign(sample.address, Const(9, Bits(48))),
    ]
    sample.program.ingress = tuple(body)
    rig = Rig(sample.program)
    rig.answer = lambda name, key: rig.entry(0, True)
    rig.ingress(values={sample.address: 7})
    assert rig.keys == [("C.t", b"\0\5" + bytes(5) + b"\7")]
    assert (rig.get(sample.port), rig.get(sample.address)) == (5, 9)


def test_a_direct_counter_counts_hits() -> None:
    import ctypes

    sample = Sample()
    counter = Counter("C.direct", "packets_and_bytes", 0, table="C.t")
    sample.table.counter = counter
    sample.program.counters.append(counter)
    rig = Rig(sample.program)
    assert rig.image.tables[0].has_counter
    cell = (ctypes.c_uint64 * 2)()

    def answer(name: str, key: bytes) -> bytes:
        entry = rig.entry(0, True)
        return entry[:8] + ctypes.addressof(cell).to_bytes(8, "little") + entry[16:]

    rig.answer = answer
    for length in (60, 1500):
        rig.ingress(bytes(length))
    assert list(cell) == [2, 1560]
    rig.answer = lambda name, key: rig.entry(0, False)
    rig.ingress(bytes(9))
    assert list(cell) == [2, 1560]


def test_a_missing_run_time_function_is_named() -> None:
    with pytest.raises(RuntimeSymbolError, match="p4emu_table_lookup"):
        compile_program(Sample().program, symbols={"p4emu_crc16": 1})


# --- control flow ------------------------------------------------------------------------------


def test_switch_takes_the_case_with_the_value() -> None:
    selector, result = packet_var("meta.selector", Bits(4, signed=True)), packet_var("m.r", BYTE)

    def set_to(value: int) -> tuple[Stmt, ...]:
        return (Assign(result, Const(value, BYTE)),)

    body = Switch(Read(selector), (((1, -8), set_to(10)), ((3,), set_to(20))), set_to(30))
    rig = Rig(program(variables=[selector, result], ingress=[body]))
    for value, expected in ((1, 10), (-8, 10), (3, 20), (0, 30), (-1, 30)):
        rig.ingress(values={selector: value})
        assert rig.get(result) == expected


def test_leave_jumps_out_of_the_named_block() -> None:
    count = packet_var("meta.count", BYTE)
    more = Assign(count, Binary("+", Read(count), Const(1, BYTE), BYTE))
    inner = Block("inner", (more, Leave("outer"), more))
    rig = Rig(program(variables=[count], ingress=[Block("outer", (more, inner, more)), more, more]))
    rig.ingress()
    assert rig.get(count) == 4


@pytest.mark.parametrize("choice", [0, 1])
def test_short_branches_are_selects_and_keep_their_order(choice: int) -> None:
    """Assignments see those before them, and only those of the side that is taken."""
    flag = packet_var("meta.flag", BOOL)
    a, b = packet_var("meta.a", BYTE), packet_var("meta.b", BYTE)
    body = [
        If(Read(flag), (Assign(a, Read(b)), Assign(b, Read(a)))),
        If(Read(flag), (Assign(flag, Const(0, BOOL)),), (Assign(b, Read(a)),)),
        If(Read(flag), (Assign(a, Const(77, BYTE)),)),
    ]
    rig = Rig(program(variables=[flag, a, b], ingress=body))
    assert "br i1" not in rig.compiled.native.llvm_ir()
    rig.ingress(values={flag: choice, a: 1, b: 2})
    assert (rig.get(a), rig.get(b)) == ((2, 2) if choice else (1, 1))
