"""Which client may write, and what the others are told."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.rpc import code_pb2
from p4.v1 import p4runtime_pb2 as p4rt
from p4runtime_rig import Client, Names

OK, TAKEN, NONE = code_pb2.OK, code_pb2.ALREADY_EXISTS, code_pb2.NOT_FOUND


def told(message: Any) -> tuple[int, int]:
    """Status and election id of an arbitration message."""
    return message.arbitration.status.code, message.arbitration.election_id.low


def denied(client: Client, names: Names) -> bool:
    """Whether a write is refused for want of the primary role."""
    entity = names.entry("I.lpm_table", action=names.action("I.drop"))
    entity.table_entry.is_default_action = True
    try:
        client.modify(entity)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.PERMISSION_DENIED:
            return True
        raise
    return False


def test_the_highest_election_id_is_primary_and_the_one_before_is_demoted(
    address: str, names: Names
) -> None:
    with Client(address, 5) as first, Client(address, 9) as second, Client(address, 7) as third:
        assert told(first.arbitrate()) == (OK, 5)
        assert not denied(first, names)
        assert told(second.arbitrate()) == (OK, 9)
        assert told(first.receive()) == (TAKEN, 9)
        assert denied(first, names)
        assert not denied(second, names)
        assert told(third.arbitrate()) == (TAKEN, 9)
        assert denied(third, names)
        assert third.read(names.entry("I.lpm_table")) == []  # backups read


def test_when_the_primary_leaves_nobody_is_until_an_id_is_high_enough(
    address: str, names: Names
) -> None:
    with Client(address, 3) as backup:
        with Client(address, 8) as primary:
            assert told(primary.arbitrate()) == (OK, 8)
            assert told(backup.arbitrate()) == (TAKEN, 8)
        assert told(backup.receive()) == (NONE, 8)
        assert denied(backup, names)
        assert told(backup.arbitrate(7)) == (NONE, 8)  # the highest ever seen counts
        assert told(backup.arbitrate(8)) == (OK, 8)
        assert not denied(backup, names)


def test_a_primary_can_step_down(address: str, names: Names) -> None:
    with Client(address, 8) as client, Client(address, 2) as other:
        assert told(client.arbitrate()) == (OK, 8)
        assert told(other.arbitrate()) == (TAKEN, 8)
        assert told(client.arbitrate(0)) == (NONE, 8)
        assert told(other.receive()) == (NONE, 8)
        assert denied(client, names)


def test_an_election_id_belongs_to_one_client(address: str) -> None:
    with Client(address, 4) as client, Client(address, 4) as twin:
        assert told(client.arbitrate()) == (OK, 4)
        error = twin.arbitrate()
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "election id 4" in error.details()
        assert told(client.arbitrate()) == (OK, 4)  # not disturbed


def test_a_client_without_an_election_id_is_a_backup(address: str, names: Names) -> None:
    with Client(address, 0) as client, Client(address, 0) as other:
        assert told(client.arbitrate()) == (NONE, 0)
        assert told(other.arbitrate()) == (NONE, 0)
        assert denied(client, names)


def test_roles_have_primaries_of_their_own(address: str, names: Names) -> None:
    with Client(address, 4) as client, Client(address, 4, role="statistics") as other:
        assert told(client.arbitrate()) == (OK, 4)
        answer = other.arbitrate()
        assert told(answer) == (OK, 4)
        assert answer.arbitration.role.name == "statistics"
        assert not denied(client, names)
        assert not denied(other, names)
        other.role = "another"
        assert other.arbitrate(5).code() == grpc.StatusCode.FAILED_PRECONDITION


def test_without_a_stream_nobody_writes(address: str, names: Names) -> None:
    with Client(address, 4) as client:
        assert denied(client, names)


def test_another_device_is_not_found(address: str, names: Names) -> None:
    with Client(address, 4) as client:
        error = client.arbitrate(device_id=2)
        assert error.code() == grpc.StatusCode.NOT_FOUND
        assert "this is device 1" in error.details()
        with pytest.raises(grpc.RpcError) as caught:
            client.read(names.entry("I.lpm_table"), device_id=2)
        assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_packet_out_and_digest_acknowledgements_are_answered_as_not_supported(
    client: Client,
) -> None:
    message = p4rt.StreamMessageRequest()
    message.packet.payload = b"frame"
    client.send(message)
    answer = client.receive()
    assert answer.error.canonical_code == code_pb2.UNIMPLEMENTED
    assert answer.error.message == "packet is not supported"


def test_an_empty_stream_message_ends_the_stream(client: Client) -> None:
    client.send(p4rt.StreamMessageRequest())
    assert client.receive().code() == grpc.StatusCode.INVALID_ARGUMENT
