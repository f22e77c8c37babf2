"""One real switch for the tests with real sockets: a p4emu process that runs p4/allreduce.p4."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest
from thread_ranks import JobFactory

from pycollective.config import Membership
from pycollective.controller import Controller
from pycollective.fabric import memberships
from pycollective.switch_process import SwitchProcess, default_program

PORTS = 8


@pytest.fixture(scope="session")
def switch() -> Iterator[SwitchProcess]:
    """A switch with ports 1 to 8, shared by all tests; each has jobs of its own on it."""
    with SwitchProcess.start(default_program(), PORTS) as process:
        yield process


@pytest.fixture
def controller(switch: SwitchProcess) -> Iterator[Controller]:
    """The primary controller of the switch; not for longer, since rank 0 of other tests is one."""
    with Controller(switch.addresses.grpc) as primary:
        yield primary


@pytest.fixture
def job(switch: SwitchProcess, controller: Controller) -> Iterator[JobFactory]:
    """Makes a job of so many ranks on the switch; it is taken away after the test."""
    with ExitStack() as jobs:

        def make(world_size: int) -> Sequence[Membership]:
            made = controller.create_job(world_size, range(1, world_size + 1))
            jobs.callback(controller.destroy_job, made)
            return memberships(made, [switch.addresses.ports[i + 1] for i in range(world_size)])

        yield make


@pytest.fixture(scope="session")
def switch_environment(switch: SwitchProcess) -> dict[str, str]:
    """What ranks in other processes need to put their job on the switch."""
    ports = ",".join(f"{port}={address}" for port, address in switch.addresses.ports.items())
    return {"PYCOLLECTIVE_CONTROLLER": switch.addresses.grpc, "PYCOLLECTIVE_PORTS": ports}
