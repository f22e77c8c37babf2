"""The server as such: addresses, its end, limits, and whatever bytes a client sends."""

from __future__ import annotations

import random
import socket
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from p4.v1 import p4runtime_pb2 as p4rt
from p4runtime_rig import (
    OBJECTS,
    TIMEOUT,
    Client,
    Config,
    Names,
    Update,
    exact,
    lpm,
    optional,
    range_,
    ternary,
)

import p4emu
from p4emu.p4runtime import Server
from p4emu.p4runtime import server as server_module
from p4emu.p4runtime.server import AddressError

OURS = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
"""What a client gets for a mistake of the server, or when it does not answer."""


def test_capabilities_name_the_version(address: str) -> None:
    with Client(address) as client:
        answer = client.stub.Capabilities(p4rt.CapabilitiesRequest(), timeout=TIMEOUT)
    assert answer.p4runtime_api_version == "1.4.1"


def test_an_address_in_use_and_one_that_is_none_are_told_apart(switch: p4emu.Switch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(AddressError, match=f"cannot listen at {address}"):
            Server(switch, address).start()
    for wrong in ("nowhere", "127.0.0.1", ":1", "127.0.0.1:x", "127.0.0.1:70000"):
        with pytest.raises(AddressError, match="given as HOST:PORT"):
            Server(switch, wrong).start()


def test_stopping_ends_streams_with_a_reason_and_frees_the_address(switch: p4emu.Switch) -> None:
    server = Server(switch, "127.0.0.1:0")
    address = server.start()
    with Client(address) as client:
        client.arbitrate()
        server.stop()
        error = client.receive()
        assert error.code() == grpc.StatusCode.UNAVAILABLE
        assert "shutting down" in error.details()
    server.stop()
    with Server(switch, address), Client(address) as client:
        assert client.arbitrate().arbitration.status.code == 0


def test_streams_have_a_limit_and_ended_ones_do_not_count(
    switch: p4emu.Switch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MAX_STREAMS", 2)
    server = Server(switch, "127.0.0.1:0")
    address = server.start()
    with Client(address, 1) as one, Client(address, 2) as two, Client(address, 3) as three:
        one.arbitrate()
        two.arbitrate()
        error = three.arbitrate()
        assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        two.close()
        assert one.receive().arbitration.status.code == 6  # its loss of the primary role
        assert one.receive().arbitration.status.code == 5  # the end of the other
        with Client(address, 4) as four:
            assert four.arbitrate().arbitration.status.code == 0
    server.stop()


def test_large_reads_arrive_whole(client: Client, names: Names, switch: p4emu.Switch) -> None:
    entries = [
        names.entry("I.lpm_table", lpm(1, bytes([10, i >> 8, i & 255, 1]), 32),
                    action=names.action("I.drop"))
        for i in range(1024)
    ]  # fmt: skip
    client.insert(*entries)
    assert len(client.read(names.entry("I.lpm_table"))) == 1024


def test_an_unsupported_atomicity_is_refused_before_anything_changes(
    client: Client, names: Names
) -> None:
    entry = names.entry("I.lpm_table", action=names.action("I.drop"))
    for atomicity in (p4rt.WriteRequest.ROLLBACK_ON_ERROR, 9):
        with pytest.raises(grpc.RpcError) as caught:
            client.write((Update.INSERT, entry), atomicity=atomicity)
        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert client.read(entry) == []


def test_an_update_without_a_type_is_refused(client: Client, names: Names) -> None:
    entry = names.entry("I.lpm_table", action=names.action("I.drop"))
    for kind, entity in ((0, entry), (9, entry), (Update.INSERT, p4rt.Entity())):
        with pytest.raises(grpc.RpcError) as caught:
            client.write((kind, entity))
        assert caught.value.code() == grpc.StatusCode.UNKNOWN
    assert client.read(entry) == []


# --- whatever a client sends -------------------------------------------------------------------


def _samples(names: Names) -> list[Any]:
    """Entities that are right, to be damaged."""
    forward = names.action("I.forward", b"\x01")
    counter, cell, group = p4rt.Entity(), p4rt.Entity(), p4rt.Entity()
    counter.counter_entry.counter_id, counter.counter_entry.index.index = names["I.seen"], 1
    counter.counter_entry.data.packet_count = 5
    cell.register_entry.register_id = names["I.signed_cells"]
    cell.register_entry.index.index, cell.register_entry.data.bitstring = 1, b"\x01"
    multicast = group.packet_replication_engine_entry.multicast_group_entry
    multicast.multicast_group_id = 3
    multicast.replicas.add(port=b"\x01", instance=1)
    return [
        names.entry("I.exact_table", exact(1, b"\x01"), exact(2, b"\x02"), action=forward),
        names.entry("I.lpm_table", lpm(1, b"\x0a\0\0\0", 8), action=forward),
        names.entry("I.ternary_table", ternary(1, b"\x01", b"\x01"), range_(2, b"\x01", b"\x02"),
                    optional(3, b"\x01"), action=forward, priority=1),
        counter, cell, group,
    ]  # fmt: skip


def _code(call: Any) -> grpc.StatusCode:
    try:
        call()
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def _damaged(message: Any, choose: random.Random) -> Any | None:
    """A message with some of its bytes changed; None where that makes no message."""
    raw = bytearray(message.SerializeToString())
    for _ in range(choose.randint(1, 3)):
        at = choose.randrange(len(raw))
        if choose.random() < 0.5:
            raw[at] = choose.randrange(256)
        else:
            raw[at : at + choose.randrange(3)] = choose.randbytes(choose.randrange(3))
    try:
        return type(message).FromString(bytes(raw))
    except Exception:
        return None


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
def test_damaged_messages_get_a_status_and_do_no_harm(
    client: Client, names: Names, seed: int
) -> None:
    choose = random.Random(seed)
    entity = _damaged(choose.choice(_samples(names)), choose)
    if entity is None:
        return
    kind = choose.choice([Update.INSERT, Update.MODIFY, Update.DELETE])
    assert _code(lambda: client.write((kind, entity))) not in OURS
    assert _code(lambda: client.read(entity)) not in OURS


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
def test_damaged_p4infos_get_a_status(client: Client, program: p4emu.Program, seed: int) -> None:
    info = _damaged(program.p4info, random.Random(seed))
    if info is not None:
        code = _code(lambda: client.set_pipeline(Config.VERIFY, info, OBJECTS.read_bytes()))
        assert code not in OURS


def _nested_registers() -> bytes:
    """A ReadRequest for a register with tuples in tuples, far down."""
    data = b""
    for field in [b"\x0a", b"\x22"] * 5000 + [b"\x1a", b"\x5a", b"\x12"]:
        data = field + _varint(len(data)) + data
    return data


def _varint(value: int) -> bytes:
    """A length as protobuf has it: seven bits a byte, the lowest first."""
    more = [0x80 | value >> shift & 0x7F for shift in range(0, value.bit_length() - 7, 7)]
    return bytes([*more, value >> 7 * len(more)])


NO_MESSAGES = [
    b"\xff" * 40,
    b"\x08",  # a field without its value
    b"\x0b" * 50_000,  # groups in groups
]
"""For any kind of message; protobuf's errors for them are of several types."""


@pytest.mark.parametrize("method", ["Write", "Read", "Capabilities"])
def test_bytes_that_are_no_message_do_not_stop_the_server(client: Client, method: str) -> None:
    make = client.channel.unary_stream if method == "Read" else client.channel.unary_unary
    call = make(
        f"/p4.v1.P4Runtime/{method}",
        request_serializer=None,  # bytes as they are
        response_deserializer=None,
    )
    wrong = {"Write": [b"\x32\x01\xff"], "Read": [b"\x1a\x01\xff", _nested_registers()]}
    for data in NO_MESSAGES + wrong.get(method, []):  # text that is no UTF-8, as a role
        code = _code(lambda data=data: list(call(data, timeout=TIMEOUT)))
        assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert client.arbitrate().arbitration.status.code == 0


def test_garbage_on_the_stream_ends_that_stream_only(address: str, client: Client) -> None:
    no_text = b"\x0a\x05\x12\x03\x1a\x01\xff"  # a role's name
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        call = channel.stream_stream(
            "/p4.v1.P4Runtime/StreamChannel",
            request_serializer=None,
            response_deserializer=None,
        )
        for data in [*NO_MESSAGES, no_text]:
            code = _code(lambda data=data: list(call(iter([data]), timeout=TIMEOUT)))
            assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert client.arbitrate().arbitration.status.code == 0
