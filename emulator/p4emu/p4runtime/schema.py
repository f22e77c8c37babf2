"""A P4Info, indexed by id: what a client's numbers mean.

`Schema` answers with small records (`TableInfo`, `ActionInfo`, ...) that hold what encoding and
decoding need, and says which objects there are when an id is unknown. It also tells whether a
client's P4Info describes a given program (`check_describes`). It reads messages and makes none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeVar

from p4.config.v1 import p4info_pb2

from p4emu.errors import SwitchError

MatchKind = Literal["exact", "lpm", "ternary", "range", "optional"]

_MATCH_KINDS: Mapping[int, MatchKind] = MappingProxyType(
    {
        p4info_pb2.MatchField.EXACT: "exact",
        p4info_pb2.MatchField.LPM: "lpm",
        p4info_pb2.MatchField.TERNARY: "ternary",
        p4info_pb2.MatchField.RANGE: "range",
        p4info_pb2.MatchField.OPTIONAL: "optional",
    }
)
_SHOWN_NAMES = 20


class _Named(Protocol):
    @property
    def id(self) -> int: ...

    @property
    def name(self) -> str: ...


_T = TypeVar("_T", bound=_Named)


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """One field of a table's key."""

    id: int
    name: str
    width: int
    kind: MatchKind


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """One parameter of an action."""

    id: int
    name: str
    width: int


@dataclass(frozen=True, slots=True)
class ActionInfo:
    """An action, with its parameters in order."""

    id: int
    name: str
    params: tuple[ParamInfo, ...]


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table. `scopes` has the ids of its actions, each with an `ActionRef.Scope`."""

    id: int
    name: str
    fields: tuple[FieldInfo, ...]
    scopes: Mapping[int, int]
    counter: CounterInfo | None
    is_const: bool

    @property
    def takes_priority(self) -> bool:
        """Whether entries are ordered by priority (section 9.1.1)."""
        return any(field.kind in ("ternary", "range", "optional") for field in self.fields)


@dataclass(frozen=True, slots=True)
class CounterInfo:
    """A counter, direct or not, and what it counts."""

    id: int
    name: str
    packets: bool
    bytes: bool


@dataclass(frozen=True, slots=True)
class RegisterInfo:
    """A register array of `bit<width>` or `int<width>`; width 0 for elements of another type."""

    id: int
    name: str
    width: int
    signed: bool


class Schema:
    """The objects of a P4Info.

    Raises
    ------
    SwitchError
        From the constructor, INVALID_ARGUMENT: ids occur twice or refer to nothing. From the
        methods that take an id, NOT_FOUND.
    """

    def __init__(self, p4info: Any) -> None:
        self.actions = _index("action", map(_action, p4info.actions))
        self.counters = _index("counter", map(_counter, p4info.counters))
        self.direct_counters = _index("direct counter", map(_counter, p4info.direct_counters))
        self.registers = _index("register", map(_register, p4info.registers))
        self.tables = _index("table", map(self._table, p4info.tables))
        self.action_names = {action.name: action for action in self.actions.values()}

    def table(self, number: int) -> TableInfo:
        return _find("table", self.tables, number)

    def action(self, number: int) -> ActionInfo:
        return _find("action", self.actions, number)

    def counter(self, number: int) -> CounterInfo:
        return _find("counter", self.counters, number)

    def register(self, number: int) -> RegisterInfo:
        return _find("register", self.registers, number)

    def check_describes(self, program: Schema) -> None:
        """Check that every object here is one of the program, with the same types; ids may differ.

        Raises
        ------
        SwitchError
            INVALID_ARGUMENT, with the first object that is not.
        """
        for kind, mine, theirs in (
            ("action", self.actions, program.actions),
            ("table", self.tables, program.tables),
            ("counter", self.counters, program.counters),
            ("direct counter", self.direct_counters, program.direct_counters),
            ("register", self.registers, program.registers),
        ):
            known = {item.name: item for item in theirs.values()}
            for item in mine.values():
                if item.name not in known:
                    raise SwitchError(
                        "INVALID_ARGUMENT",
                        f"the P4Info has the {kind} {item.name}, the program does not; it has "
                        f"{_listed(theirs)}. Make the P4Info from the same source "
                        "(p4emu p4info PROG.p4) with the same -D",
                    )
                here, there = self._shape(item), program._shape(known[item.name])
                if here != there:
                    raise SwitchError(
                        "INVALID_ARGUMENT",
                        f"the P4Info declares the {kind} {item.name} as {here}, the program as "
                        f"{there}; make the P4Info from the same source (p4emu p4info PROG.p4)",
                    )

    def _shape(self, item: object) -> str:
        """What must agree for values to mean the same, in words."""
        if isinstance(item, ActionInfo):
            return f"({', '.join(f'{p.name}: {p.width} bit' for p in item.params)})"
        if isinstance(item, TableInfo):
            key = ", ".join(f"{f.name}: {f.width} bit {f.kind}" for f in item.fields)
            actions = ", ".join(sorted(self.action(number).name for number in item.scopes))
            return f"key ({key}), actions ({actions})"
        if isinstance(item, CounterInfo):
            return " and ".join(["packets"] * item.packets + ["bytes"] * item.bytes)
        assert isinstance(item, RegisterInfo)
        return f"{'int' if item.signed else 'bit'}<{item.width}>"

    def _table(self, table: Any) -> TableInfo:
        name = table.preamble.name
        fields = []
        for field in table.match_fields:
            kind = _MATCH_KINDS.get(field.match_type)
            if kind is None:
                raise SwitchError(
                    "INVALID_ARGUMENT",
                    f"table {name}, key {field.name}: match type {field.match_type} is not one of "
                    f"{', '.join(_MATCH_KINDS.values())}",
                )
            fields.append(FieldInfo(field.id, field.name, field.bitwidth, kind))
        for ref in table.action_refs:
            self.action(ref.id)
        counters = [
            self.direct_counters[number]
            for number in table.direct_resource_ids
            if number in self.direct_counters
        ]
        return TableInfo(
            table.preamble.id,
            name,
            tuple(fields),
            MappingProxyType({ref.id: ref.scope for ref in table.action_refs}),
            counters[0] if counters else None,
            table.is_const_table,
        )


def _action(action: Any) -> ActionInfo:
    params = tuple(ParamInfo(p.id, p.name, p.bitwidth) for p in action.params)
    return ActionInfo(action.preamble.id, action.preamble.name, params)


def _counter(counter: Any) -> CounterInfo:
    unit = counter.spec.unit
    return CounterInfo(
        counter.preamble.id,
        counter.preamble.name,
        unit in (p4info_pb2.CounterSpec.PACKETS, p4info_pb2.CounterSpec.BOTH),
        unit in (p4info_pb2.CounterSpec.BYTES, p4info_pb2.CounterSpec.BOTH),
    )


def _register(register: Any) -> RegisterInfo:
    # One of `bit`, `int` and `varbit` is set when the element is a bit string at all.
    spec = register.type_spec.bitstring
    signed = spec.HasField("int")
    width = spec.int.bitwidth if signed else spec.bit.bitwidth
    return RegisterInfo(register.preamble.id, register.preamble.name, width, signed)


def _index(kind: str, items: Iterable[_T]) -> dict[int, _T]:
    found: dict[int, _T] = {}
    for item in items:
        if item.id == 0 or item.id in found:
            raise SwitchError(
                "INVALID_ARGUMENT",
                f"the P4Info gives the {kind} {item.name} the id {item.id:#x}, which is "
                f"{'no id' if item.id == 0 else f'that of {found[item.id].name}'}",
            )
        found[item.id] = item
    return found


def _find(kind: str, known: Mapping[int, _T], number: int) -> _T:
    if number not in known:
        raise SwitchError(
            "NOT_FOUND", f"no {kind} has the id {number:#x}; the program has {_listed(known)}"
        )
    return known[number]


def _listed(known: Mapping[int, _T]) -> str:
    items = sorted(known.values(), key=lambda item: item.name)
    text = ", ".join(f"{item.name} ({item.id:#x})" for item in items[:_SHOWN_NAMES])
    more = len(items) - _SHOWN_NAMES
    return (text or "none") + (f" and {more} more" if more > 0 else "")
