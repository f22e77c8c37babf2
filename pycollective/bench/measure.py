"""What each rank of a benchmark does: time calls, check results, and put ranks' figures together.

A comparison alternates with the switch in short rounds of the same run, so that whatever else the
machine does meets both.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pycollective.bench import patterns
from pycollective.bench.plan import Plan, Row, bus_factor
from pycollective.communicator import Communicator

Array = npt.NDArray[Any]

_ROUNDS = 4
"""Turns that each contestant has for a size."""


class Contestant(Protocol):
    """A way to do the plan's collective."""

    def prepare(self, source: Array, target: Array) -> Callable[[], object]:
        """A function that does it once, from `source` into `target`, and waits."""

    def close(self) -> None:
        """Ends it."""


class SwitchContestant:
    """Through the switch."""

    def __init__(self, plan: Plan, communicator: Communicator) -> None:
        self._plan = plan
        self._communicator = communicator

    def prepare(self, source: Array, target: Array) -> Callable[[], object]:
        """A function that does it once, from `source` into `target`, and waits."""
        communicator = self._communicator
        if self._plan.collective == "all_reduce":
            return lambda: communicator.allreduce(source, target)
        if self._plan.collective == "all_gather":
            return lambda: communicator.allgather(source, target)
        if communicator.rank == 0:
            target[:] = source
        return lambda: communicator.broadcast(target, 0)

    def close(self) -> None:
        """Leaves the job."""
        self._communicator.close()


class GlooContestant:
    """Over gloo, by torch.distributed.

    Parameters
    ----------
    init_method
        How its ranks meet, as in `init_process_group`.
    """

    def __init__(self, plan: Plan, rank: int, world_size: int, init_method: str) -> None:
        import torch
        import torch.distributed as dist

        self._plan = plan
        self._rank = rank
        # As torchrun does: with threads for every core in every rank, gloo gets in its own way.
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method=init_method, rank=rank, world_size=world_size)

    def prepare(self, source: Array, target: Array) -> Callable[[], object]:
        """A function that does it once, from `source` into `target`, and waits.

        gloo's all_reduce works in place; it repeats its sum in `target`, which takes as long.
        """
        import torch
        import torch.distributed as dist

        tensor, own = torch.from_numpy(target), torch.from_numpy(source)
        if self._plan.collective == "all_reduce":
            tensor.copy_(own)
            return lambda: dist.all_reduce(tensor)
        if self._plan.collective == "all_gather":
            rows = list(tensor.unbind(0))
            return lambda: dist.all_gather(rows, own)
        if self._rank == 0:
            tensor.copy_(own)
        return lambda: dist.broadcast(tensor, 0)

    def close(self) -> None:
        """Ends the process group."""
        import torch.distributed as dist

        dist.destroy_process_group()


def measure(plan: Plan, communicator: Communicator, other: Contestant | None) -> Iterator[Row]:
    """Measures size after size; every rank must run through all, and gets the same rows."""
    switch = SwitchContestant(plan, communicator)
    for size in plan.sizes:
        count = plan.count(size, communicator.world_size)
        source = patterns.contribution(plan, communicator.rank, count)
        exact = patterns.expected(plan, communicator.world_size, count)
        wrong = _check(plan, switch, source, exact)
        contestants = [switch] if other is None else [switch, other]
        seconds = _time(plan, communicator, contestants, source, exact)
        ranks = _gather(communicator, [wrong, *seconds])
        damaged = communicator.world_size - len(ranks)
        wrong = int(ranks[:, 0].sum()) + damaged * exact.size
        yield _row(plan, communicator, size, count, list(ranks[:, 1:].mean(axis=0)), wrong)


def _gather(communicator: Communicator, own: list[float]) -> npt.NDArray[np.float64]:
    """A row of figures of each rank whose row arrived intact; this rank's own always does.

    They cross the switch that is being judged, so each row carries a checksum: a switch that adds
    wrongly must not be able to hide it.
    """
    row = np.array([*own, 0.0])
    row[-1] = zlib.crc32(row[:-1].tobytes())
    rows = communicator.allgather(row)
    rows[communicator.rank] = row
    intact = [float(zlib.crc32(found[:-1].tobytes())) == found[-1] for found in rows]
    return rows[intact, :-1]


def _check(plan: Plan, switch: Contestant, source: Array, exact: Array) -> int:
    """Elements that this rank got wrong."""
    wrong = 0
    for _ in range(plan.checks):
        target = np.full(exact.shape, 77, exact.dtype)
        switch.prepare(source, target)()
        wrong += patterns.wrong(target, exact)
    return wrong


def _time(
    plan: Plan,
    communicator: Communicator,
    contestants: list[Any],
    source: Array,
    exact: Array,
) -> list[float]:
    """Seconds of one call of each contestant at this rank, the mean over iterations."""
    calls = [contestant.prepare(source, np.zeros_like(exact)) for contestant in contestants]
    for call in calls:
        for _ in range(plan.warmup):
            call()
    totals = [0.0] * len(calls)
    rounds = min(_ROUNDS, plan.iterations)
    for turn in range(rounds):
        iterations = plan.iterations * (turn + 1) // rounds - plan.iterations * turn // rounds
        for index, call in enumerate(calls):
            communicator.barrier()
            begin = time.perf_counter()
            for _ in range(iterations):
                call()
            totals[index] += time.perf_counter() - begin
    return [total / plan.iterations for total in totals]


def _row(
    plan: Plan,
    communicator: Communicator,
    size: int,
    count: int,
    seconds: list[float],
    wrong: int,
) -> Row:
    algbw = size / float(seconds[0]) / 1e9
    return Row(
        size=size,
        count=count,
        dtype=plan.dtype,
        op=plan.op if plan.collective == "all_reduce" else "none",
        time=float(seconds[0]) * 1e6,
        algbw=algbw,
        busbw=algbw * bus_factor(plan.collective, communicator.world_size),
        wrong=wrong,
        other_time=float(seconds[1]) * 1e6 if len(seconds) > 1 else None,
    )


def run_rank(plan: Plan, gloo_init_method: str) -> Iterator[Row]:
    """One rank's whole run, in a world that the environment describes."""
    with Communicator.create() as communicator:
        other = None
        if plan.compare is not None:
            rank, world_size = communicator.rank, communicator.world_size
            other = GlooContestant(plan, rank, world_size, gloo_init_method)
        try:
            yield from measure(plan, communicator, other)
        finally:
            if other is not None:
                other.close()


def in_world() -> bool:
    """Whether this process is a rank already, as under torchrun."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ
