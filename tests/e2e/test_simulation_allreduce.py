"""All-reduce through the real P4 program in the simulator: right, and the same bits everywhere.

Sizes are around one block of 256 lanes, and one that is many windows long and ends in a short
block. The network is perfect or rough (`simulated_job.ROUGH`); the result must not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from simulated_job import (
    PERFECT,
    ROUGH,
    SOURCE,
    Array,
    SimulatedJob,
    floats,
    fp32_bound,
    integers,
)

import p4emu
from pycollective._core import LinkConfig

LANES = 256
SLOTS = 64
SMALL = [0, 1, 255, 256, 257]
LARGE = 1_000_003
WORLDS = range(1, 9)


@pytest.fixture(scope="module")
def program() -> p4emu.Program:
    return p4emu.compile(SOURCE, defines={"INA_LANES": str(LANES), "INA_SLOTS": str(SLOTS)})


def perfect(program: p4emu.Program, world: int) -> SimulatedJob:
    return SimulatedJob(program, world, lanes=LANES, slots=SLOTS, link=PERFECT)


def rough(program: p4emu.Program, world: int, seed: int) -> SimulatedJob:
    return SimulatedJob(program, world, lanes=LANES, slots=SLOTS, link=ROUGH, seed=seed)


def assert_same_bits(outputs: list[Array]) -> None:
    for rank, output in enumerate(outputs):
        assert output.tobytes() == outputs[0].tobytes(), f"rank {rank} differs from rank 0"


def assert_exact(inputs: list[Array], outputs: list[Array]) -> None:
    assert (outputs[0] == np.sum(np.asarray(inputs, dtype=np.int64), axis=0)).all()


def assert_within_bound(inputs: list[Array], outputs: list[Array]) -> None:
    exact = np.sum(np.asarray(inputs, dtype=np.float64), axis=0)
    error = np.abs(outputs[0].astype(np.float64) - exact)
    excess = error - fp32_bound(inputs, LANES)
    assert (excess <= 0).all(), f"element {excess.argmax()} is off by {error[excess.argmax()]}"


CASES = [
    pytest.param(integers, assert_exact, id="int32"),
    pytest.param(floats, assert_within_bound, id="fp32"),
]
Make = Callable[[int, int], list[Array]]
Judge = Callable[[list[Array], list[Array]], None]


@pytest.mark.parametrize(("make", "judge"), CASES)
@pytest.mark.parametrize("world", WORLDS)
def test_small_sums_are_right_and_equal_on_all_ranks(
    program: p4emu.Program, world: int, make: Make, judge: Judge
) -> None:
    job = perfect(program, world)
    for size in SMALL:
        inputs = make(world, size)
        outputs = job.all_reduce(inputs)
        assert_same_bits(outputs)
        judge(inputs, outputs)
    assert job.count("job_duplicates") == 0
    assert job.count("job_stale") == 0


@pytest.mark.parametrize(("make", "judge"), CASES)
@pytest.mark.parametrize("world", WORLDS)
def test_large_sums_are_right_and_equal_on_all_ranks(
    program: p4emu.Program, world: int, make: Make, judge: Judge
) -> None:
    inputs = make(world, LARGE)
    outputs = perfect(program, world).all_reduce(inputs)
    assert_same_bits(outputs)
    judge(inputs, outputs)


@pytest.mark.parametrize(("make", "judge"), CASES)
@pytest.mark.parametrize("world", WORLDS)
def test_a_rough_network_changes_no_bit_of_small_sums(
    program: p4emu.Program, world: int, make: Make, judge: Judge
) -> None:
    smooth = perfect(program, world)
    job = rough(program, world, seed=world)
    for size in [*SMALL, 20 * LANES + 1]:
        inputs = make(world, size)
        expected = smooth.all_reduce(inputs)
        outputs = job.all_reduce(inputs)
        assert_same_bits(outputs)
        assert outputs[0].tobytes() == expected[0].tobytes()
        judge(inputs, outputs)
    assert sum(link.lost + link.duplicated + link.held for link in job.links()) > 0


@pytest.mark.parametrize(("make", "judge"), CASES)
@pytest.mark.parametrize("world", WORLDS)
def test_a_rough_network_changes_no_bit_of_large_sums(
    program: p4emu.Program, world: int, make: Make, judge: Judge
) -> None:
    inputs = make(world, LARGE)
    expected = perfect(program, world).all_reduce(inputs)
    job = rough(program, world, seed=world)
    outputs = job.all_reduce(inputs)
    assert_same_bits(outputs)
    assert outputs[0].tobytes() == expected[0].tobytes()
    judge(inputs, outputs)
    # It was rough: each kind of trouble came at every port, in both directions, and was noticed.
    for link in job.links():
        assert link.lost > 0.03 * link.sent
        assert link.duplicated > 0.01 * link.sent
        assert link.held > 0.03 * link.sent
    assert job.count("job_duplicates") > 0
    assert job.simulation.statistics(0).retransmissions > 0
    assert job.simulation.statistics(0).duplicates + job.simulation.statistics(0).stale > 0


def test_a_seed_repeats_a_run_exactly(program: p4emu.Program) -> None:
    def run(seed: int) -> tuple[float, int, int]:
        job = rough(program, 3, seed)
        job.all_reduce(floats(3, 50 * LANES))
        return job.simulation.now, job.count("job_duplicates"), job.count("job_stale")

    assert run(5) == run(5)
    assert run(5) != run(6)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100))
def test_no_seed_of_an_awful_network_changes_a_bit(program: p4emu.Program, seed: int) -> None:
    awful = LinkConfig(
        loss=0.2, duplicate=0.2, hold=0.2, hold_frames=300, hold_limit=0.2, corrupt=0.05
    )
    world = 1 + seed % 8
    inputs = floats(world, 300 * LANES + seed, seed)
    expected = perfect(program, world).all_reduce(inputs)
    job = SimulatedJob(program, world, lanes=LANES, slots=SLOTS, link=awful, seed=seed)
    outputs = job.all_reduce(inputs)
    assert_same_bits(outputs)
    assert outputs[0].tobytes() == expected[0].tobytes()
