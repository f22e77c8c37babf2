"""Being primary: the stream on which a client says its election id and hears who is primary.

P4Runtime Specification 1.4, section 5. A client may write while its stream is open and its election
id is the highest that the switch has seen. Two clients cannot have the same id at a time: the one
that comes later waits here until the other has left.

Main type: `Stream`, made by `become_primary`.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc
from google.rpc import code_pb2
from p4.v1 import p4runtime_pb2 as p4rt

from pycollective.controller.errors import NotPrimaryError


class Stream:
    """An open StreamChannel."""

    def __init__(self, stub: Any, device_id: int) -> None:
        self._device_id = device_id
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._call = stub.StreamChannel(iter(self._requests.get, None))
        self._reader = threading.Thread(target=self._read, name="controller-stream", daemon=True)
        self._reader.start()

    def ask(self, election_id: int, deadline: float) -> Any:
        """Say an election id, 0 for none; the first answer, as from `receive`."""
        request = p4rt.StreamMessageRequest()
        request.arbitration.device_id = self._device_id
        if election_id:
            request.arbitration.election_id.CopyFrom(uint128(election_id))
        self._requests.put(request)
        return self.receive(deadline)

    def receive(self, deadline: float) -> Any:
        """The next `MasterArbitrationUpdate`.

        Parameters
        ----------
        deadline
            In terms of `time.monotonic`.

        Raises
        ------
        TimeoutError
            None came until then.
        grpc.RpcError
            The switch has ended the stream.
        """
        try:
            answer = self._answers.get(timeout=max(deadline - time.monotonic(), 0.0))
        except queue.Empty:
            raise TimeoutError from None
        if isinstance(answer, grpc.RpcError):
            raise answer
        return answer

    def close(self) -> None:
        """End the stream; with it goes the primary role. May be called again."""
        self._requests.put(None)
        self._call.cancel()
        self._reader.join()

    def _read(self) -> None:
        messages: Iterator[Any] = self._call
        try:
            for message in messages:
                if message.HasField("arbitration"):
                    self._answers.put(message.arbitration)
        except grpc.RpcError as error:
            self._answers.put(error)


def become_primary(stub: Any, device_id: int, election_id: int, timeout: float) -> Stream:
    """Open a stream as primary.

    Raises
    ------
    NotPrimaryError
        Another client has a higher election id, or the same one for all of `timeout` seconds.
    TimeoutError
        The switch does not answer.
    grpc.RpcError
        It refuses.
    """
    deadline = time.monotonic() + timeout
    while True:
        stream = Stream(stub, device_id)
        try:
            answer = stream.ask(election_id, deadline)
        except grpc.RpcError as error:
            stream.close()
            if error.code() != grpc.StatusCode.INVALID_ARGUMENT:
                raise
            _wait_for_vacancy(stub, device_id, election_id, deadline, error, timeout)
            continue
        except BaseException:
            stream.close()
            raise
        if answer.status.code == code_pb2.OK:
            return stream
        stream.close()
        raise _outranked(answer, election_id)


def _wait_for_vacancy(
    stub: Any,
    device_id: int,
    election_id: int,
    deadline: float,
    refusal: grpc.RpcError,
    timeout: float,
) -> None:
    """Return when there is no primary any more; the switch has refused our id with `refusal`."""
    stream = Stream(stub, device_id)
    try:
        answer = stream.ask(0, deadline)
        while answer.status.code != code_pb2.NOT_FOUND:
            answer = stream.receive(deadline)
    except TimeoutError:
        raise NotPrimaryError(
            f"another controller has the election id {election_id}, and did not leave within "
            f"{timeout:g} s; stop it, or use a higher election id"
        ) from None
    except grpc.RpcError:
        raise refusal from None  # not a switch that knows clients without an election id
    finally:
        stream.close()
    if number(answer.election_id) > election_id:
        raise _outranked(answer, election_id)


def _outranked(answer: Any, election_id: int) -> NotPrimaryError:
    return NotPrimaryError(
        f"another controller with election id {number(answer.election_id)} is primary, or was; "
        f"this one has {election_id}; stop it, or use a higher election id"
    )


def uint128(value: int) -> Any:
    """An election id as a message."""
    return p4rt.Uint128(high=value >> 64, low=value & (2**64 - 1))


def number(election_id: Any) -> int:
    """An election id as an integer."""
    return int(election_id.high) << 64 | int(election_id.low)
