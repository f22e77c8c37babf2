"""Decides where everything lives: packet variables, register rows, action data.

The rules serve vectorisation. Fields of a header lie in wire order, so a run of equally wide
fields is an array; long runs start on a cache line. Registers of equal length share one group in
which a row holds one element of each, so the elements one packet touches are neighbours, and runs
of equal registers (one per lane) are arrays again. Nothing here knows LLVM.

Main types: `Layout`, made by `lay_out(program)`; `Slot`, the place of one variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from p4emu.ir.nodes import (
    Action,
    Bits,
    Counter,
    Emit,
    Header,
    Program,
    Register,
    Stmt,
    Table,
    Type,
    Var,
    storage_bytes,
)
from p4emu.ir.walk import bodies
from p4emu.jit.image import (
    ActionSpec,
    CounterSpec,
    KeyField,
    ParamSpec,
    ProgramImage,
    RegisterGroupSpec,
    RegisterMember,
    TableSpec,
)

CACHE_LINE = 64
# A row longer than this starts on a cache line: a shorter one shares a line with its neighbours.
_SHARED_ROW_BYTES = 32


def width_of(type_: Type) -> int:
    """Bits of a value; a Bool is one bit."""
    return type_.width if isinstance(type_, Bits) else 1


def align_up(offset: int, alignment: int) -> int:
    """The first multiple of `alignment` at or behind `offset`."""
    return (offset + alignment - 1) // alignment * alignment


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a variable is: byte offset in the variable block, and bytes there."""

    offset: int
    storage: int


@dataclass(frozen=True, slots=True)
class RegisterPlace:
    """Where a register is: the group's number, and its member there."""

    group: int
    member: RegisterMember


@dataclass(frozen=True, slots=True)
class Layout:
    """All places of one program; `image` is what the run time sees of them."""

    slots: dict[Var, Slot]
    registers: dict[Register, RegisterPlace]
    tables: dict[Table, int]
    counters: dict[Counter, int]
    image: ProgramImage


def lay_out(program: Program) -> Layout:
    """Place every variable, register and parameter of `program`."""
    slots, vars_size = _variables(program)
    groups, places = _registers(program.registers)
    image = ProgramImage(
        name=program.name,
        vars_size=vars_size,
        standard={
            name: (slots[var].offset, slots[var].storage) for name, var in program.standard.items()
        },
        variables={var.name: (slot.offset, slot.storage) for var, slot in slots.items()},
        max_header_bytes=max_emitted_bytes(program.deparser),
        tables=tuple(_table(table) for table in program.tables),
        registers=groups,
        counters=tuple(
            CounterSpec(counter.name, counter.kind, counter.size, counter.table)
            for counter in program.counters
        ),
        errors=tuple(program.errors),
    )
    tables = {table: index for index, table in enumerate(program.tables)}
    counters = {counter: index for index, counter in enumerate(program.counters)}
    return Layout(slots, places, tables, counters, image)


def header_bytes(header: Header) -> int:
    """Length of a header on the wire."""
    return sum(width_of(field.type) for field in header.fields) // 8


def max_emitted_bytes(body: Sequence[Stmt]) -> int:
    """The most a deparser body can emit on any path."""
    total = 0
    for stmt in body:
        if isinstance(stmt, Emit):
            total += header_bytes(stmt.header)
            continue
        nested = [max_emitted_bytes(inner) for inner in bodies(stmt)]
        if nested:
            total += max(nested)
    return total


# --- packet variables --------------------------------------------------------------------------


def _runs(storages: Iterable[tuple[Var, int]]) -> Iterator[tuple[int, list[Var]]]:
    for storage, members in groupby(storages, key=lambda item: item[1]):
        yield storage, [var for var, _ in members]


def _variables(program: Program) -> tuple[dict[Var, Slot], int]:
    slots: dict[Var, Slot] = {}
    offset = 0

    def place(variables: Sequence[Var]) -> None:
        nonlocal offset
        sized = [(var, storage_bytes(width_of(var.type))) for var in variables if var not in slots]
        for storage, run in _runs(sized):
            long = storage * len(run) >= CACHE_LINE and storage <= 8
            offset = align_up(offset, CACHE_LINE if long else min(storage, 8))
            for var in run:
                slots[var] = Slot(offset, storage)
                offset += storage

    # Metadata and validity first: they are touched for every packet and fit a line or two.
    place(list(program.standard.values()))
    place(program.packet_vars)
    place([header.valid for header in program.headers])
    for header in program.headers:
        place(header.fields)
    return slots, align_up(max(offset, 1), CACHE_LINE)


# --- registers ---------------------------------------------------------------------------------


def _families(registers: Sequence[Register]) -> list[list[Register]]:
    """Runs of consecutive registers of one type whose names end alike: the lanes of an array."""
    return [
        list(run)
        for _, run in groupby(registers, key=lambda r: (r.type, r.name.rpartition(".")[2]))
    ]


def _registers(
    registers: Sequence[Register],
) -> tuple[tuple[RegisterGroupSpec, ...], dict[Register, RegisterPlace]]:
    by_length: dict[int, list[Register]] = {}
    for register in registers:
        by_length.setdefault(register.size, []).append(register)
    groups: list[RegisterGroupSpec] = []
    places: dict[Register, RegisterPlace] = {}
    for length, members in by_length.items():
        families = _families(members)
        long = [f for f in families if _family_bytes(f) >= CACHE_LINE]
        short = [f for f in families if _family_bytes(f) < CACHE_LINE]
        offset, widest = 0, 1
        specs: list[RegisterMember] = []
        for family in (*long, *short):
            storage = storage_bytes(family[0].type.width)
            widest = max(widest, min(storage, 8))
            line = _family_bytes(family) >= CACHE_LINE
            offset = align_up(offset, CACHE_LINE if line else min(storage, 8))
            for register in family:
                type_ = register.type
                member = RegisterMember(register.name, offset, storage, type_.width, type_.signed)
                specs.append(member)
                places[register] = RegisterPlace(len(groups), member)
                offset += storage
        row = align_up(offset, CACHE_LINE if offset > _SHARED_ROW_BYTES else widest)
        groups.append(RegisterGroupSpec(row, length, tuple(specs)))
    return tuple(groups), places


def _family_bytes(family: Sequence[Register]) -> int:
    return sum(storage_bytes(register.type.width) for register in family)


# --- tables ------------------------------------------------------------------------------------


def action_spec(action: Action) -> ActionSpec:
    """The layout of an action's parameters behind an `ActionEntry`."""
    offset = 0
    params: list[ParamSpec] = []
    for param in action.params:
        width = width_of(param.type)
        storage = storage_bytes(width)
        offset = align_up(offset, min(storage, 8))
        params.append(ParamSpec(param.name, width, offset, storage))
        offset += storage
    return ActionSpec(action.name, tuple(params), offset)


def _table(table: Table) -> TableSpec:
    fields = tuple(KeyField(key.name, width_of(key.expr.type), key.kind) for key in table.keys)
    return TableSpec(
        name=table.name,
        key_fields=fields,
        key_bytes=sum((field.width + 7) // 8 for field in fields),
        actions=tuple(action_spec(action) for action in table.actions),
        default=table.default,
        size=table.size,
        entries=table.entries,
        has_counter=table.counter is not None,
        counter=None if table.counter is None else table.counter.name,
        const_default=table.const_default,
        const_entries=table.const_entries,
    )
