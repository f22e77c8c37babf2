"""A P4Runtime client: the pipeline, writing and reading. Knows nothing of jobs.

P4Runtime Specification 1.4: sections 7 (pipeline), 12 (write), 13 (read); section 5 is in
`primary`. One client is one controller with one election id on one device. Main type:
`P4RuntimeClient`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, TypeVar

import grpc
from google.rpc import code_pb2, status_pb2
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2 as p4rt
from p4.v1 import p4runtime_pb2_grpc

from pycollective.controller.errors import ControllerError, NotPrimaryError, SwitchRefusedError
from pycollective.controller.primary import Stream, become_primary, uint128

_T = TypeVar("_T")
_MAX_MESSAGE_BYTES = 64 << 20
"""A P4Info with hundreds of registers is larger than gRPC's default limit allows for safely."""


class P4RuntimeClient:
    """A primary controller's connection to one switch.

    Parameters
    ----------
    address
        HOST:PORT of the switch's P4Runtime server.
    device_id, election_id
        As the server expects; the client with the highest election id is primary.
    timeout
        Seconds to connect, for another client with the same election id to leave, and for each
        call.

    Raises
    ------
    ControllerError
        When nothing answers in time.
    NotPrimaryError
        When another controller is primary. Later, when another one has become it.
    """

    def __init__(
        self, address: str, *, device_id: int = 1, election_id: int = 1, timeout: float = 10.0
    ) -> None:
        self.address = address
        self.device_id = device_id
        self._election_id = uint128(election_id)
        self._timeout = timeout
        options = [
            ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
            # A switch on this machine or fabric is not behind a proxy.
            ("grpc.enable_http_proxy", 0),
        ]
        self._channel = grpc.insecure_channel(address, options=options)
        self._stub = p4runtime_pb2_grpc.P4RuntimeStub(self._channel)
        self._stream: Stream | None = None
        try:
            self._connect(election_id)
        except BaseException:
            self.close()
            raise

    def _connect(self, election_id: int) -> None:
        try:
            grpc.channel_ready_future(self._channel).result(timeout=self._timeout)
        except grpc.FutureTimeoutError:
            raise ControllerError(
                f"no P4Runtime server answered at {self.address} within {self._timeout:g} s; "
                "check that the switch runs (p4emu run ... --grpc-addr) and the address is right"
            ) from None
        try:
            self._stream = become_primary(self._stub, self.device_id, election_id, self._timeout)
        except NotPrimaryError as error:
            raise NotPrimaryError(f"{self._who()}: {error}") from None
        except TimeoutError:
            raise ControllerError(
                f"{self._who()} did not answer the arbitration request within {self._timeout:g} s"
            ) from None
        except grpc.RpcError as error:
            raise self._error(error, "make this controller primary") from None

    def _who(self) -> str:
        return f"the switch at {self.address}"

    # --- calls -----------------------------------------------------------------------------------

    def pipeline(self) -> p4info_pb2.P4Info:
        """The P4Info of the program that runs on the switch; empty when there is none."""
        request = p4rt.GetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            response_type=p4rt.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE,
        )
        try:
            answer = self._stub.GetForwardingPipelineConfig(request, timeout=self._timeout)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.FAILED_PRECONDITION:
                return p4info_pb2.P4Info()
            raise self._error(error, "read the pipeline") from None
        return answer.config.p4info

    def set_pipeline(
        self, p4info: p4info_pb2.P4Info, device_config: bytes, *, timeout: float = 60.0
    ) -> None:
        """Loads a program and begins with empty tables.

        Parameters
        ----------
        device_config
            For p4emu a source bundle (`p4emu.p4runtime.bundle`), for BMv2 its JSON.
        timeout
            Seconds; the switch compiles in this time.
        """
        request = p4rt.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            election_id=self._election_id,
            action=p4rt.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
        )
        request.config.p4info.CopyFrom(p4info)
        request.config.p4_device_config = device_config
        self._call(
            lambda: self._stub.SetForwardingPipelineConfig(request, timeout=timeout),
            "load the program",
        )

    def write(self, updates: Iterable[p4rt.Update]) -> None:
        """Applies updates in order.

        Raises
        ------
        SwitchRefusedError
            For the first update that failed; the others of the batch may have been applied.
        """
        request = p4rt.WriteRequest(device_id=self.device_id, election_id=self._election_id)
        request.updates.extend(updates)
        self._call(lambda: self._stub.Write(request, timeout=self._timeout), "write")

    def read(self, entities: Iterable[p4rt.Entity]) -> list[p4rt.Entity]:
        """The entities that match; unset ids and keys are wildcards (section 13.1)."""
        request = p4rt.ReadRequest(device_id=self.device_id)
        request.entities.extend(entities)

        def call() -> list[p4rt.Entity]:
            answers = self._stub.Read(request, timeout=self._timeout)
            return [entity for answer in answers for entity in answer.entities]

        return self._call(call, "read")

    def _call(self, call: Callable[[], _T], what: str) -> _T:
        try:
            return call()
        except grpc.RpcError as error:
            raise self._error(error, what) from None

    def _error(self, error: grpc.RpcError, what: str) -> ControllerError:
        code = error.code()
        who = self._who()
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            return ControllerError(
                f"{who} did not {what} ({code.name}: {error.details()}); check that it still runs"
            )
        if code == grpc.StatusCode.PERMISSION_DENIED:
            return NotPrimaryError(
                f"{who} refused to {what}: {error.details()}; this controller is not primary any "
                "more, since another one took over or the switch has started anew: connect again"
            )
        failures = _update_errors(error) or [(code.name, error.details() or "no reason given")]
        reasons = "; ".join(f"{name}: {reason}" for name, reason in failures)
        # A batch as a whole fails with UNKNOWN (section 12.3); its first update says why.
        return SwitchRefusedError(f"{who} refused to {what}: {reasons}", failures[0][0])

    # --- end -------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the connection; jobs on the switch go on. May be called again."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
        self._channel.close()

    def __enter__(self) -> P4RuntimeClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _update_errors(error: grpc.RpcError) -> list[tuple[str, str]]:
    """Code and reason of each update of a Write that failed, from its status details."""
    metadata: Any = error.trailing_metadata() or ()
    failures = []
    for key, value in metadata:
        if key != "grpc-status-details-bin":
            continue
        status = status_pb2.Status()
        status.ParseFromString(value)
        for i, detail in enumerate(status.details):
            update = p4rt.Error()
            if detail.Unpack(update) and update.canonical_code != code_pb2.OK:
                name = code_pb2.Code.Name(update.canonical_code)
                failures.append((name, f"update {i}: {update.message}"))
    return failures
