"""Who may write: primary and backup clients (P4Runtime Specification, section 5).

A client is a stream with a role and an election id. For each role, the client with the highest
election id ever seen is primary while it is connected; all others are backups and may only read.

    a client sends an election id     becomes
    --------------------------------  -------------------------------------------------------
    0 (unset)                         backup
    at least the highest ever seen    primary; the one before is demoted
    lower                             backup; if it was primary, the role has none any more
    that of another stream            refused with INVALID_ARGUMENT, its stream ends
    the primary disconnects           the role has no primary until one of the above happens

Every change of the primary is told to all clients of the role. Knows no gRPC: a client is a
function that sends it a message. Main types: `Arbitration`, `Client`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.rpc import code_pb2
from p4.v1 import p4runtime_pb2 as p4rt

from p4emu.errors import SwitchError


@dataclass(eq=False)
class Client:
    """One stream. `role` is None until its first arbitration update."""

    send: Callable[[Any], None]
    role: str | None = None
    election_id: int = 0


@dataclass(eq=False)
class _Role:
    """A role's highest election id ever seen, and its primary, if it is connected."""

    highest: int = 0
    primary: Client | None = None


class Arbitration:
    """The clients of one device. Every method may be called from any thread."""

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._lock = threading.Lock()
        self._clients: list[Client] = []
        self._roles: dict[str, _Role] = {}

    def update(self, client: Client, message: Any) -> None:
        """Handle a client's `MasterArbitrationUpdate`; answers go out through `Client.send`.

        Raises
        ------
        SwitchError
            The stream has to end with this status.
        """
        if message.device_id != self._device_id:
            code = "NOT_FOUND" if client.role is None else "FAILED_PRECONDITION"
            raise SwitchError(
                code, f"no device {message.device_id} here; this is device {self._device_id}"
            )
        if message.role.HasField("config"):
            raise SwitchError("UNIMPLEMENTED", "role configurations are not supported")
        name = message.role.name
        if client.role not in (None, name):
            raise SwitchError(
                "FAILED_PRECONDITION",
                f"the stream has the role {client.role!r} and cannot change to {name!r}",
            )
        election_id = number(message.election_id)
        with self._lock:
            taken = any(
                other.role == name and other.election_id == election_id
                for other in self._clients
                if other is not client
            )
            if election_id and taken:
                raise SwitchError(
                    "INVALID_ARGUMENT",
                    f"another client already has the election id {election_id}; use another one",
                )
            role = self._roles.setdefault(name, _Role())
            if client.role is None:
                client.role = name
                self._clients.append(client)
            client.election_id = election_id
            before = role.primary
            if election_id and election_id >= role.highest:
                role.highest, role.primary = election_id, client
            elif role.primary is client:
                role.primary = None
            if role.primary is before and role.primary is not client:
                self._tell(client, role)
            else:
                self._tell_all(name, role)

    def leave(self, client: Client) -> None:
        """Forget a client whose stream has ended. May be called again."""
        with self._lock:
            if client not in self._clients:
                return
            self._clients.remove(client)
            assert client.role is not None
            role = self._roles[client.role]
            if role.primary is client:
                role.primary = None
                self._tell_all(client.role, role)

    def check_primary(self, role: str, election_id: Any) -> None:
        """Refuse a request that changes something unless it is the primary's.

        Raises
        ------
        SwitchError
            PERMISSION_DENIED
        """
        asked = number(election_id)
        with self._lock:
            primary = self._roles.get(role, _Role()).primary
            if primary is None:
                raise SwitchError(
                    "PERMISSION_DENIED",
                    "there is no primary client; become it with an arbitration update on "
                    "StreamChannel",
                )
            if asked != primary.election_id:
                raise SwitchError(
                    "PERMISSION_DENIED",
                    f"only the primary client may do this; its election id is "
                    f"{primary.election_id}, this request's {asked}",
                )

    def _tell_all(self, name: str, role: _Role) -> None:
        for client in self._clients:
            if client.role == name:
                self._tell(client, role)

    def _tell(self, client: Client, role: _Role) -> None:
        answer = p4rt.StreamMessageResponse()
        update = answer.arbitration
        update.device_id = self._device_id
        if client.role:
            update.role.name = client.role
        if role.highest:
            update.election_id.high = role.highest >> 64
            update.election_id.low = role.highest & ((1 << 64) - 1)
        if role.primary is client:
            update.status.code = code_pb2.OK
        elif role.primary is not None:
            update.status.code = code_pb2.ALREADY_EXISTS
            update.status.message = "another client is primary"
        else:
            update.status.code = code_pb2.NOT_FOUND
            update.status.message = "there is no primary client"
        client.send(answer)


def number(election_id: Any) -> int:
    """A `Uint128` as an integer; 0 when it is not set."""
    return int(election_id.high) << 64 | int(election_id.low)
