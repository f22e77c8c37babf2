"""How failures come out of torch.distributed: from `wait`, from futures, and out of DDP."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch_world import TorchWorld, initialize

from pycollective import (
    CancelledError,
    DeadlineExceededError,
    MismatchError,
    ReductionOverflowError,
)

WORLD = 2
TIMEOUT = 1.5


@pytest.fixture(scope="module")
def ranks(switch_environment: dict[str, str]) -> Iterator[TorchWorld]:
    with TorchWorld(WORLD, switch_environment, timeout=TIMEOUT) as world:
        yield world


@pytest.fixture
def world(ranks: TorchWorld) -> Iterator[TorchWorld]:
    """The ranks with a fresh group: a failure is the end of the one before."""
    with tempfile.TemporaryDirectory() as folder:
        ranks.run(begin_anew, folder, TIMEOUT)
        yield ranks


def begin_anew(folder: str, timeout: float) -> None:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    dist.destroy_process_group()
    initialize(rank, world_size, folder, timeout)


def a_missing_rank_is_named_by_wait_and_by_the_future() -> None:
    if dist.get_rank() == 1:
        return
    began = time.monotonic()
    work = dist.all_reduce(torch.ones(3), async_op=True)
    future = work.get_future()
    chained = future.then(lambda done: done.value())
    with pytest.raises(DeadlineExceededError, match="waits for rank 1") as caught:
        work.wait()
    assert time.monotonic() - began < TIMEOUT + 2
    assert caught.value.missing_ranks == (1,)
    for failed in (future, chained):
        with pytest.raises(RuntimeError, match="DeadlineExceededError: .*waits for rank 1"):
            failed.wait()
    assert work.is_completed()
    assert not work.is_success()
    assert isinstance(work.exception(), DeadlineExceededError)
    with pytest.raises(RuntimeError, match="DeadlineExceededError: .*waits for rank 1"):
        dist.all_reduce(torch.ones(3), async_op=True).get_future().wait()


def a_missing_rank_is_named_by_backward() -> None:
    model = DistributedDataParallel(nn.Linear(4, 4))
    if dist.get_rank() == 0:
        with pytest.raises(RuntimeError, match="DeadlineExceededError: .*waits for rank 1"):
            model(torch.ones(1, 4)).sum().backward()


def sizes_that_differ_raise_on_all_ranks() -> None:
    with pytest.raises(MismatchError, match="all ranks must call the same collective"):
        dist.all_reduce(torch.ones(3 + dist.get_rank()))


def dtypes_that_differ_raise_on_all_ranks() -> None:
    dtype = (torch.float32, torch.int32)[dist.get_rank()]
    with pytest.raises(MismatchError, match="all ranks must call the same collective"):
        dist.all_reduce(torch.ones(3, dtype=dtype))


def shapes_of_one_size_that_differ_raise_on_all_ranks() -> None:
    shape = ((2, 3), (3, 2))[dist.get_rank()]
    with pytest.raises(MismatchError, match="all ranks must call the same collective"):
        dist.broadcast(torch.ones(shape, dtype=torch.int64), src=0)


def overflow_raises_on_all_ranks_and_the_group_goes_on() -> None:
    with pytest.raises(ReductionOverflowError, match="all_reduce #1 on rank"):
        dist.all_reduce(torch.full((3,), 2**30, dtype=torch.int32))
    tensor = torch.ones(3, dtype=torch.int32)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [2, 2, 2]


def a_work_may_be_waited_for_in_parts() -> None:
    store = dist.distributed_c10d._get_default_store()
    if dist.get_rank() == 0:
        work = dist.barrier(async_op=True)
        with pytest.raises(DeadlineExceededError, match="still runs"):
            work.wait(timedelta(milliseconds=20))
        store.set("waited in vain", "")
        work.wait()
    else:
        store.wait(["waited in vain"])
        dist.barrier()


def destroying_the_group_cancels_what_runs() -> None:
    if dist.get_rank() == 0:
        work = dist.barrier(async_op=True)
        future = work.get_future()
        dist.destroy_process_group()
        with pytest.raises(CancelledError):
            work.wait()
        with pytest.raises(RuntimeError, match="CancelledError"):
            future.wait()
    else:
        dist.destroy_process_group()


@pytest.mark.parametrize(
    "scenario",
    [
        a_missing_rank_is_named_by_wait_and_by_the_future,
        a_missing_rank_is_named_by_backward,
        sizes_that_differ_raise_on_all_ranks,
        dtypes_that_differ_raise_on_all_ranks,
        shapes_of_one_size_that_differ_raise_on_all_ranks,
        overflow_raises_on_all_ranks_and_the_group_goes_on,
        a_work_may_be_waited_for_in_parts,
    ],
)
def test_failure(world: TorchWorld, scenario: Callable[[], None]) -> None:
    world.run(scenario)


def test_destroying_the_group_cancels_what_runs(switch_environment: dict[str, str]) -> None:
    with TorchWorld(WORLD, switch_environment, timeout=TIMEOUT) as world:
        world.run(destroying_the_group_cancels_what_runs)
