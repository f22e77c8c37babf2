"""Names to P4Runtime messages, by means of a P4Info. Knows the program's names from its users only.

Main type: `Schema`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2 as p4rt

from pycollective.controller.errors import ProgramMismatchError


class Schema:
    """A program's tables, actions, counters and registers by name.

    Raises
    ------
    ProgramMismatchError
        From every method, for a name that the program does not have.
    """

    def __init__(self, p4info: p4info_pb2.P4Info) -> None:
        self._tables = {t.preamble.name: t for t in p4info.tables}
        self._actions = {a.preamble.name: a for a in p4info.actions}
        self._counters = {c.preamble.name: c for c in p4info.counters}
        self._register_sizes = {r.preamble.name: int(r.size) for r in p4info.registers}
        self._table_by_id = {
            t.preamble.id: (t.preamble.name, {field.id: field.name for field in t.match_fields})
            for t in p4info.tables
        }
        self._action_by_id = {
            a.preamble.id: (a.preamble.name, {param.id: param.name for param in a.params})
            for a in p4info.actions
        }

    def _find(self, kind: str, known: Mapping[str, Any], name: str) -> Any:
        if name not in known:
            raise ProgramMismatchError(
                f"the switch's program has no {kind} {name!r}, it has {sorted(known) or 'none'}; "
                "load p4/allreduce.p4 of this version of pycollective"
            )
        return known[name]

    def exact_entry(
        self,
        table: str,
        keys: Mapping[str, int],
        action: str | None = None,
        params: Mapping[str, int] | None = None,
    ) -> p4rt.Entity:
        """An entry of a table with exact keys; without action: to delete it, or to read it."""
        info = self._find("table", self._tables, table)
        entity = p4rt.Entity()
        entry = entity.table_entry
        entry.table_id = info.preamble.id
        fields = {field.name: field for field in info.match_fields}
        for name, value in keys.items():
            field = self._find(f"key of table {table}", fields, name)
            match = entry.match.add()
            match.field_id = field.id
            match.exact.value = canonical(value)
        if action is not None:
            found = self._find("action", self._actions, action)
            entry.action.action.action_id = found.preamble.id
            formal = {param.name: param for param in found.params}
            for name, value in (params or {}).items():
                param = entry.action.action.params.add()
                param.param_id = self._find(f"parameter of {action}", formal, name).id
                param.value = canonical(value)
        return entity

    def names(self, entry: p4rt.TableEntry) -> tuple[str, str]:
        """Table and action of an entry that was read."""
        table, _ = self._table_by_id[entry.table_id]
        action, _ = self._action_by_id[entry.action.action.action_id]
        return table, action

    def exact_values(self, entry: p4rt.TableEntry) -> dict[str, int]:
        """The keys of an entry, which was read, of a table with exact keys."""
        _, names = self._table_by_id[entry.table_id]
        return {names[m.field_id]: int.from_bytes(m.exact.value, "big") for m in entry.match}

    def params(self, entry: p4rt.TableEntry) -> dict[str, int]:
        """The action parameters of an entry that was read."""
        _, names = self._action_by_id[entry.action.action.action_id]
        return {
            names[p.param_id]: int.from_bytes(p.value, "big") for p in entry.action.action.params
        }

    def counter_cell(self, counter: str, index: int) -> p4rt.Entity:
        """A cell of an indirect counter, to read it."""
        entity = p4rt.Entity()
        entity.counter_entry.counter_id = self._find("counter", self._counters, counter).preamble.id
        entity.counter_entry.index.index = index
        return entity

    def register_sizes(self) -> Mapping[str, int]:
        """Elements of every register array."""
        return self._register_sizes


def group(number: int, replicas: Sequence[tuple[int, int]]) -> p4rt.Entity:
    """A multicast group of (port, instance) replicas."""
    entity = p4rt.Entity()
    entry = entity.packet_replication_engine_entry.multicast_group_entry
    entry.multicast_group_id = number
    for port, instance in replicas:
        replica = entry.replicas.add()
        replica.egress_port = port
        replica.instance = instance
    return entity


def update(kind: p4rt.Update.Type, entity: p4rt.Entity) -> p4rt.Update:
    """An update of one entity."""
    result = p4rt.Update(type=kind)
    result.entity.CopyFrom(entity)
    return result


def canonical(value: int) -> bytes:
    """The shortest big-endian bytes of a value (P4Runtime Specification, section 8.4)."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
