"""`Server`: P4Runtime 1.4 over gRPC for one switch.

Each method of the service checks who asks and for which device, and hands over; what a request
means is decided in the modules beside this one. Whatever a client sends, it gets a status: what is
not a refusal but a mistake of ours is logged and answered with INTERNAL.

A stream takes a thread while it is open, so there is a limit to them; other calls have threads of
their own beyond that.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import grpc
from google.rpc import code_pb2
from p4.v1 import p4runtime_pb2 as p4rt

from p4emu.errors import SwitchError
from p4emu.p4runtime import entities
from p4emu.p4runtime.arbitration import Arbitration, Client
from p4emu.p4runtime.pipeline import Pipeline
from p4emu.p4runtime.rpc import handlers
from p4emu.p4runtime.status import abort, abort_write
from p4emu.p4runtime.target import Target

if TYPE_CHECKING:
    from p4emu.switch import Switch

API_VERSION = "1.4.1"
"""Of P4Runtime, as in the messages' package."""

MAX_STREAMS = 32
"""Clients connected at a time."""

_CALL_THREADS = 8
_MAX_MESSAGE_BYTES = 64 << 20
"""A program with hundreds of registers has a P4Info larger than gRPC's default limit of 4 MiB."""

_READ_BATCH = 500
"""Entities in one answer of `Read`, so that answers stay within that default for other clients."""

_STOP_MARGIN = 5.0
"""Seconds for gRPC to end calls that it has cancelled; they are abandoned after that."""

_OUR_MISTAKE = "a mistake of the server; its log has the details"

_log = logging.getLogger(__name__)


class AddressError(OSError):
    """The server cannot listen at the address it was given."""


class Server:
    """A P4Runtime server. Use it as a context manager, or `start` and `stop` it.

    Parameters
    ----------
    switch
        What it controls; with a program, or without one until a client sends one.
    address
        HOST:PORT; port 0 for any that is free.
    device_id
        By which clients address the switch.
    device_config
        The bundle of the switch's program, for clients that ask for it.
    """

    def __init__(
        self, switch: Switch, address: str, device_id: int = 1, *, device_config: bytes = b""
    ) -> None:
        self._address = address
        self._service = _Service(Pipeline(switch, device_config), device_id)
        self._server: grpc.Server | None = None

    def start(self) -> str:
        """Begin to serve.

        Returns
        -------
        str
            The address it listens at, with the port it got.

        Raises
        ------
        AddressError
            Another program uses the address, or it is none of this machine's.
        """
        host, _, port = self._address.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 0xFFFF:
            raise AddressError(
                f"a gRPC address is given as HOST:PORT, such as 127.0.0.1:9559; "
                f"got {self._address!r}"
            )
        threads = ThreadPoolExecutor(MAX_STREAMS + _CALL_THREADS, thread_name_prefix="p4runtime")
        server = grpc.server(
            threads,
            options=[
                # Two servers at one port would each get some of the connections.
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
                ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
            ],
        )
        server.add_generic_rpc_handlers((handlers(self._service),))
        try:
            bound = server.add_insecure_port(self._address)
        except RuntimeError:
            bound = 0
        if bound == 0:
            threads.shutdown()
            raise AddressError(
                f"cannot listen at {self._address}: another program uses the port, or the host is "
                "not an address of this machine; choose another address, or port 0 for a free one"
            )
        server.start()
        self._server = server
        return f"{host}:{bound}"

    def stop(self, grace: float = 1.0) -> None:
        """End all streams, wait up to `grace` seconds for calls, and stop. May be called again."""
        server, self._server = self._server, None
        if server is not None:
            stopped = server.stop(grace)
            self._service.end_streams()
            stopped.wait(grace + _STOP_MARGIN)

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class _Service:
    """The service's methods, with gRPC's names."""

    def __init__(self, pipeline: Pipeline, device_id: int) -> None:
        self._pipeline = pipeline
        self._device_id = device_id
        self._arbitration = Arbitration(device_id)
        self._streams: set[_Stream] = set()
        self._streams_lock = threading.Lock()

    # --- calls -----------------------------------------------------------------------------------

    def Write(self, request: Any, context: grpc.ServicerContext) -> Any:
        outcomes: list[SwitchError | None] = []
        with _refusals(context):
            self._check_primary(request)
            if request.atomicity != p4rt.WriteRequest.CONTINUE_ON_ERROR:
                raise SwitchError(
                    "UNIMPLEMENTED",
                    "updates are applied one by one, whether others fail or not; only the "
                    f"atomicity CONTINUE_ON_ERROR is supported, got {request.atomicity}",
                )
            with self._pipeline.writing() as target:
                outcomes = [_outcome(target, update) for update in request.updates]
        if any(outcomes):
            abort_write(context, outcomes)
        return p4rt.WriteResponse()

    def Read(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        found: list[Any] = []
        with _refusals(context):
            self._check_device(request)
            # Read as a whole before the first answer: a slow client must not hold up the others.
            with self._pipeline.reading() as target:
                for wanted in request.entities:
                    found.extend(entities.read(target, wanted))
        for start in range(0, len(found), _READ_BATCH):
            yield p4rt.ReadResponse(entities=found[start : start + _READ_BATCH])

    def SetForwardingPipelineConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        with _refusals(context):
            self._check_primary(request)
            config = request.config if request.HasField("config") else None
            self._pipeline.set(request.action, config)
        return p4rt.SetForwardingPipelineConfigResponse()

    def GetForwardingPipelineConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        answer = p4rt.GetForwardingPipelineConfigResponse()
        with _refusals(context):
            self._check_device(request)
            config = self._pipeline.get()
            kinds = p4rt.GetForwardingPipelineConfigRequest
            wanted = {
                kinds.ALL: ("p4info", "p4_device_config"),
                kinds.COOKIE_ONLY: (),
                kinds.P4INFO_AND_COOKIE: ("p4info",),
                kinds.DEVICE_CONFIG_AND_COOKIE: ("p4_device_config",),
            }.get(request.response_type)
            if wanted is None:
                raise SwitchError(
                    "INVALID_ARGUMENT", f"{request.response_type} is no response type"
                )
            if "p4info" in wanted:
                answer.config.p4info.CopyFrom(config.p4info)
            if "p4_device_config" in wanted:
                answer.config.p4_device_config = config.p4_device_config
            if config.HasField("cookie"):
                answer.config.cookie.CopyFrom(config.cookie)
        return answer

    def Capabilities(self, request: Any, context: grpc.ServicerContext) -> Any:
        return p4rt.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    def _check_device(self, request: Any) -> None:
        if request.device_id != self._device_id:
            raise SwitchError(
                "NOT_FOUND",
                f"no device {request.device_id} here; this is device {self._device_id}",
            )

    def _check_primary(self, request: Any) -> None:
        self._check_device(request)
        self._arbitration.check_primary(request.role, request.election_id)

    # --- the stream ------------------------------------------------------------------------------

    def StreamChannel(
        self, requests: Iterator[Any], context: grpc.ServicerContext
    ) -> Iterator[Any]:
        stream = _Stream()
        with self._streams_lock:
            full = len(self._streams) >= MAX_STREAMS
            if not full:
                self._streams.add(stream)
        if full:
            abort(
                context,
                SwitchError("RESOURCE_EXHAUSTED", f"{MAX_STREAMS} clients are connected already"),
            )
        try:
            # False where the call has ended already, and the callback never comes.
            if not context.add_callback(stream.end):
                return
            threading.Thread(
                target=self._listen, args=(stream, requests), name="p4runtime-stream", daemon=True
            ).start()
            yield from iter(stream.messages.get, None)
            if stream.error is not None:
                abort(context, stream.error)
        finally:
            self._arbitration.leave(stream.client)
            with self._streams_lock:
                self._streams.discard(stream)

    def _listen(self, stream: _Stream, requests: Iterator[Any]) -> None:
        try:
            for request in requests:
                self._handle(stream.client, request)
        except SwitchError as error:
            stream.end(error)
        except grpc.RpcError:
            stream.end()  # the client is gone
        except Exception:
            _log.exception("a P4Runtime stream failed")
            stream.end(SwitchError("INTERNAL", _OUR_MISTAKE))
        else:
            stream.end()

    def _handle(self, client: Client, request: Any) -> None:
        kind = request.WhichOneof("update")
        if kind == "arbitration":
            self._arbitration.update(client, request.arbitration)
            return
        if kind is None:
            raise SwitchError("INVALID_ARGUMENT", "the stream message is empty")
        answer = p4rt.StreamMessageResponse()
        answer.error.canonical_code = code_pb2.UNIMPLEMENTED
        answer.error.message = f"{kind} is not supported"
        answer.error.space = "p4emu"
        client.send(answer)

    def end_streams(self) -> None:
        """End every stream with UNAVAILABLE."""
        with self._streams_lock:
            streams = list(self._streams)
        for stream in streams:
            stream.end(SwitchError("UNAVAILABLE", "the switch is shutting down"))


class _Stream:
    """One open StreamChannel: what is to be sent, None at the end, and the status it ends with."""

    def __init__(self) -> None:
        self.messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.error: SwitchError | None = None
        self.client = Client(self.messages.put)

    def end(self, error: SwitchError | None = None) -> None:
        """End it, with a status if there is an error. The first error counts."""
        self.error = self.error or error
        self.messages.put(None)


def _outcome(target: Target, update: Any) -> SwitchError | None:
    """Apply an update; the error if it was refused."""
    try:
        entities.write(target, update)
    except SwitchError as error:
        return error
    return None


@contextmanager
def _refusals(context: grpc.ServicerContext) -> Iterator[None]:
    """Turn what goes wrong inside into the call's status."""
    try:
        yield
    except SwitchError as error:
        abort(context, error)
    except Exception:
        _internal_error(context)


def _internal_error(context: grpc.ServicerContext) -> NoReturn:
    _log.exception("a P4Runtime call failed")
    context.abort(grpc.StatusCode.INTERNAL, _OUR_MISTAKE)
    raise AssertionError("abort raises")
