"""Data whose collective results are known exactly, so that one wrong bit counts as wrong.

float32 values are multiples of 1/8 below 16: they and their sums over 32 ranks are exact in fp32
and in the network's block floating point, whatever the order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pycollective.bench.plan import DTYPES, Plan

Array = npt.NDArray[Any]


def contribution(plan: Plan, rank: int, count: int) -> Array:
    """What rank `rank` passes in; `count` elements."""
    return _scaled(_integers(rank, count), plan.dtype)


def expected(plan: Plan, world_size: int, count: int) -> Array:
    """What every rank must get out; for all_gather one row for each rank."""
    if plan.collective == "broadcast":
        return contribution(plan, 0, count)
    if plan.collective == "all_gather":
        return np.stack([contribution(plan, rank, count) for rank in range(world_size)])
    total = np.zeros(count, np.int64)
    for rank in range(world_size):
        total += _integers(rank, count)
    return _scaled(total, plan.dtype)


def wrong(result: Array, exact: Array) -> int:
    """Elements that differ in any bit."""
    return int(np.count_nonzero(result.view(np.uint32) != exact.view(np.uint32)))


def _integers(rank: int, count: int) -> npt.NDArray[np.int64]:
    return (np.arange(count, dtype=np.int64) * 7 + rank * 13) % 251 - 125


def _scaled(integers: npt.NDArray[np.int64], dtype: str) -> Array:
    if dtype == "float":
        return (integers / 8).astype(np.float32)
    return integers.astype(DTYPES[dtype])
