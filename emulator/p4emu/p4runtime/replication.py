"""Multicast groups: entries of the packet replication engine.

P4Runtime Specification, section 9.5. Clone sessions are refused. What encode makes, decode takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from p4.v1 import p4runtime_pb2 as p4rt

from p4emu.errors import SwitchError
from p4emu.p4runtime.target import Target
from p4emu.p4runtime.values import decode, encode

_PORT_BITS = 9
_MAX_GROUP = (1 << 16) - 1


def write_replication(target: Target, kind: int, message: Any) -> None:
    """INSERT, MODIFY or DELETE a multicast group."""
    if _type(message) is None:
        raise SwitchError("INVALID_ARGUMENT", "the packet replication engine entry is empty")
    entry = message.multicast_group_entry
    group = entry.multicast_group_id
    if not 0 < group <= _MAX_GROUP:
        raise SwitchError("INVALID_ARGUMENT", f"multicast group {group} is not in 1..{_MAX_GROUP}")
    exists = group in target.switch.multicast_groups()
    if kind == p4rt.Update.INSERT and exists:
        raise SwitchError("ALREADY_EXISTS", f"multicast group {group} exists; MODIFY changes it")
    if kind != p4rt.Update.INSERT and not exists:
        raise SwitchError("NOT_FOUND", f"no multicast group {group}")
    note = ("multicast group", group)
    if kind == p4rt.Update.DELETE:
        target.switch.delete_multicast_group(group)
        target.notes.pop(note, None)
        return
    replicas = [_decode_replica(group, replica) for replica in entry.replicas]
    if len(set(replicas)) != len(replicas):
        raise SwitchError(
            "INVALID_ARGUMENT", f"multicast group {group} has a (port, instance) pair twice"
        )
    target.switch.set_multicast_group(group, replicas)
    # Ports are answered in the form the client used, which is part of what it wrote.
    as_bytes = any(replica.WhichOneof("port_kind") == "port" for replica in entry.replicas)
    target.notes[note] = (as_bytes, entry.metadata)


def read_replication(target: Target, message: Any) -> Iterator[Any]:
    """The groups a request asks for; an unset or zero id means all."""
    _type(message)
    wanted = message.multicast_group_entry.multicast_group_id
    groups = target.switch.multicast_groups()
    for group in sorted(groups):
        if wanted not in (0, group):
            continue
        as_bytes, metadata = target.notes.get(("multicast group", group), (False, b""))
        entity = p4rt.Entity()
        answer = entity.packet_replication_engine_entry.multicast_group_entry
        answer.multicast_group_id, answer.metadata = group, metadata
        for port, instance in groups[group]:
            replica = answer.replicas.add(instance=instance)
            if as_bytes:
                replica.port = encode(port)
            else:
                replica.egress_port = port
        yield entity


def _type(message: Any) -> str | None:
    found: str | None = message.WhichOneof("type")
    if found not in (None, "multicast_group_entry"):
        raise SwitchError("UNIMPLEMENTED", f"{found} is not supported")
    return found


def _decode_replica(group: int, replica: Any) -> tuple[int, int]:
    kind = replica.WhichOneof("port_kind")
    what = f"multicast group {group}"
    if kind is None:
        raise SwitchError("INVALID_ARGUMENT", f"{what}: a replica has no port")
    if kind == "port":
        return decode(replica.port, _PORT_BITS, f"{what}, port"), replica.instance
    return replica.egress_port, replica.instance
