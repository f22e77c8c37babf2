"""How a rank gets its place in a job on a switch: `attach`.

Rank 0 leads. It starts a switch of its own on this machine (`EmbeddedFabric`), or takes the one
that PYCOLLECTIVE_CONTROLLER names (`RemoteFabric`), configures a job there over P4Runtime through
`pycollective.controller`, and gives every rank its membership when they meet. Nothing here sends a
frame, and nothing needs torch. Main types: `Attachment`, `Meeting`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pycollective.config import Membership, Settings
from pycollective.errors import ConfigurationError, FabricError, RendezvousError
from pycollective.rendezvous import Guest, Host, machine_id
from pycollective.switch_process import SwitchProcess, default_program

if TYPE_CHECKING:  # gRPC is loaded at rank 0 only, and only when it is needed
    from pycollective.controller import Job

_LEAVE_GRACE = 3.0
"""Seconds for the other ranks to receive their last results before the switch is taken down."""

_REFUSAL_GRACE = 5.0
"""Seconds to wait for ranks that are to be told why there is no job."""


class Meeting(Protocol):
    """How the ranks find rank 0."""

    def host(self, world_size: int) -> Host:
        """Begins to listen, as rank 0."""

    def join(self, rank: int, world_size: int, timeout: float) -> Guest:
        """Asks rank 0 for a membership, as any other rank."""


class AddressMeeting:
    """Rank 0 listens at an address that everybody knows: MASTER_ADDR and MASTER_PORT."""

    def __init__(self, address: tuple[str, int] | None) -> None:
        self._address = address

    def _known(self) -> tuple[str, int]:
        if self._address is None:
            raise ConfigurationError(
                "several ranks need to know where to meet: set MASTER_ADDR and MASTER_PORT to an "
                "address of rank 0's machine and a free port on it, as torchrun does"
            )
        return self._address

    def host(self, world_size: int) -> Host:
        """Begins to listen, as rank 0."""
        return Host(self._known(), world_size)

    def join(self, rank: int, world_size: int, timeout: float) -> Guest:
        """Asks rank 0 for a membership, as any other rank."""
        return Guest.join(self._known(), rank, world_size, timeout)


class Attachment:
    """A rank's place in a job, held until `close`."""

    def __init__(self, membership: Membership, leave: Callable[[], None]) -> None:
        self.membership = membership
        self._leave: Callable[[], None] | None = leave
        self._owner = os.getpid()

    def close(self) -> None:
        """Leaves. At rank 0 this waits for the others and then ends the job. May be repeated.

        Does nothing in a process that was forked from the rank's: the place is not its own.
        """
        leave, self._leave = self._leave, None
        if leave is not None and os.getpid() == self._owner:
            leave()


class Fabric(Protocol):
    """A switch on which rank 0 can have a job."""

    one_machine: bool
    """Whether only ranks of this machine can reach it."""

    def create_job(self, world_size: int) -> Sequence[Membership]:
        """Configures a job; returns the ranks' memberships in order of rank."""

    def close(self) -> None:
        """Ends the job."""


def attach(
    settings: Settings, *, rank: int, world_size: int, meeting: Meeting, timeout: float
) -> Attachment:
    """Gets this rank its place in a job of `world_size` ranks.

    Parameters
    ----------
    timeout
        Seconds for all ranks to meet and the switch to start.

    Raises
    ------
    ConfigurationError
        For settings that cannot be right.
    RendezvousError
        When the ranks do not meet, or rank 0 failed; the message then has its reason.
    FabricError
        At rank 0, when the switch cannot be started or configured.
    """
    if not 0 <= rank < world_size:
        raise ConfigurationError(
            f"RANK must be 0 to {world_size - 1} in a world of {world_size}, found {rank}"
        )
    if rank == 0:
        return _lead(settings, world_size, meeting, timeout)
    guest = meeting.join(rank, world_size, timeout)
    return Attachment(guest.membership, guest.close)


def _lead(settings: Settings, world_size: int, meeting: Meeting, timeout: float) -> Attachment:
    with contextlib.ExitStack() as undo:
        host = None
        if world_size > 1:
            host = meeting.host(world_size)
            undo.callback(host.close)
        try:
            fabric = _open(settings, world_size, timeout)
            undo.callback(fabric.close)
            memberships = fabric.create_job(world_size)
            if host is not None:
                machines = host.gather(timeout)
                if fabric.one_machine:
                    _check_one_machine(machines)
                host.welcome(memberships)
        except Exception as error:
            if host is not None:
                # Those that are still on their way are to hear the reason, too.
                with contextlib.suppress(RendezvousError):
                    host.gather(_REFUSAL_GRACE)
                host.refuse(str(error))
            raise
        if host is not None:
            # Before the host and the fabric are closed, in reverse order of registration.
            undo.callback(host.wait_until_alone, _LEAVE_GRACE)
        return Attachment(memberships[0], undo.pop_all().close)


def _open(settings: Settings, world_size: int, timeout: float) -> Fabric:
    if settings.controller is not None:
        return RemoteFabric(settings.controller, settings.ports, world_size)
    program = default_program() if settings.program is None else Path(settings.program)
    return EmbeddedFabric(program, world_size, timeout)


def _check_one_machine(machines: dict[int, str]) -> None:
    here = machine_id()
    for rank, machine in machines.items():
        if machine != here:
            raise FabricError(
                "the switch that rank 0 starts can be reached on its own machine only, "
                f"{here.split('/')[0]}, but rank {rank} is on {machine.split('/')[0]}; start a "
                "switch with `p4emu run` and set PYCOLLECTIVE_CONTROLLER and PYCOLLECTIVE_PORTS"
            )


class EmbeddedFabric:
    """A switch of one job's own: started, configured and ended with it."""

    one_machine = True

    def __init__(self, program: Path, world_size: int, timeout: float) -> None:
        self._switch = SwitchProcess.start(program, world_size, timeout=timeout)

    def create_job(self, world_size: int) -> Sequence[Membership]:
        """Configures the switch for its one job."""
        from pycollective.controller import Controller

        addresses = self._switch.addresses
        ports = sorted(addresses.ports)
        with Controller(addresses.grpc) as controller:
            job = controller.create_job(world_size, ports)
        return memberships(job, [addresses.ports[port] for port in ports])

    def close(self) -> None:
        """Ends the switch, and the job with it."""
        self._switch.stop()


class RemoteFabric:
    """A running switch: a job is added and taken away again.

    Parameters
    ----------
    controller
        HOST:PORT of the switch's P4Runtime server.
    ports
        Switch port and `udp:HOST:PORT` of each rank.
    """

    one_machine = False

    def __init__(self, controller: str, ports: Sequence[tuple[int, str]], world_size: int) -> None:
        if len(ports) < world_size:
            raise ConfigurationError(
                f"PYCOLLECTIVE_PORTS must name a switch port for each of {world_size} ranks when "
                f"PYCOLLECTIVE_CONTROLLER is set, found {len(ports)}; as in "
                "1=udp:127.0.0.1:9001,2=udp:127.0.0.1:9002"
            )
        self._address = controller
        self._ports = ports
        self._job: Job | None = None

    def create_job(self, world_size: int) -> Sequence[Membership]:
        """Adds a job for the first `world_size` ports."""
        from pycollective.controller import Controller

        with Controller(self._address) as controller:
            job = controller.create_job(world_size, [number for number, _ in self._ports])
        self._job = job
        return memberships(job, [address for _, address in self._ports])

    def close(self) -> None:
        """Takes the job away. A switch that is gone has none, which is as well."""
        from pycollective.controller import Controller, ControllerError

        job, self._job = self._job, None
        if job is not None:
            with contextlib.suppress(ControllerError), Controller(self._address) as controller:
                controller.destroy_job(job)


def memberships(job: Job, addresses: Sequence[str]) -> list[Membership]:
    """What the ranks of a job must know; `addresses` are those of their switch ports."""
    return [
        Membership(
            job=job.number,
            rank=rank,
            world_size=job.world_size,
            epoch=job.epoch,
            slots=job.slots,
            lanes=job.lanes,
            address=addresses[rank],
            mac=worker.mac,
            ipv4=worker.ipv4,
            switch_mac=job.switch_mac,
            switch_ipv4=job.switch_ipv4,
        )
        for rank, worker in enumerate(job.workers)
    ]
