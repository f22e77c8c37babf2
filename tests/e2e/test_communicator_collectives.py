"""Collectives of NumPy arrays through a real switch, over real sockets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from simulated_job import floats, fp32_bound, integers
from thread_ranks import JobFactory, run

from pycollective import Communicator

SIZES = (0, 1, 255, 256, 257, 100_003)


@pytest.mark.parametrize("world_size", [1, 2, 3, 8])
def test_int32_sums_are_exact_on_every_rank(job: JobFactory, world_size: int) -> None:
    inputs = {size: integers(world_size, size) for size in SIZES}

    def body(comm: Communicator) -> list[npt.NDArray[np.int32]]:
        return [comm.allreduce(inputs[size][comm.rank]) for size in SIZES]

    for results in run(job(world_size), body):
        for size, result in zip(SIZES, results, strict=True):
            np.testing.assert_array_equal(result, np.sum(inputs[size], axis=0, dtype=np.int64))
            assert result.dtype == np.int32


@pytest.mark.parametrize("world_size", [1, 2, 3, 8])
def test_float32_sums_are_within_the_bound_and_the_same_bits_on_every_rank(
    job: JobFactory, world_size: int
) -> None:
    inputs = {size: floats(world_size, size) for size in SIZES}
    members = job(world_size)

    def body(comm: Communicator) -> list[npt.NDArray[np.float32]]:
        return [comm.allreduce(inputs[size][comm.rank]) for size in SIZES]

    ranks = run(members, body)
    for index, size in enumerate(SIZES):
        exact = np.sum(np.asarray(inputs[size], dtype=np.float64), axis=0)
        result = ranks[0][index]
        ulp = np.spacing(np.abs(result)).astype(np.float64)
        bound = fp32_bound(inputs[size], members[0].lanes) + ulp / 2
        assert (np.abs(result.astype(np.float64) - exact) <= bound).all()
        assert all(rank[index].tobytes() == result.tobytes() for rank in ranks)


def test_nan_and_infinities_stay_in_their_lanes(job: JobFactory) -> None:
    def body(comm: Communicator) -> npt.NDArray[np.float32]:
        values = np.full(600, comm.rank + 1, np.float32)
        if comm.rank == 0:
            values[[0, 300]] = np.nan, np.inf
        else:
            values[[10, 300, 599]] = np.inf, -np.inf, -np.inf
        return comm.allreduce(values)

    for result in run(job(2), body):
        assert np.isnan(result[[0, 300]]).all()
        assert (result[10], result[599]) == (np.inf, -np.inf)
        others = np.delete(result, [0, 10, 300, 599])
        assert (others == 3).all()


def test_recv_is_written_and_returned_and_send_is_left_alone(job: JobFactory) -> None:
    def body(comm: Communicator) -> None:
        send, recv = np.ones((3, 4), np.float32), np.zeros((3, 4), np.float32)
        assert comm.allreduce(send, recv) is recv
        assert (send == 1).all()
        assert (recv == 2).all()

    run(job(2), body)


def test_send_may_be_recv(job: JobFactory) -> None:
    def body(comm: Communicator) -> None:
        array = np.arange(1000, dtype=np.int32)
        comm.allreduce(array, array)
        np.testing.assert_array_equal(array, 2 * np.arange(1000))

    run(job(2), body)


def test_send_and_recv_may_overlap(job: JobFactory) -> None:
    def body(comm: Communicator) -> None:
        memory = np.arange(1001, dtype=np.int32)
        comm.allreduce(memory[:1000], memory[1:])
        np.testing.assert_array_equal(memory[1:], 2 * np.arange(1000))

    run(job(2), body)


def test_arrays_that_are_not_contiguous_are_made_to_work(job: JobFactory) -> None:
    def body(comm: Communicator) -> None:
        square = np.full((50, 60), comm.rank + 1, np.float32)
        assert (comm.allreduce(square.T) == 3).all()
        assert (comm.allreduce(square[::3, ::-2]) == 3).all()
        target = np.zeros((50, 60), np.float32)
        comm.allreduce(square[:, ::2], target[:, 1::2])
        assert (target[:, 1::2] == 3).all()
        assert (target[:, ::2] == 0).all()
        column = np.full((4, 5), comm.rank, np.int64)
        comm.broadcast(column[:, 2], root=1)
        assert (column[:, 2] == 1).all()
        assert (column[:, 3] == comm.rank).all()

    run(job(2), body)


def test_scalars_and_lists_are_arrays_too(job: JobFactory) -> None:
    def body(comm: Communicator) -> None:
        total = comm.allreduce(np.float32(1.5))
        assert (total.shape, total) == ((), 3.0)
        gathered = comm.allgather([comm.rank, 7])
        np.testing.assert_array_equal(gathered, [[0, 7], [1, 7]])

    run(job(2), body)


DTYPES = ("?", "i1", "u2", "f2", "i4", "f4", "f8", "c16", "S5", "M8[s]", ">f8", "i4,f8")


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_dtype_of_plain_values_is_moved_unchanged(job: JobFactory, dtype: str) -> None:
    kind = np.dtype(dtype)
    random = np.random.default_rng(5)
    inputs = [np.frombuffer(random.bytes(40 * kind.itemsize), kind).reshape(8, 5) for _ in range(3)]

    def body(comm: Communicator) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        buffer = inputs[comm.rank].copy()
        return comm.broadcast(buffer, root=2), comm.allgather(inputs[comm.rank])

    for broadcasted, gathered in run(job(3), body):
        assert broadcasted.dtype == kind
        assert broadcasted.tobytes() == inputs[2].tobytes()
        assert gathered.shape == (3, 8, 5)
        assert gathered.tobytes() == b"".join(array.tobytes() for array in inputs)


def test_the_root_may_broadcast_what_it_may_not_write(job: JobFactory) -> None:
    def body(comm: Communicator) -> None:
        buffer = np.full(10, comm.rank, np.float64)
        if comm.rank == 0:
            buffer.flags.writeable = False
        comm.broadcast(buffer, root=0)
        assert (buffer == 0).all()

    run(job(2), body)


def test_arrays_without_elements_are_collectives_like_others(job: JobFactory) -> None:
    def body(comm: Communicator) -> None:
        empty = np.empty((0, 3), np.float64)
        assert comm.broadcast(empty).shape == (0, 3)
        assert comm.allgather(empty).shape == (2, 0, 3)

    run(job(2), body)


def test_many_works_may_run_at_once_and_be_waited_for_in_any_order(job: JobFactory) -> None:
    def body(comm: Communicator) -> None:
        sums = [comm.iallreduce(np.full(700, i, np.int32)) for i in range(40)]
        gathered = comm.iallgather(np.array(comm.rank))
        barrier = comm.ibarrier()
        barrier.wait()
        for i, work in reversed(list(enumerate(sums))):
            assert (work.wait() == 2 * i).all()
            assert work.done()
            assert work.exception() is None
            assert work.wait() is work.wait()
        np.testing.assert_array_equal(gathered.wait(), [0, 1])

    run(job(2), body)


def test_statistics_count_what_was_sent(job: JobFactory) -> None:
    def body(comm: Communicator) -> None:
        before = comm.statistics().engine
        comm.allreduce(np.ones(256 * 10, np.int32))
        after = comm.statistics().engine
        assert after.collectives_completed == before.collectives_completed + 1
        assert after.frames_sent - before.frames_sent - after.retransmissions == 10

    run(job(2), body)
