"""Stated misfortunes in the simulator, with the real P4 program: what must not matter does not, and
what must be an error is one that names the culprit.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from simulated_job import SOURCE, SimulatedJob, data_type, floats, integers

import p4emu
from pycollective._core import (
    Direction,
    ErrorCode,
    FaultAction,
    FaultRule,
    FrameMatch,
    LinkConfig,
    Opcode,
    Timers,
)

LANES = 16
SLOTS = 4  # W: slot and version of use u come again with use u + 2 W
DEFINES = {"INA_LANES": str(LANES), "INA_SLOTS": str(SLOTS)}
REUSED = 2 * SLOTS


@pytest.fixture(scope="module")
def program() -> p4emu.Program:
    return p4emu.compile(SOURCE, defines=DEFINES)


def make_job(program: p4emu.Program, world: int, **options: object) -> SimulatedJob:
    return SimulatedJob(program, world, lanes=LANES, slots=SLOTS, **options)  # type: ignore[arg-type]


def contribution(host: int, chunk: int) -> FrameMatch:
    return FrameMatch(
        host=host, direction=Direction.TO_SWITCH, opcode=Opcode.CONTRIBUTE, chunk=chunk
    )


def result(host: int, chunk: int) -> FrameMatch:
    return FrameMatch(host=host, direction=Direction.TO_HOST, opcode=Opcode.RESULT, chunk=chunk)


def run_late_duplicate(program: p4emu.Program) -> tuple[SimulatedJob, bool]:
    """A copy of rank 0's chunk 0 arrives when its slot version has begun its second life.

    Slot 0 holds chunk 0 (version 0), then chunk 4 (version 1), then chunk 8 (version 0 again). The
    copy arrives directly after rank 1 has begun chunk 8, and before rank 0's own part of it: rank
    0's bit is clear, so nothing but the tag can tell the copy from that part.
    """
    job = make_job(program, 2)
    begun = contribution(1, REUSED)
    copy = job.add_fault(
        FaultRule(FaultAction.DUPLICATE, contribution(0, 0), until_delivered=begun)
    )
    own = job.add_fault(FaultRule(FaultAction.HOLD, contribution(0, REUSED), until_delivered=begun))
    inputs = integers(2, 3 * SLOTS * LANES)
    outputs = [np.zeros_like(values) for values in inputs]
    for rank in range(2):
        job.simulation.all_reduce(rank, inputs[rank], outputs[rank], data_type(inputs[rank]))
    finished = job.simulation.run()
    # Both rules did what the scenario says, at the same moment, the copy first.
    assert (job.fault(copy).hit, job.fault(copy).released) == (1, 1)
    assert (job.fault(own).hit, job.fault(own).released) == (1, 1)
    assert job.fault(copy).moment == job.fault(own).moment
    right = finished and all((out == inputs[0] + inputs[1]).all() for out in outputs)
    return job, right


def test_a_duplicate_held_back_over_two_reuses_of_its_slot_changes_nothing(
    program: p4emu.Program,
) -> None:
    job, right = run_late_duplicate(program)
    assert right
    assert job.count("job_stale") == 1
    assert job.count("job_duplicates") == 0
    assert job.count("job_packets") == 2 * 3 * SLOTS


def test_without_the_tag_that_duplicate_would_be_counted(tmp_path: Path) -> None:
    """The published scheme, which compares no tag, gets a wrong sum from the same scenario."""
    folder = tmp_path / "p4"
    for path in [SOURCE, *(SOURCE.parent / "include").iterdir()]:
        copy = folder / path.relative_to(SOURCE.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text())
    aggregation = folder / "include" / "aggregation.p4"
    text = aggregation.read_text()
    blind = "        same = !newer;\n"
    mark = "        bit<32> before;\n"
    assert text.count(mark) == 1
    aggregation.write_text(text.replace(mark, blind + mark))

    job, right = run_late_duplicate(p4emu.compile(folder / SOURCE.name, defines=DEFINES))
    assert not right
    assert job.count("job_stale") == 0


def test_a_lost_result_is_sent_again_to_the_rank_that_lacks_it(program: p4emu.Program) -> None:
    job = make_job(program, 3)
    lost = job.add_fault(FaultRule(FaultAction.DROP, result(1, 2)))
    inputs = integers(3, 6 * LANES)
    outputs = job.all_reduce(inputs)
    assert job.fault(lost).hit == 1
    assert all((out == np.sum(inputs, axis=0)).all() for out in outputs)
    assert job.count("job_duplicates") == 1
    assert [job.simulation.statistics(rank).retransmissions for rank in range(3)] == [0, 1, 0]


def test_a_lost_contribution_is_repeated_and_the_others_learn_who_is_late(
    program: p4emu.Program,
) -> None:
    job = make_job(program, 3)
    match = contribution(2, 0)
    job.add_fault(FaultRule(FaultAction.DROP, match, count=0, until_time=0.3))
    outputs = job.all_reduce(integers(3, LANES))
    assert all((out == outputs[0]).all() for out in outputs)
    assert 0.3 < job.simulation.now < 1.5
    assert job.simulation.statistics(0).statuses > 0
    # Backing off keeps a slow rank from drawing a storm: 50, 100, 200 ms.
    assert job.simulation.statistics(0).retransmissions < 8


def test_corruption_is_counted_and_never_changes_a_result(program: p4emu.Program) -> None:
    link = LinkConfig(corrupt=0.05)
    for seed in range(3):
        inputs = floats(4, 100 * LANES, seed)
        expected = make_job(program, 4).all_reduce(inputs)
        job = make_job(program, 4, link=link, seed=seed)
        outputs = job.all_reduce(inputs)
        assert all(out.tobytes() == expected[0].tobytes() for out in outputs)
        assert job.malformed() > 0
        damaged = [sum(job.simulation.statistics(rank).malformed.values()) for rank in range(4)]
        assert min(damaged) > 0
        assert job.malformed() + sum(damaged) <= sum(link.corrupted for link in job.links())


def test_a_missing_rank_is_named_within_the_deadline(program: p4emu.Program) -> None:
    job = make_job(program, 4, timers=Timers(deadline=0.5))
    job.simulation.silence(2)
    inputs = integers(4, 10 * LANES)
    outputs = [np.zeros_like(values) for values in inputs]
    numbers = {
        rank: job.simulation.all_reduce(rank, inputs[rank], outputs[rank], data_type(inputs[rank]))
        for rank in (0, 1, 3)
    }
    for rank, error in job.errors(numbers).items():
        assert error is not None
        assert error.code == ErrorCode.DEADLINE_EXCEEDED
        assert (error.rank, error.job, error.operation) == (rank, 1, "all_reduce")
        assert error.missing_ranks == [2]
        assert "rank 2" in error.text
        assert error.waited >= 0.5
    assert all(ended.at < 0.6 for ended in job.simulation.ended)


def test_a_rank_that_dies_in_the_middle_is_named(program: p4emu.Program) -> None:
    job = make_job(program, 3, timers=Timers(deadline=0.5))
    job.barrier()
    job.simulation.silence(0)
    numbers = {rank: job.simulation.barrier(rank) for rank in (1, 2)}
    for error in job.errors(numbers).values():
        assert error is not None
        assert error.missing_ranks == [0]
        assert error.sequence == 2


def test_an_overflow_is_an_error_on_every_rank_and_does_not_end_the_job(
    program: p4emu.Program,
) -> None:
    job = make_job(program, 2)
    values = np.zeros(3 * LANES, dtype=np.int32)
    values[LANES + 3] = 2**31 - 1
    inputs = [values, np.ones_like(values)]
    outputs = [np.zeros_like(values) for _ in inputs]
    numbers = {
        rank: job.simulation.all_reduce(rank, inputs[rank], outputs[rank], data_type(values))
        for rank in range(2)
    }
    for rank, error in job.errors(numbers).items():
        assert error is not None
        assert error.code == ErrorCode.REDUCTION_OVERFLOW
        assert (error.rank, error.sequence, error.chunk) == (rank, 1, 1)
    job.barrier()


@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_nan_and_infinity_give_what_an_ieee_sum_gives(program: p4emu.Program, loss: float) -> None:
    job = make_job(program, 3, link=LinkConfig(loss=loss))
    inputs = floats(3, 5 * LANES + 1)
    inputs[0][3] = np.nan
    inputs[1][LANES] = np.inf
    inputs[0][2 * LANES] = np.inf
    inputs[2][2 * LANES] = -np.inf
    inputs[2][5 * LANES] = -np.inf
    clean = [np.where(np.isfinite(values), values, np.float32(0)) for values in inputs]
    outputs = job.all_reduce(inputs)
    with np.errstate(invalid="ignore"):
        ieee = np.sum(np.asarray(inputs, dtype=np.float64), axis=0)
    special = ~np.isfinite(ieee)
    assert special.sum() == 4
    for out in outputs:
        assert out.tobytes() == outputs[0].tobytes()
        assert np.array_equal(out[special].astype(np.float64), ieee[special], equal_nan=True)
    # The other lanes are what they would be without.
    undisturbed = make_job(program, 3).all_reduce(clean)[0]
    assert (outputs[0][~special] == undisturbed[~special]).all()


@pytest.mark.parametrize("change", ["size", "dtype", "operation"])
def test_ranks_that_call_different_collectives_all_learn_of_it(
    program: p4emu.Program, change: str
) -> None:
    job = make_job(program, 2)
    first = np.zeros(2 * LANES, dtype=np.int32)
    other = np.zeros(3 * LANES if change == "size" else 2 * LANES, dtype=np.int32)
    if change == "dtype":
        other = other.astype(np.float32)
    numbers = {0: job.simulation.all_reduce(0, first, first, data_type(first))}
    if change == "operation":
        numbers[1] = job.simulation.barrier(1)
    else:
        numbers[1] = job.simulation.all_reduce(1, other, other, data_type(other))
    for error in job.errors(numbers).values():
        assert error is not None
        assert error.code == ErrorCode.MISMATCH


@pytest.mark.parametrize("root", [0, 2])
@pytest.mark.parametrize("size", [0, 1, 63, 64, 1001])
def test_broadcast_gives_the_roots_bytes_to_everyone(
    program: p4emu.Program, root: int, size: int
) -> None:
    link = LinkConfig(loss=0.05, duplicate=0.05, hold=0.05)
    job = make_job(program, 3, link=link, seed=size)
    data = np.random.default_rng(size).bytes(size)
    buffers = [bytearray(data if rank == root else size) for rank in range(3)]
    job.broadcast(buffers, root)
    assert all(bytes(buffer) == data for buffer in buffers)


def test_collectives_of_all_kinds_follow_each_other_on_a_rough_network(
    program: p4emu.Program,
) -> None:
    link = LinkConfig(loss=0.03, duplicate=0.03, hold=0.03, corrupt=0.01)
    job = make_job(program, 3, link=link, seed=11)
    for turn in range(10):
        whole = integers(3, 30 * turn + 1, turn)
        assert (job.all_reduce(whole)[2] == np.sum(whole, axis=0)).all()
        buffers = [bytearray(b"turn %d" % turn if rank == 0 else 6) for rank in range(3)]
        job.broadcast(buffers, 0)
        assert buffers[1] == b"turn %d" % turn
        job.barrier()
        outputs = job.all_reduce(floats(3, 40, turn))
        assert all(out.tobytes() == outputs[0].tobytes() for out in outputs)
