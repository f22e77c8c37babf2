"""A P4Runtime client for tests: raw messages over a real channel, and names to ids.

It has no logic of the server's: tests build messages from the program's P4Info and look at what the
gRPC library gives back.
"""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc
from google.rpc import code_pb2, status_pb2
from p4.v1 import p4runtime_pb2 as p4rt
from p4.v1 import p4runtime_pb2_grpc

OBJECTS = Path(__file__).with_name("p4runtime_objects.p4")
TIMEOUT = 20.0
Match = p4rt.FieldMatch
Update = p4rt.Update
Config = p4rt.SetForwardingPipelineConfigRequest


class Names:
    """The P4Info's objects by name."""

    def __init__(self, p4info: Any) -> None:
        self._ids = {
            item.preamble.name: item.preamble.id
            for kind in (
                p4info.tables,
                p4info.actions,
                p4info.counters,
                p4info.direct_counters,
                p4info.registers,
            )
            for item in kind
        }

    def __getitem__(self, name: str) -> int:
        return self._ids[name]

    def action(self, name: str, *params: bytes) -> Any:
        action = p4rt.TableAction()
        action.action.action_id = self[name]
        for i, value in enumerate(params, 1):
            action.action.params.add(param_id=i, value=value)
        return action

    def entry(self, table: str, *matches: Any, action: Any = None, priority: int = 0) -> Any:
        entity = p4rt.Entity()
        entity.table_entry.table_id = self[table]
        entity.table_entry.match.extend(matches)
        entity.table_entry.priority = priority
        if action is not None:
            entity.table_entry.action.CopyFrom(action)
        return entity


def exact(number: int, value: bytes) -> Any:
    return Match(field_id=number, exact=Match.Exact(value=value))


def lpm(number: int, value: bytes, length: int) -> Any:
    return Match(field_id=number, lpm=Match.LPM(value=value, prefix_len=length))


def ternary(number: int, value: bytes, mask: bytes) -> Any:
    return Match(field_id=number, ternary=Match.Ternary(value=value, mask=mask))


def range_(number: int, low: bytes, high: bytes) -> Any:
    return Match(field_id=number, range=Match.Range(low=low, high=high))


def optional(number: int, value: bytes) -> Any:
    return Match(field_id=number, optional=Match.Optional(value=value))


class Client:
    """One channel with, once `arbitrate` was called, one stream."""

    def __init__(self, address: str, election_id: int = 1, role: str = "") -> None:
        self.channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(self.channel)
        self.election_id = election_id
        self.role = role
        self._requests: queue.Queue[Any] = queue.Queue()
        self.answers: queue.Queue[Any] = queue.Queue()
        self._reader: threading.Thread | None = None

    # --- stream

    def send(self, message: Any) -> None:
        if self._reader is None:
            stream = self.stub.StreamChannel(iter(self._requests.get, None))
            self._reader = threading.Thread(target=self._read, args=(stream,))
            self._reader.start()
        self._requests.put(message)

    def _read(self, stream: Any) -> None:
        try:
            for message in stream:
                self.answers.put(message)
            self.answers.put(None)
        except grpc.RpcError as error:
            self.answers.put(error)

    def receive(self) -> Any:
        return self.answers.get(timeout=TIMEOUT)

    def arbitrate(self, election_id: int | None = None, device_id: int = 1) -> Any:
        """Send an arbitration update; returns the answer, a message or the stream's error."""
        self.election_id = self.election_id if election_id is None else election_id
        message = p4rt.StreamMessageRequest()
        message.arbitration.device_id = device_id
        message.arbitration.election_id.low = self.election_id
        if self.role:
            message.arbitration.role.name = self.role
        self.send(message)
        return self.receive()

    # --- calls

    def write(self, *updates: tuple[int, Any], **fields: Any) -> None:
        request = p4rt.WriteRequest(device_id=1, role=self.role, **fields)
        request.election_id.low = self.election_id
        for kind, entity in updates:
            request.updates.add(type=kind, entity=entity)
        self.stub.Write(request, timeout=TIMEOUT)

    def insert(self, *entities: Any) -> None:
        self.write(*((Update.INSERT, entity) for entity in entities))

    def modify(self, *entities: Any) -> None:
        self.write(*((Update.MODIFY, entity) for entity in entities))

    def delete(self, *entities: Any) -> None:
        self.write(*((Update.DELETE, entity) for entity in entities))

    def read(self, *entities: Any, device_id: int = 1) -> list[Any]:
        request = p4rt.ReadRequest(device_id=device_id, entities=entities)
        answers = self.stub.Read(request, timeout=TIMEOUT)
        return [entity for answer in answers for entity in answer.entities]

    def set_pipeline(self, action: int, p4info: Any = None, config: bytes = b"") -> None:
        request = Config(device_id=1, action=action, role=self.role)
        request.election_id.low = self.election_id
        if p4info is not None:
            request.config.p4info.CopyFrom(p4info)
            request.config.p4_device_config = config
            request.config.cookie.cookie = 77
        self.stub.SetForwardingPipelineConfig(request, timeout=60.0)

    def get_pipeline(self, kind: int = 0) -> Any:
        request = p4rt.GetForwardingPipelineConfigRequest(device_id=1, response_type=kind)
        return self.stub.GetForwardingPipelineConfig(request, timeout=TIMEOUT).config

    # --- end

    def close(self) -> None:
        self._requests.put(None)
        self.channel.close()
        if self._reader is not None:
            self._reader.join(TIMEOUT)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def update_errors(error: Any) -> list[tuple[str, str]]:
    """The (code name, message) for each update of a failed Write."""
    assert error.code() == grpc.StatusCode.UNKNOWN, (error.code(), error.details())
    status = status_pb2.Status()
    status.ParseFromString(dict(error.trailing_metadata())["grpc-status-details-bin"])
    assert status.code == code_pb2.UNKNOWN
    found = []
    for detail in status.details:
        update = p4rt.Error()
        assert detail.Unpack(update)
        found.append((code_pb2.Code.Name(update.canonical_code), update.message))
    return found
