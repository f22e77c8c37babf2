"""How the ranks of a job meet: rank 0 is the `Host`, the others are `Guest`s over TCP.

The host gives each guest its `Membership` (or the reason why there is none), and both keep the
connection until they leave. So the host knows when it may take down what the guests still use: a
guest that has gone, in good order or not, is a closed connection. No tensor data passes here, and
no torch is needed; where the host can be met is MASTER_ADDR:MASTER_PORT or whatever the torch
store says.

The talk is one line of JSON each way: the guest's hello with its rank, world size, key and machine,
then the host's answer with either `membership` or `error`.
"""

from __future__ import annotations

import contextlib
import json
import platform
import selectors
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from pycollective.config import Membership
from pycollective.errors import RendezvousError

_LINE_LIMIT = 64 * 1024
"""Bytes of a hello or an answer; a longer line does not come from us."""

_RETRY_INTERVAL = 0.05
"""Seconds between attempts to connect to a host that does not listen yet."""


def machine_id() -> str:
    """A name for this machine that no other has, until it boots again."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    with contextlib.suppress(OSError):
        return f"{platform.node()}/{boot.read_text().strip()}"
    return platform.node()


class Host:
    """Rank 0's side: waits for the guests, hands out memberships, sees guests leave.

    Parameters
    ----------
    address
        HOST and PORT to listen at; port 0 takes a free one.
    world_size
        Ranks, the host's own included.
    key
        What guests must present; keeps strangers and other jobs out.
    """

    def __init__(self, address: tuple[str, int], world_size: int, key: str = "") -> None:
        self._world_size = world_size
        self._key = key
        self._guests: dict[int, socket.socket] = {}
        self._machines: dict[int, str] = {}
        try:
            self._listener = socket.create_server(address, backlog=world_size)
        except OSError as error:
            raise RendezvousError(
                f"rank 0 cannot listen at {address[0]}:{address[1]} for the other ranks "
                f"({error.strerror}); set MASTER_ADDR to an address of this machine and "
                "MASTER_PORT to a free port"
            ) from error
        host, port = self._listener.getsockname()[:2]
        self.address: tuple[str, int] = (host, port)

    def gather(self, timeout: float) -> dict[int, str]:
        """Waits until all guests are there; returns each guest's machine by rank.

        Strangers are turned away and do not count.

        Raises
        ------
        RendezvousError
            When `timeout` seconds pass first (naming the missing ranks), or two guests claim one
            rank.
        """
        deadline = time.monotonic() + timeout
        while len(self._guests) < self._world_size - 1:
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._missing(timeout)
            self._listener.settimeout(left)
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                raise self._missing(timeout) from None
            self._admit(connection, min(left, 5.0))
        self._listener.close()
        return dict(self._machines)

    def _admit(self, connection: socket.socket, timeout: float) -> None:
        try:
            hello = _receive(connection, timeout)
            rank, key = int(hello["rank"]), str(hello["key"])
            world_size, machine = int(hello["world_size"]), str(hello["machine"])
        except (OSError, KeyError, TypeError, ValueError):
            connection.close()
            return
        refusal = None
        if key != self._key:
            refusal = "this is another job's rendezvous; give every job a MASTER_PORT of its own"
        elif world_size != self._world_size:
            refusal = (
                f"rank 0 expects {self._world_size} ranks, rank {rank} was told {world_size}; set "
                "the same WORLD_SIZE on all ranks"
            )
        elif not 0 < rank < self._world_size:
            refusal = f"guests are ranks 1 to {self._world_size - 1}, this one says {rank}"
        if refusal is not None:
            _send_and_close(connection, {"error": refusal})
            return
        if rank in self._guests:
            message = f"two processes claim rank {rank}; give every process a RANK of its own"
            _send_and_close(connection, {"error": message})
            raise RendezvousError(message)
        self._guests[rank] = connection
        self._machines[rank] = machine

    def _missing(self, timeout: float) -> RendezvousError:
        missing = sorted(set(range(1, self._world_size)) - set(self._guests))
        host, port = self.address
        return RendezvousError(
            f"rank 0 waited {timeout:.0f} s at {host}:{port} for {self._world_size - 1} other "
            f"ranks, missing: {missing}; check that they were started with this address"
        )

    def welcome(self, memberships: Sequence[Membership]) -> None:
        """Gives each guest its membership; `memberships` is in order of rank, rank 0 included."""
        for rank, guest in self._guests.items():
            _send(guest, {"membership": memberships[rank].to_json()})

    def refuse(self, reason: str) -> None:
        """Tells all guests that have come why the job cannot begin, and closes."""
        for guest in self._guests.values():
            _send_and_close(guest, {"error": reason})
        self._guests.clear()
        self.close()

    def wait_until_alone(self, timeout: float) -> list[int]:
        """Waits until all guests have left; returns those that are still there after `timeout`."""
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            present = set()
            for rank, guest in self._guests.items():
                guest.setblocking(False)
                selector.register(guest, selectors.EVENT_READ, rank)
                present.add(rank)
            while present:
                left = deadline - time.monotonic()
                ready = selector.select(max(left, 0.0))
                if not ready:
                    break
                for key, _ in ready:
                    if _has_left(self._guests[key.data]):
                        selector.unregister(key.fileobj)
                        present.discard(key.data)
        return sorted(present)

    def close(self) -> None:
        """Closes all connections. May be called again."""
        self._listener.close()
        for guest in self._guests.values():
            guest.close()
        self._guests.clear()

    def __enter__(self) -> Host:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Guest:
    """Any other rank's side: connects, asks for its membership, stays connected until `close`."""

    def __init__(self, connection: socket.socket, membership: Membership) -> None:
        self._connection = connection
        self.membership = membership

    @classmethod
    def join(
        cls, address: tuple[str, int], rank: int, world_size: int, timeout: float, key: str = ""
    ) -> Guest:
        """Connects to the host, which may not listen yet, and waits for its answer.

        Raises
        ------
        RendezvousError
            When nobody answers for `timeout` seconds, or the host refuses, with its reason.
        """
        where = f"{address[0]}:{address[1]}"
        deadline = time.monotonic() + timeout
        connection = _connect(address, rank, deadline, timeout)
        hello = {"rank": rank, "world_size": world_size, "key": key, "machine": machine_id()}
        try:
            _send(connection, hello)
            answer = _receive(connection, max(deadline - time.monotonic(), 0.001))
        except (OSError, ValueError) as error:
            connection.close()
            raise RendezvousError(
                f"rank {rank} reached rank 0 at {where} but got no membership "
                f"({error}, {timeout:.0f} s allowed); see what rank 0 says"
            ) from error
        if "membership" not in answer:
            connection.close()
            raise RendezvousError(f"rank {rank} was refused by rank 0: {answer.get('error')}")
        return cls(connection, Membership.from_json(str(answer["membership"])))

    def close(self) -> None:
        """Leaves: the host may take the switch down now. May be called again."""
        self._connection.close()


def _connect(address: tuple[str, int], rank: int, deadline: float, timeout: float) -> socket.socket:
    while True:
        left = deadline - time.monotonic()
        try:
            return socket.create_connection(address, timeout=max(left, 0.001))
        except socket.gaierror as error:
            raise RendezvousError(
                f"rank {rank} cannot resolve {address[0]!r} ({error.strerror}); set MASTER_ADDR to "
                "rank 0's machine"
            ) from error
        except OSError as error:
            if left <= _RETRY_INTERVAL:
                raise RendezvousError(
                    f"rank {rank} tried {timeout:.0f} s to reach rank 0 at "
                    f"{address[0]}:{address[1]} ({error.strerror or error}); check that rank 0 "
                    "runs and that MASTER_ADDR and MASTER_PORT are the same on all ranks"
                ) from error
            time.sleep(_RETRY_INTERVAL)


def _send(connection: socket.socket, message: dict[str, object]) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


def _send_and_close(connection: socket.socket, message: dict[str, object]) -> None:
    with contextlib.suppress(OSError):
        _send(connection, message)
    connection.close()


def _receive(connection: socket.socket, timeout: float) -> dict[str, Any]:
    deadline = time.monotonic() + timeout
    line = bytearray()
    while not line.endswith(b"\n"):
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        part = connection.recv(4096)
        if not part:
            raise ConnectionError("the connection was closed")
        line += part
        if len(line) > _LINE_LIMIT:
            raise ValueError("the line is too long")
    connection.settimeout(None)
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError(f"expected a JSON object, found {message!r}")
    return message


def _has_left(guest: socket.socket) -> bool:
    try:
        return guest.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
