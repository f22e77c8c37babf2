"""Counters, registers and multicast groups over P4Runtime."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from p4.v1 import p4runtime_pb2 as p4rt
from p4runtime_rig import Client, Names, Update, exact, update_errors

import p4emu

FRAME = bytes.fromhex("02000000000102000000000208000a00000100010007")


def refusal(client: Client, kind: int, entity: Any) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as caught:
        client.write((kind, entity))
    (error,) = update_errors(caught.value)
    return error


def counter(number: int = 0, index: int | None = None, **data: int) -> Any:
    entity = p4rt.Entity()
    entity.counter_entry.counter_id = number
    if index is not None:
        entity.counter_entry.index.index = index
    if data:
        entity.counter_entry.data.CopyFrom(p4rt.CounterData(**data))
    return entity


def register(number: int = 0, index: int | None = None, value: bytes | None = None) -> Any:
    entity = p4rt.Entity()
    entity.register_entry.register_id = number
    if index is not None:
        entity.register_entry.index.index = index
    if value is not None:
        entity.register_entry.data.bitstring = value
    return entity


def group(number: int, *replicas: Any, metadata: bytes = b"") -> Any:
    entity = p4rt.Entity()
    entry = entity.packet_replication_engine_entry.multicast_group_entry
    entry.multicast_group_id, entry.metadata = number, metadata
    entry.replicas.extend(replicas)
    return entity


def test_counters_count_what_the_program_counts(
    client: Client, names: Names, switch: p4emu.Switch
) -> None:
    for port in (0, 2, 2):
        switch.process(port, FRAME)
    found = client.read(counter(names["I.seen"]))
    assert [e.counter_entry.index.index for e in found] == [0, 1, 2, 3]
    counted = [(e.counter_entry.data.packet_count, e.counter_entry.data.byte_count) for e in found]
    assert counted == [(1, len(FRAME)), (0, 0), (2, 2 * len(FRAME)), (0, 0)]
    assert client.read(counter(names["I.seen"], 2)) == found[2:3]
    (packets,) = client.read(counter(names["I.only_packets"], 0))
    assert (packets.counter_entry.data.packet_count, packets.counter_entry.data.byte_count) == (
        3,
        0,
    )
    assert len(client.read(counter())) == 4 + 8


def test_a_counter_is_set(client: Client, names: Names) -> None:
    wanted = counter(names["I.seen"], 3, packet_count=7, byte_count=2**40)
    client.modify(wanted)
    assert client.read(counter(names["I.seen"], 3)) == [wanted]


def test_registers_are_written_and_read_and_seen_by_the_program(
    client: Client, names: Names, switch: p4emu.Switch
) -> None:
    written = [
        register(names["I.unsigned_cells"], 0, b"\x0f\xff\xfe"),
        register(names["I.unsigned_cells"], 15, b"\x01\x00"),
        register(names["I.signed_cells"], 0, b"\xff"),  # -1
        register(names["I.signed_cells"], 3, b"\x07\xff\xff"),
    ]
    client.modify(*written)
    for entity in written:
        entry = entity.register_entry
        assert client.read(register(entry.register_id, entry.index.index)) == [entity]
    switch.process(1, FRAME)
    assert switch.read_register("I.unsigned_cells", 0) == 0xFFFFF
    (signed,) = client.read(register(names["I.signed_cells"], 0))
    assert signed.register_entry.data.bitstring == b"\xfe"
    whole = client.read(register(names["I.unsigned_cells"]))
    assert [e.register_entry.index.index for e in whole] == list(range(16))
    assert [e.register_entry.data.bitstring for e in whole[1:15]] == [b"\x00"] * 14
    assert len(client.read(register())) == 16 + 4


def test_cells_that_cannot_be_written_are_refused(client: Client, names: Names) -> None:
    seen, cells = names["I.seen"], names["I.unsigned_cells"]
    signed = names["I.signed_cells"]
    for kind, entity, code in [
        (Update.INSERT, counter(seen, 0, packet_count=1), "INVALID_ARGUMENT"),
        (Update.DELETE, register(cells, 0, b"\x01"), "INVALID_ARGUMENT"),
        (Update.MODIFY, counter(seen, None, packet_count=1), "INVALID_ARGUMENT"),
        (Update.MODIFY, counter(seen, 0, packet_count=-1), "INVALID_ARGUMENT"),
        (Update.MODIFY, counter(seen, 4, packet_count=1), "OUT_OF_RANGE"),
        (Update.MODIFY, counter(seen, -1, packet_count=1), "OUT_OF_RANGE"),
        (Update.MODIFY, counter(1, 0, packet_count=1), "NOT_FOUND"),
        (Update.MODIFY, register(cells, 16, b"\x01"), "OUT_OF_RANGE"),
        (Update.MODIFY, register(cells, 0, b"\x10\x00\x00"), "OUT_OF_RANGE"),
        (Update.MODIFY, register(signed, 0, b"\x08\x00\x00"), "OUT_OF_RANGE"),
        (Update.MODIFY, register(cells, 0, b""), "INVALID_ARGUMENT"),
        (Update.MODIFY, register(cells, 0), "INVALID_ARGUMENT"),
        (Update.MODIFY, register(1, 0, b"\x01"), "NOT_FOUND"),
    ]:
        found, message = refusal(client, kind, entity)
        assert found == code, (entity, message)
    assert all(not e.counter_entry.data.packet_count for e in client.read(counter(seen)))


def test_multicast_groups_replicate_and_are_read_back(
    client: Client, names: Names, switch: p4emu.Switch
) -> None:
    one = group(1, p4rt.Replica(egress_port=1, instance=1), p4rt.Replica(egress_port=2, instance=1))
    two = group(0xFFFF, p4rt.Replica(port=b"\x01\x00", instance=9), metadata=b"mine")
    client.insert(one, two)
    anything = group(0)
    assert client.read(anything) == [one, two]
    assert client.read(group(0xFFFF)) == [two]
    empty = p4rt.Entity()
    empty.packet_replication_engine_entry.SetInParent()
    assert client.read(empty) == [one, two]

    client.insert(
        names.entry(
            "I.exact_table",
            exact(1, b"\x02\0\0\0\0\x01"),
            exact(2, b"\0"),
            action=names.action("I.multicast", b"\x01"),
        )
    )
    assert sorted(port for port, _ in switch.process(3, FRAME)) == [1, 2]

    changed = group(1, p4rt.Replica(egress_port=4, instance=0))
    client.modify(changed)
    assert [port for port, _ in switch.process(3, FRAME)] == [4]
    client.delete(group(1))
    assert client.read(anything) == [two]


def test_multicast_groups_that_make_no_sense_are_refused(client: Client) -> None:
    replica = p4rt.Replica(egress_port=1, instance=1)
    client.insert(group(5, replica))
    for kind, entity, code in [
        (Update.INSERT, group(5, replica), "ALREADY_EXISTS"),
        (Update.MODIFY, group(6, replica), "NOT_FOUND"),
        (Update.DELETE, group(6), "NOT_FOUND"),
        (Update.INSERT, group(0, replica), "INVALID_ARGUMENT"),
        (Update.INSERT, group(0x10000, replica), "INVALID_ARGUMENT"),
        (Update.INSERT, group(7, replica, replica), "INVALID_ARGUMENT"),
        (Update.INSERT, group(7, p4rt.Replica(instance=1)), "INVALID_ARGUMENT"),
        (Update.INSERT, group(7, p4rt.Replica(egress_port=511)), "INVALID_ARGUMENT"),
        (Update.INSERT, group(7, p4rt.Replica(port=b"\x02\x00")), "OUT_OF_RANGE"),
        (
            Update.INSERT,
            group(7, p4rt.Replica(egress_port=1, instance=1 << 16)),
            "INVALID_ARGUMENT",
        ),
    ]:
        found, message = refusal(client, kind, entity)
        assert found == code, (entity, message)
    assert client.read(group(0)) == [group(5, replica)]


def test_what_is_not_supported_is_refused_by_name(client: Client) -> None:
    clone = p4rt.Entity()
    clone.packet_replication_engine_entry.clone_session_entry.session_id = 1
    code, message = refusal(client, Update.INSERT, clone)
    assert (code, message) == ("UNIMPLEMENTED", "clone_session_entry is not supported")
    for field in ("meter_entry", "direct_meter_entry", "action_profile_member", "digest_entry",
                  "action_profile_group", "value_set_entry", "extern_entry"):  # fmt: skip
        entity = p4rt.Entity()
        getattr(entity, field).SetInParent()
        code, message = refusal(client, Update.INSERT, entity)
        assert code == "UNIMPLEMENTED"
        assert message.startswith(f"{field} is not supported")
        with pytest.raises(grpc.RpcError) as caught:
            client.read(entity)
        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
