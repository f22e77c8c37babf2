"""Collectives on NumPy arrays and buffers, in mpi4py's shape. Needs no torch.

A `Communicator` is one rank's membership in a job on a switch. Its methods must be called by all
ranks in the same order. The plain methods wait; those with an `i` before their name return a `Work`
at once. It knows nothing of switches and how they are found: that is `pycollective.fabric`.
"""

from __future__ import annotations

import enum
import os
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pycollective import _core, arrays, fabric
from pycollective.arrays import Array
from pycollective.config import DEFAULT_DEADLINE, Membership, Settings, udp_endpoint
from pycollective.errors import ConfigurationError, UnsupportedError, from_core
from pycollective.fabric import AddressMeeting, Attachment, Meeting
from pycollective.work import Work

__all__ = ["Communicator", "ReduceOp", "Work"]

T = TypeVar("T")


class ReduceOp(enum.Enum):
    """How elements of different ranks are combined. The network sums."""

    SUM = "sum"


class Communicator:
    """One rank of a job: all-reduce, broadcast, all-gather and barrier through the switch.

    Parameters
    ----------
    connection
        Of this rank to its switch port; the communicator closes it.
    on_close
        Called once, after the connection is closed: how a switch that was started for this job
        ends with it.

    Examples
    --------
    >>> with Communicator.create() as comm:  # RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT are set
    ...     total = comm.allreduce(np.ones(1000, np.float32))
    """

    def __init__(
        self, connection: _core.Connection, on_close: Callable[[], None] | None = None
    ) -> None:
        self._connection = connection
        # Also when the communicator is forgotten and when the interpreter ends.
        self._leave = weakref.finalize(self, _leave, connection, on_close)
        config = connection.config
        self.rank = config.rank
        self.world_size = config.world_size
        self.job = config.job

    # --- life ---------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        master: tuple[str, int] | None = None,
        deadline: float | None = None,
        connect_timeout: float = 60.0,
    ) -> Communicator:
        """Joins a job with all other ranks that call this; arguments override the environment.

        Without PYCOLLECTIVE_CONTROLLER in the environment rank 0 starts a switch for this job, on
        this machine; with it, rank 0 creates a job on the switch named there. Alone in the world
        (neither `world_size` nor WORLD_SIZE given) this is a job of one rank.

        Parameters
        ----------
        master
            Host and port where rank 0 listens for the others.
        deadline
            Seconds that each collective may take; PYCOLLECTIVE_DEADLINE, or 30.
        connect_timeout
            Seconds to wait for the other ranks and the switch.

        Raises
        ------
        ConfigurationError
            For settings that are missing or cannot be right.
        RendezvousError
            When the ranks do not find each other.
        FabricError
            When the switch cannot be started or configured.
        CollectiveError
            When the switch does not answer this rank.
        """
        settings = Settings.from_environment(os.environ)
        rank = _first(rank, settings.rank, 0)
        world_size = _first(world_size, settings.world_size, 1)
        attachment = fabric.attach(
            settings,
            rank=rank,
            world_size=world_size,
            meeting=_meeting(master or settings.master, rank, world_size),
            timeout=connect_timeout,
        )
        return cls.attach(attachment, deadline=_first(deadline, settings.deadline))

    @classmethod
    def join(
        cls,
        membership: Membership,
        *,
        deadline: float = DEFAULT_DEADLINE,
        connect_timeout: float = 5.0,
        local: str | None = None,
        mtu: int | None = None,
    ) -> Communicator:
        """Joins a job that somebody else has configured on a switch, as this rank of it.

        Parameters
        ----------
        local
            HOST or HOST:PORT to send from; None leaves it to the system.
        mtu
            Bytes an IP packet of the path may have; None asks the system.

        Raises
        ------
        CollectiveError
            When the switch does not answer, or full frames do not fit the path.
        """
        return cls(connect(membership, deadline, connect_timeout, local=local, mtu=mtu))

    @classmethod
    def attach(cls, attachment: Attachment, *, deadline: float = DEFAULT_DEADLINE) -> Communicator:
        """Joins as the fabric's attachment says, and leaves it on close.

        Raises
        ------
        CollectiveError
            When the switch does not answer.
        """
        try:
            connection = connect(attachment.membership, deadline)
        except BaseException:
            attachment.close()
            raise
        return cls(connection, attachment.close)

    def close(self) -> None:
        """Leaves the job. Outstanding works fail with `CancelledError`. May be called again."""
        self._leave()

    def __enter__(self) -> Communicator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._connection.closed else "open"
        return f"<Communicator job {self.job}, rank {self.rank} of {self.world_size}, {state}>"

    def statistics(self) -> _core.ConnectionStatistics:
        """What the engine and the socket of this rank have counted so far."""
        return self._connection.statistics()

    # --- collectives --------------------------------------------------------------------------

    def allreduce(
        self,
        send: npt.ArrayLike,
        recv: Array | None = None,
        op: ReduceOp = ReduceOp.SUM,
        *,
        deadline: float | None = None,
    ) -> Array:
        """Sums arrays over all ranks, element by element.

        Parameters
        ----------
        send
            float32 or int32, of the same size on all ranks.
        recv
            Where to put the sum; may be `send` itself. None makes a new array.
        deadline
            Seconds, instead of the communicator's.

        Returns
        -------
        ndarray
            `recv`, the same bits on every rank. float32 sums have the bound of docs/numerics.md.

        Raises
        ------
        UnsupportedError
            For another dtype or op, before anything is sent.
        ReductionOverflowError
            When an int32 sum leaves its range, on every rank.
        CollectiveError
            When it fails otherwise.
        """
        return self.iallreduce(send, recv, op, deadline=deadline).wait()

    def iallreduce(
        self,
        send: npt.ArrayLike,
        recv: Array | None = None,
        op: ReduceOp = ReduceOp.SUM,
        *,
        deadline: float | None = None,
    ) -> Work[Array]:
        """`allreduce` that does not wait. `send` must not change before the work is done."""
        if op is not ReduceOp.SUM:
            raise UnsupportedError(f"all-reduce supports ReduceOp.SUM in the network, found {op!r}")
        source = arrays.as_array(send, "send")
        dtype = arrays.reducible(source, "send")
        target = np.empty(source.shape, source.dtype) if recv is None else recv
        arrays.check_writable(target, "recv")
        _check_same(source, target)
        staged = arrays.writable(target)
        memory = arrays.readable(source)
        if np.may_share_memory(memory, staged.memory) and not _same_memory(memory, staged.memory):
            memory = memory.copy()
        handle = self._submit(
            lambda: self._connection.all_reduce(
                memory,
                staged.memory,
                dtype,
                _core.ReduceOp.SUM,
                deadline=deadline,
                signature=arrays.signature(source),
            )
        )
        return Work([handle], target, staged.copy_back)

    def broadcast(self, buffer: Array, root: int = 0, *, deadline: float | None = None) -> Array:
        """Gives every rank the root's values, in place.

        Parameters
        ----------
        buffer
            Any dtype of plain values, the same dtype and shape on all ranks; written except at the
            root.

        Raises
        ------
        ConfigurationError
            For a root that is not a rank, or a buffer that cannot be written.
        CollectiveError
            When it fails.
        """
        return self.ibroadcast(buffer, root, deadline=deadline).wait()

    def ibroadcast(
        self, buffer: Array, root: int = 0, *, deadline: float | None = None
    ) -> Work[Array]:
        """`broadcast` that does not wait."""
        if not 0 <= root < self.world_size:
            raise ConfigurationError(
                f"root is a rank of 0 to {self.world_size - 1}, found {root} on rank {self.rank}"
            )
        if self.rank == root:
            array = arrays.as_array(buffer, "buffer")
            memory = arrays.readable(array)
            # The core asks for memory it may write, also where it will only read.
            staged = arrays.Staged(memory if memory.flags.writeable else memory.copy(), None)
        else:
            array = arrays.check_writable(buffer, "buffer")
            staged = arrays.writable(array)
        handle = self._broadcast(staged.memory, root, deadline)
        return Work([handle], array, staged.copy_back)

    def allgather(
        self, send: npt.ArrayLike, recv: Array | None = None, *, deadline: float | None = None
    ) -> Array:
        """Gives every rank the arrays of all ranks.

        Parameters
        ----------
        send
            Any dtype of plain values, the same dtype and shape on all ranks.
        recv
            Shape (world_size, *send.shape). None makes a new array.

        Returns
        -------
        ndarray
            `recv`; row r is rank r's `send`.

        Raises
        ------
        ConfigurationError
            For a `recv` that does not fit `send`.
        CollectiveError
            When it fails.
        """
        return self.iallgather(send, recv, deadline=deadline).wait()

    def iallgather(
        self, send: npt.ArrayLike, recv: Array | None = None, *, deadline: float | None = None
    ) -> Work[Array]:
        """`allgather` that does not wait: one broadcast of each rank, all under way together."""
        source = arrays.as_array(send, "send")
        shape = (self.world_size, *source.shape)
        target = np.empty(shape, source.dtype) if recv is None else recv
        arrays.check_writable(target, "recv")
        if target.shape != shape or target.dtype != source.dtype:
            raise ConfigurationError(
                f"recv must have shape {shape} and dtype {source.dtype}, one row for each rank, "
                f"found {target.shape} and {target.dtype} on rank {self.rank}"
            )
        staged = arrays.writable(target)
        staged.memory[self.rank] = source
        rows = staged.memory.reshape(self.world_size, source.size)
        handles = [self._broadcast(row, rank, deadline) for rank, row in enumerate(rows)]
        return Work(handles, target, staged.copy_back)

    def barrier(self, *, deadline: float | None = None) -> None:
        """Waits until all ranks have called it.

        Raises
        ------
        CollectiveError
            When it fails; `DeadlineExceededError` names the ranks that did not come.
        """
        self.ibarrier(deadline=deadline).wait()

    def ibarrier(self, *, deadline: float | None = None) -> Work[None]:
        """`barrier` that does not wait."""
        return Work([self._submit(lambda: self._connection.barrier(deadline=deadline))], None)

    def _broadcast(self, memory: Array, root: int, deadline: float | None) -> _core.Handle:
        data = arrays.as_bytes(memory)
        dtype = arrays.movable(data)
        return self._submit(
            lambda: self._connection.broadcast(
                data, dtype, root, deadline=deadline, signature=arrays.signature(memory)
            )
        )

    def _submit(self, call: Callable[[], _core.Handle]) -> _core.Handle:
        try:
            return call()
        except _core.CoreError as error:
            raise from_core(error.error) from None


def _leave(connection: _core.Connection, on_close: Callable[[], None] | None) -> None:
    connection.close()
    if on_close is not None:
        on_close()


def connect(
    membership: Membership,
    deadline: float,
    connect_timeout: float = 5.0,
    *,
    local: str | None = None,
    mtu: int | None = None,
    completion_queue: bool = False,
) -> _core.Connection:
    """The core's connection to a rank's switch port, with the core's errors as exceptions.

    Raises
    ------
    CollectiveError
        See `_core.Connection.connect`.
    """
    try:
        return _core.Connection.connect(
            membership.job_config(deadline),
            udp_endpoint(membership.address),
            local,
            mtu=mtu,
            connect_timeout=connect_timeout,
            completion_queue=completion_queue,
        )
    except _core.CoreError as error:
        raise from_core(error.error) from None


def _meeting(master: tuple[str, int] | None, rank: int, world_size: int) -> Meeting:
    if master is not None and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        from pycollective.torch.store import agent_meeting

        return agent_meeting(os.environ, master, rank, world_size)
    return AddressMeeting(master)


def _check_same(send: Array, recv: Array) -> None:
    if send.shape != recv.shape or send.dtype != recv.dtype:
        raise ConfigurationError(
            f"recv must have the shape and dtype of send, {send.shape} and {send.dtype}, found "
            f"{recv.shape} and {recv.dtype}"
        )


def _same_memory(one: Array, other: Array) -> bool:
    return bool(one.__array_interface__["data"][0] == other.__array_interface__["data"][0])


def _first(*values: T | None) -> T:
    return next(value for value in values if value is not None)
