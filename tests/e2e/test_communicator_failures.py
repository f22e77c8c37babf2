"""What goes wrong ends with the right error on every rank, in time, and leaves nothing running."""

from __future__ import annotations

import dataclasses
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from thread_ranks import JobFactory, errors, run, start

from pycollective import (
    CancelledError,
    Communicator,
    ConfigurationError,
    DeadlineExceededError,
    EpochChangedError,
    MismatchError,
    MtuError,
    ReduceOp,
    ReductionOverflowError,
    SwitchUnreachableError,
    UnsupportedError,
)
from pycollective.controller import Controller


def test_a_missing_rank_is_named_when_the_deadline_passes(job: JobFactory) -> None:
    members = job(3)
    began = time.monotonic()
    found = errors(members[:2], lambda comm: comm.allreduce(np.ones(10, np.float32)), 1.0)
    assert time.monotonic() - began < 5
    for rank, error in enumerate(found):
        assert isinstance(error, DeadlineExceededError)
        assert error.missing_ranks == (2,)
        assert (error.rank, error.operation, error.sequence) == (rank, "all_reduce", 1)
        assert error.waited == pytest.approx(1.0, abs=0.3)
        assert "waits for rank 2" in str(error)


def test_a_call_may_have_a_deadline_of_its_own(job: JobFactory) -> None:
    members = job(2)
    with (
        Communicator.join(members[0], deadline=60) as comm,
        pytest.raises(DeadlineExceededError, match="barrier #1 on rank 0"),
    ):
        comm.barrier(deadline=0.2)


def test_waiting_may_be_given_up_and_taken_up_again(job: JobFactory) -> None:
    members = job(2)
    with (
        ThreadPoolExecutor(1) as pool,
        Communicator.join(members[0]) as comm,
    ):
        work = comm.ibarrier()
        with pytest.raises(DeadlineExceededError, match="still runs"):
            work.wait(timeout=0.05)
        assert not work.done()
        assert work.exception() is None
        (other,) = start(pool, members[1:], lambda comm: comm.barrier())
        work.wait()
        other.result()


@pytest.mark.parametrize(
    "calls",
    [
        (lambda comm: comm.allreduce(np.ones(10, np.float32)),
         lambda comm: comm.allreduce(np.ones(11, np.float32))),
        (lambda comm: comm.allreduce(np.ones(10, np.float32)),
         lambda comm: comm.allreduce(np.ones(10, np.int32))),
        (lambda comm: comm.allreduce(np.ones(0, np.int32)),
         lambda comm: comm.allreduce(np.ones(1, np.int32))),
        (lambda comm: comm.allreduce(np.ones(10, np.int32)),
         lambda comm: comm.barrier()),
        (lambda comm: comm.broadcast(np.ones(10), root=0),
         lambda comm: comm.broadcast(np.ones(10), root=1)),
        (lambda comm: comm.broadcast(np.ones(10, np.float32), root=0),
         lambda comm: comm.broadcast(np.ones(10, np.int32), root=0)),
        (lambda comm: comm.allgather(np.ones(10)),
         lambda comm: comm.allgather(np.ones(9))),
        (lambda comm: comm.allreduce(np.ones((2, 3), np.float32)),
         lambda comm: comm.allreduce(np.ones((3, 2), np.float32))),
        (lambda comm: comm.broadcast(np.ones(10, np.int64), root=0),
         lambda comm: comm.broadcast(np.ones(10, np.float64), root=0)),
        (lambda comm: comm.broadcast(np.ones(10, "<u2"), root=0),
         lambda comm: comm.broadcast(np.ones(10, ">u2"), root=0)),
    ],
    ids=["sizes", "dtypes", "nothing", "collectives", "roots", "broadcast", "allgather",
         "shapes", "dtypes of one width", "byte orders"],
)  # fmt: skip
def test_calls_that_differ_across_ranks_raise_on_all_of_them(job: JobFactory, calls: tuple) -> None:  # type: ignore[type-arg]
    found = errors(job(2), lambda comm: calls[comm.rank](comm))
    assert [type(error) for error in found] == [MismatchError, MismatchError]
    assert all("all ranks must call the same collective" in str(error) for error in found)


def test_an_int32_sum_that_overflows_raises_on_all_ranks_and_the_communicator_goes_on(
    job: JobFactory,
) -> None:
    def body(comm: Communicator) -> None:
        comm.barrier()
        values = np.zeros(1000, np.int32)
        values[777] = 2**30
        with pytest.raises(ReductionOverflowError, match="all_reduce #2 on rank"):
            comm.allreduce(values)
        assert (comm.allreduce(np.ones(5, np.int32)) == 2).all()

    run(job(2), body)


UNSUPPORTED = [
    np.ones(3, np.float64), np.ones(3, np.float16), np.ones(3, np.int64), np.ones(3, bool),
    np.ones(3, ">f4"), np.ones(3, np.complex64), np.array(["text"]), np.array([None]),
]  # fmt: skip


@pytest.mark.parametrize("values", UNSUPPORTED, ids=lambda values: str(values.dtype))
def test_a_dtype_that_cannot_be_summed_is_refused_before_anything_is_sent(
    job: JobFactory, values: np.ndarray
) -> None:
    with Communicator.join(job(2)[0]) as comm:
        before = comm.statistics().engine.frames_sent
        with pytest.raises(UnsupportedError, match=str(values.dtype)):
            comm.allreduce(values)
        assert comm.statistics().engine.frames_sent == before


def test_other_arguments_that_cannot_be_right_are_refused_before_anything_is_sent(
    job: JobFactory,
) -> None:
    frozen = np.ones(3, np.float32)
    frozen.flags.writeable = False
    with Communicator.join(job(2)[0]) as comm:
        before = comm.statistics().engine.frames_sent
        with pytest.raises(UnsupportedError, match=r"ReduceOp\.SUM"):
            comm.allreduce(np.ones(3, np.float32), op="max")  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="recv must have the shape"):
            comm.allreduce(np.ones(3, np.float32), np.ones(4, np.float32))
        with pytest.raises(ConfigurationError, match="recv must have the shape and dtype"):
            comm.allreduce(np.ones(3, np.float32), np.ones(3, np.int32))
        with pytest.raises(ConfigurationError, match="recv is read-only"):
            comm.allreduce(np.ones(3, np.float32), frozen)
        with pytest.raises(ConfigurationError, match="must be a NumPy array, found list"):
            comm.broadcast([1, 2], root=1)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="root is a rank of 0 to 1, found 2"):
            comm.broadcast(np.ones(3), root=2)
        with pytest.raises(UnsupportedError, match="pointers"):
            comm.broadcast(np.array([{}]))
        with pytest.raises(ConfigurationError, match=r"recv must have shape \(2, 3\)"):
            comm.allgather(np.ones(3), np.ones((3, 3)))
        assert comm.statistics().engine.frames_sent == before
    assert list(ReduceOp) == [ReduceOp.SUM]


def test_closing_fails_what_runs(job: JobFactory) -> None:
    comm = Communicator.join(job(2)[0])
    work = comm.ibarrier()
    comm.close()
    with pytest.raises(CancelledError, match="was cancelled"):
        work.wait()
    with pytest.raises(CancelledError):
        comm.barrier()
    comm.close()
    assert "closed" in repr(comm)


def test_a_switch_that_is_not_there_is_said_to_be_silent(job: JobFactory) -> None:
    absent = dataclasses.replace(job(1)[0], address="udp:127.0.0.1:9")
    with pytest.raises(SwitchUnreachableError, match="no answer to probes"):
        Communicator.join(absent, connect_timeout=0.3)


def test_a_stranger_is_not_admitted_and_counted(job: JobFactory, controller: Controller) -> None:
    member = job(2)[0]
    before = controller.counters(member.job).rejected
    stranger = dataclasses.replace(member, mac="02:00:00:00:00:01")
    with pytest.raises(SwitchUnreachableError, match="admitted to the job"):
        Communicator.join(stranger, connect_timeout=0.3)
    assert controller.counters(member.job).rejected > before


def test_a_member_from_before_the_job_was_started_anew_is_told_so(job: JobFactory) -> None:
    member = job(1)[0]
    old = dataclasses.replace(member, epoch=member.epoch % 65535 + 1)
    with pytest.raises(EpochChangedError, match="join it again"):
        Communicator.join(old)


def test_a_frame_that_does_not_fit_the_path_is_refused(job: JobFactory) -> None:
    with pytest.raises(MtuError, match="1094"):
        Communicator.join(job(1)[0], mtu=1000)


def test_a_rank_that_closes_early_does_not_harm_a_collective_that_has_its_part(
    job: JobFactory,
) -> None:
    members = job(2)
    gone = Event()

    def body(comm: Communicator) -> None:
        if comm.rank == 0:
            comm.barrier()
            comm.close()
            gone.set()
        else:
            work = comm.ibarrier()
            assert gone.wait(20)
            work.wait()

    run(members, body)
