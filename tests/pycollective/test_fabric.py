"""How ranks get their place: what rank 0 refuses, and that everybody hears why."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from pycollective import fabric
from pycollective.config import Settings
from pycollective.errors import ConfigurationError, FabricError, RendezvousError
from pycollective.rendezvous import machine_id


def settings(**environment: str) -> Settings:
    return Settings.from_environment(environment)


def test_several_ranks_need_an_address_to_meet_at() -> None:
    for rank in (0, 1):
        with pytest.raises(ConfigurationError, match="MASTER_ADDR and MASTER_PORT"):
            fabric.attach(
                settings(), rank=rank, world_size=2, meeting=fabric.AddressMeeting(None), timeout=1
            )


def test_a_rank_that_is_not_in_the_world_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="RANK must be 0 to 1 in a world of 2, found 2"):
        fabric.attach(
            settings(), rank=2, world_size=2, meeting=fabric.AddressMeeting(None), timeout=1
        )


def test_a_rank_on_another_machine_cannot_use_the_switch_of_rank_0() -> None:
    fabric._check_one_machine({1: machine_id()})
    with pytest.raises(FabricError, match="rank 2 is on elsewhere; start a switch"):
        fabric._check_one_machine({1: machine_id(), 2: "elsewhere/boot"})


def test_all_ranks_hear_why_rank_0_has_no_switch() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = probe.getsockname()[:2]
    wrong = settings(PYCOLLECTIVE_CONTROLLER="127.0.0.1:9")

    def attach(rank: int) -> fabric.Attachment:
        meeting = fabric.AddressMeeting(address)
        return fabric.attach(wrong, rank=rank, world_size=3, meeting=meeting, timeout=10)

    with ThreadPoolExecutor(3) as pool:
        host, *guests = [pool.submit(attach, rank) for rank in range(3)]
        with pytest.raises(ConfigurationError, match="PYCOLLECTIVE_PORTS must name"):
            host.result()
        for guest in guests:
            with pytest.raises(RendezvousError, match="refused by rank 0: PYCOLLECTIVE_PORTS"):
                guest.result()
