"""The kinds of objects a client can write and read: one table, a writer and a reader for each.

Kinds that are not in `ENTITIES` are refused by name. Nothing here knows gRPC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from p4.v1 import p4runtime_pb2 as p4rt

from p4emu.errors import SwitchError
from p4emu.p4runtime import cells, replication, tables
from p4emu.p4runtime.target import Target


@dataclass(frozen=True, slots=True)
class EntityKind:
    """How one kind of entity is written and read."""

    write: Callable[[Target, int, Any], None]
    read: Callable[[Target, Any], Iterator[Any]]


ENTITIES: Mapping[str, EntityKind] = MappingProxyType(
    {
        "table_entry": EntityKind(tables.write_table_entry, tables.read_table_entries),
        "direct_counter_entry": EntityKind(
            tables.write_direct_counter, tables.read_direct_counters
        ),
        "counter_entry": EntityKind(cells.write_counter, cells.read_counters),
        "register_entry": EntityKind(cells.write_register, cells.read_registers),
        "packet_replication_engine_entry": EntityKind(
            replication.write_replication, replication.read_replication
        ),
    }
)
"""By the name of the field in `p4.v1.Entity`."""


def write(target: Target, update: Any) -> None:
    """Apply one `Update`.

    Raises
    ------
    SwitchError
        It cannot be applied; nothing has changed.
    """
    if update.type not in (p4rt.Update.INSERT, p4rt.Update.MODIFY, p4rt.Update.DELETE):
        raise SwitchError(
            "INVALID_ARGUMENT", f"an update is INSERT, MODIFY or DELETE, got type {update.type}"
        )
    kind, message = _kind(update.entity)
    kind.write(target, update.type, message)


def read(target: Target, entity: Any) -> Iterator[Any]:
    """All entities that match one of a `ReadRequest`. Raises SwitchError."""
    kind, message = _kind(entity)
    return kind.read(target, message)


def _kind(entity: Any) -> tuple[EntityKind, Any]:
    name = entity.WhichOneof("entity")
    if name is None:
        raise SwitchError("INVALID_ARGUMENT", "the entity is empty")
    if name not in ENTITIES:
        raise SwitchError(
            "UNIMPLEMENTED", f"{name} is not supported; supported are {', '.join(ENTITIES)}"
        )
    return ENTITIES[name], getattr(entity, name)
