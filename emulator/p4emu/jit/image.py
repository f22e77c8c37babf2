"""What a compiled program tells the run time: where things are, and how large they must be.

Plain data, no LLVM. `ProgramImage` describes variables, tables, registers and counters by the
numbers of `csrc/switch/abi.hpp`; the order of its lists is the order of the arrays in `State`.
Layout decisions are made in `layout`.
"""

from __future__ import annotations

from dataclasses import dataclass

from p4emu.ir.nodes import ActionCall, Entry, MatchKind


@dataclass(frozen=True, slots=True)
class KeyField:
    """One field of a lookup key; it takes `ceil(width / 8)` bytes, big-endian."""

    name: str
    width: int
    kind: MatchKind


@dataclass(frozen=True, slots=True)
class ParamSpec:
    """One action parameter: `storage` bytes, little-endian, at `offset` in the action data."""

    name: str
    width: int
    offset: int
    storage: int


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """An action of one table. `data_bytes` is the size of its parameters in an `ActionEntry`."""

    name: str
    params: tuple[ParamSpec, ...]
    data_bytes: int


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table: its key, its actions, what it starts with, and whether entries count packets."""

    name: str
    key_fields: tuple[KeyField, ...]
    key_bytes: int
    actions: tuple[ActionSpec, ...]
    default: ActionCall
    size: int
    entries: tuple[Entry, ...]
    has_counter: bool
    counter: str | None
    const_default: bool
    const_entries: bool


@dataclass(frozen=True, slots=True)
class RegisterMember:
    """One register in its group: its element is `storage` bytes at `offset` of each row."""

    name: str
    offset: int
    storage: int
    width: int
    signed: bool


@dataclass(frozen=True, slots=True)
class RegisterGroupSpec:
    """Registers of equal length, interleaved: row i holds element i of every member.

    The memory is `length + 1` rows of `row_bytes` bytes, zeroed, 64-byte aligned; the last row is
    scratch for accesses out of range.
    """

    row_bytes: int
    length: int
    members: tuple[RegisterMember, ...]

    @property
    def total_bytes(self) -> int:
        """Bytes to allocate, scratch row included."""
        return self.row_bytes * (self.length + 1)


@dataclass(frozen=True, slots=True)
class CounterSpec:
    """A counter array of `size` {packets, bytes} cells; a direct one has `table` and size 0."""

    name: str
    kind: str
    size: int
    table: str | None


@dataclass(frozen=True, slots=True)
class ProgramImage:
    """The whole of it.

    Attributes
    ----------
    vars_size
        Bytes of a packet's variable block, a multiple of 64.
    standard
        Standard metadata field -> (offset in the variable block, bytes).
    variables
        Every packet variable by name -> (offset, bytes): for debuggers and tests.
    max_header_bytes
        An upper bound of what the deparser emits.
    """

    name: str
    vars_size: int
    standard: dict[str, tuple[int, int]]
    variables: dict[str, tuple[int, int]]
    max_header_bytes: int
    tables: tuple[TableSpec, ...]
    registers: tuple[RegisterGroupSpec, ...]
    counters: tuple[CounterSpec, ...]
    errors: tuple[str, ...]
