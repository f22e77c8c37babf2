"""Ranks as threads of the test's process, over real sockets: the core runs outside of the GIL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from pycollective import Communicator, Membership

T = TypeVar("T")

JobFactory = Callable[[int], Sequence[Membership]]
"""Makes a job of so many ranks on the tests' switch (the fixture `job`)."""


def start(
    pool: ThreadPoolExecutor,
    members: Sequence[Membership],
    body: Callable[[Communicator], T],
    deadline: float = 20.0,
) -> list[Future[T]]:
    """Runs `body` as every rank, each with a communicator of its own."""

    def run(member: Membership) -> T:
        with Communicator.join(member, deadline=deadline) as communicator:
            return body(communicator)

    return [pool.submit(run, member) for member in members]


def run(
    members: Sequence[Membership],
    body: Callable[[Communicator], T],
    deadline: float = 20.0,
) -> list[T]:
    """The results of all ranks, in order of rank; raises what any rank raises."""
    with ThreadPoolExecutor(len(members)) as pool:
        return [future.result() for future in start(pool, members, body, deadline)]


def errors(
    members: Sequence[Membership],
    body: Callable[[Communicator], object],
    deadline: float = 20.0,
) -> list[BaseException | None]:
    """What each rank raises."""
    with ThreadPoolExecutor(len(members)) as pool:
        return [future.exception() for future in start(pool, members, body, deadline)]
