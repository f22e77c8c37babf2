"""Ranks meet over real sockets, strangers are turned away, and leaving is noticed."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from test_config import MEMBERSHIP

from pycollective.config import Membership
from pycollective.errors import RendezvousError
from pycollective.rendezvous import Guest, Host, machine_id

LOOPBACK = ("127.0.0.1", 0)


def memberships(world_size: int) -> list[Membership]:
    return [
        dataclasses.replace(MEMBERSHIP, rank=rank, world_size=world_size)
        for rank in range(world_size)
    ]


def join(host: Host, *ranks: int, world_size: int, key: str = "") -> list[Future[Guest]]:
    with ThreadPoolExecutor(len(ranks)) as pool:
        futures = [
            pool.submit(Guest.join, host.address, rank, world_size, 10.0, key) for rank in ranks
        ]
        host.gather(10.0)
        host.welcome(memberships(world_size))
    return futures


def test_every_guest_gets_the_membership_of_its_rank() -> None:
    with Host(LOOPBACK, 4) as host:
        guests = [future.result() for future in join(host, 3, 1, 2, world_size=4)]
        assert [guest.membership.rank for guest in guests] == [3, 1, 2]
        for guest in guests:
            guest.close()


def test_the_host_learns_the_guests_machines() -> None:
    with Host(LOOPBACK, 2) as host, ThreadPoolExecutor(1) as pool:
        guest = pool.submit(Guest.join, host.address, 1, 2, 10.0)
        assert host.gather(10.0) == {1: machine_id()}
        host.welcome(memberships(2))
        guest.result().close()


def test_a_guest_may_come_before_the_host() -> None:
    with socket.create_server(LOOPBACK) as server:
        address = server.getsockname()[:2]
    with ThreadPoolExecutor(1) as pool:
        guest = pool.submit(Guest.join, address, 1, 2, 10.0)
        with Host(address, 2) as host:
            host.gather(10.0)
            host.welcome(memberships(2))
            guest.result().close()


def test_a_missing_rank_is_named() -> None:
    with Host(LOOPBACK, 3) as host, pytest.raises(RendezvousError, match=r"missing: \[1, 2\]"):
        host.gather(0.05)


def test_a_guest_says_that_nobody_listens() -> None:
    with socket.create_server(LOOPBACK) as server:
        address = server.getsockname()[:2]
    with pytest.raises(RendezvousError, match=r"rank 1 tried .* to reach rank 0"):
        Guest.join(address, 1, 2, 0.2)


def test_the_host_says_that_its_port_is_taken() -> None:
    with (
        socket.create_server(LOOPBACK) as server,
        pytest.raises(RendezvousError, match="MASTER_PORT to a free port"),
    ):
        Host(server.getsockname()[:2], 2)


@pytest.mark.parametrize(
    ("rank", "world_size", "key", "reason"),
    [
        (1, 3, "ours", "set the same WORLD_SIZE"),
        (2, 2, "ours", "guests are ranks 1 to 1"),
        (1, 2, "theirs", "another job's rendezvous"),
    ],
)
def test_a_guest_that_does_not_belong_is_told_why_and_does_not_count(
    rank: int, world_size: int, key: str, reason: str
) -> None:
    with Host(LOOPBACK, 2, "ours") as host, ThreadPoolExecutor(2) as pool:
        stranger = pool.submit(Guest.join, host.address, rank, world_size, 10.0, key)
        gathered = pool.submit(host.gather, 10.0)
        with pytest.raises(RendezvousError, match=reason):
            stranger.result()
        guest = pool.submit(Guest.join, host.address, 1, 2, 10.0, "ours")
        assert set(gathered.result()) == {1}
        host.welcome(memberships(2))
        guest.result().close()


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n\r\n", b"[]\n", b"{}\n", b"x" * 70_000])
def test_a_stranger_that_talks_garbage_does_not_count(garbage: bytes) -> None:
    with Host(LOOPBACK, 2) as host, ThreadPoolExecutor(1) as pool:
        gathered = pool.submit(host.gather, 10.0)
        with socket.create_connection(host.address) as stranger:
            # The host may hang up before it has taken everything in.
            with contextlib.suppress(OSError):
                stranger.sendall(garbage)
                stranger.shutdown(socket.SHUT_WR)
            assert _closed(stranger)
        guest = threading.Thread(target=_join_and_leave, args=(host.address,))
        guest.start()
        assert set(gathered.result()) == {1}
        host.welcome(memberships(2))
        guest.join()


def test_two_guests_of_one_rank_are_an_error_on_all_sides() -> None:
    with Host(LOOPBACK, 3) as host, ThreadPoolExecutor(2) as pool:
        guests = [pool.submit(Guest.join, host.address, 1, 3, 10.0) for _ in range(2)]
        with pytest.raises(RendezvousError, match="two processes claim rank 1") as caught:
            host.gather(10.0)
        host.refuse(str(caught.value))
        for guest in guests:
            with pytest.raises(RendezvousError, match="two processes claim rank 1"):
                guest.result()


def test_guests_hear_why_there_is_no_job() -> None:
    with Host(LOOPBACK, 2) as host, ThreadPoolExecutor(1) as pool:
        guest = pool.submit(Guest.join, host.address, 1, 2, 10.0)
        host.gather(10.0)
        host.refuse("the switch did not start")
        with pytest.raises(RendezvousError, match="refused by rank 0: the switch did not start"):
            guest.result()


def test_a_host_that_dies_is_noticed_by_a_waiting_guest() -> None:
    with ThreadPoolExecutor(1) as pool:
        with Host(LOOPBACK, 2) as host:
            guest = pool.submit(Guest.join, host.address, 1, 2, 10.0)
            host.gather(10.0)
        with pytest.raises(RendezvousError, match="got no membership"):
            guest.result()


def test_the_host_waits_until_all_guests_have_left() -> None:
    with Host(LOOPBACK, 3) as host, ThreadPoolExecutor(1) as pool:
        guests = [future.result() for future in join(host, 1, 2, world_size=3)]
        alone = pool.submit(host.wait_until_alone, 10.0)
        leave: list[Callable[[], None]] = [guest.close for guest in guests]
        leave[1]()
        assert not alone.done()
        leave[0]()
        assert alone.result() == []


def test_the_host_says_who_did_not_leave() -> None:
    with Host(LOOPBACK, 3) as host:
        guests = [future.result() for future in join(host, 1, 2, world_size=3)]
        guests[0].close()
        assert host.wait_until_alone(0.1) == [2]
        guests[1].close()


def _closed(connection: socket.socket) -> bool:
    connection.settimeout(10.0)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def _join_and_leave(address: tuple[str, int]) -> None:
    Guest.join(address, 1, 2, 10.0).close()
