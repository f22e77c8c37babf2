"""The process group behind `init_process_group("pycollective")`.

It turns torch's calls into collectives of the core, on tensors in place. What it cannot do it
refuses with `UnsupportedError` before anything is sent. It owns one connection to the switch and
the thread that completes futures; both end with `destroy_process_group`, with the object, or with
the interpreter.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NoReturn

import torch
import torch.distributed as dist

from pycollective import _core, fabric
from pycollective.communicator import connect
from pycollective.config import Settings
from pycollective.errors import ConfigurationError, UnsupportedError, from_core
from pycollective.torch import BACKEND, tensors
from pycollective.torch.store import StoreMeeting, own_address
from pycollective.torch.work import Completion, Work

Tensors = list[torch.Tensor]

_JOIN_TIMEOUT = 60.0
"""Seconds that the ranks may take to meet and the switch to start."""


def create(options: Any, _: object) -> ProcessGroup:
    """What torch calls to make a group; `options` is its `_DistributedBackendOptions`."""
    settings = Settings.from_environment(os.environ)
    if settings.controller is not None and len(options.global_ranks_in_group) > 0:
        raise UnsupportedError(
            "new_group over pycollective needs a switch port of its own for each rank, but with "
            "PYCOLLECTIVE_CONTROLLER each rank has one port, which the default group uses; unset "
            'it, or use new_group(..., backend="gloo") for this group'
        )
    timeout: timedelta = options.timeout
    deadline = timeout.total_seconds()
    if timeout == dist.default_pg_timeout and "PYCOLLECTIVE_DEADLINE" in os.environ:
        deadline = settings.deadline
    attachment = fabric.attach(
        settings,
        rank=options.group_rank,
        world_size=options.group_size,
        meeting=StoreMeeting(options.store, own_address()),
        timeout=min(_JOIN_TIMEOUT, deadline),
    )
    return ProcessGroup(attachment, deadline)


class ProcessGroup(dist.ProcessGroup):
    """Ranks that share one job on a switch.

    Parameters
    ----------
    attachment
        This rank's place in the job; left when the group ends.
    deadline
        Seconds that a collective may take unless its call says otherwise.
    """

    def __init__(self, attachment: fabric.Attachment, deadline: float) -> None:
        membership = attachment.membership
        super().__init__(membership.rank, membership.world_size)  # type: ignore[call-arg]
        try:
            self._connection = connect(membership, deadline, completion_queue=True)
        except BaseException:
            attachment.close()
            raise
        self._world_size = membership.world_size
        self._rank = membership.rank
        self.job = membership.job
        self._name = ""
        self._description = ""
        self._completion = Completion(self._connection)
        self._leave = weakref.finalize(self, _leave, self._completion, attachment)

    # --- what torch asks a group --------------------------------------------------------------

    def getBackendName(self) -> str:
        """The name it is registered under."""
        return BACKEND

    # torch keeps names in the C++ backends of a group; a group in Python has none, and must keep
    # them itself: functional collectives find it by name.

    def setGroupName(self, name: str) -> None:
        """Called by torch once, with the name by which it registers the group."""
        self._name = name

    def getGroupName(self) -> str:
        """What `setGroupName` was given."""
        return self._name

    def setGroupDesc(self, description: str) -> None:
        """Called by torch once, with new_group's `group_desc`."""
        self._description = description

    def getGroupDesc(self) -> str:
        """What `setGroupDesc` was given."""
        return self._description

    def shutdown(self) -> None:
        """Leaves the job; outstanding works fail with `CancelledError`. May be called again."""
        self._leave()

    def abort(self) -> None:
        """The same as `shutdown`."""
        self._leave()

    def statistics(self) -> _core.ConnectionStatistics:
        """What the engine and the socket of this rank have counted so far."""
        return self._connection.statistics()

    # --- collectives --------------------------------------------------------------------------

    def allreduce(self, inputs: Tensors, opts: Any = None) -> Work:  # type: ignore[override]
        """Sums (or, for float32, averages) tensors in place, element by element."""
        opts = dist.AllreduceOptions() if opts is None else opts
        average = _is_average(opts.reduceOp)
        deadline = _deadline(opts)
        plan = []
        for tensor in inputs:
            kind = tensors.reducible(tensor, "all_reduce")
            if average and not tensor.is_floating_point():
                raise UnsupportedError(
                    f"all_reduce with ReduceOp.AVG needs floating point, found {tensor.dtype}; "
                    "use ReduceOp.SUM and divide"
                )
            plan.append((tensors.stage(tensor, "all_reduce", fill=True), kind))

        def begin() -> list[_core.Handle]:
            return [
                self._connection.all_reduce_ptr(
                    staged.memory.data_ptr(),
                    staged.memory.data_ptr(),
                    staged.memory.numel(),
                    kind,
                    _core.ReduceOp.SUM,
                    staged.memory,
                    deadline=deadline,
                    signature=tensors.signature(staged.memory),
                )
                for staged, kind in plan
            ]

        staged = [entry for entry, _ in plan]
        divisor = self._world_size if average else None
        return self._submit(begin, inputs, _finish(staged, divisor))

    def allreduce_coalesced(self, inputs: Tensors, opts: Any = None) -> Work:
        """Sums several tensors in place."""
        return self.allreduce(inputs, opts)

    def broadcast(self, inputs: Tensors, opts: Any) -> Work:  # type: ignore[override]
        """Gives every rank the root's tensors, in place; any dtype."""
        root, deadline = int(opts.rootRank), _deadline(opts)
        staged = [tensors.stage(tensor, "broadcast", fill=root == self._rank) for tensor in inputs]

        def begin() -> list[_core.Handle]:
            return [self._broadcast(entry.memory, root, deadline) for entry in staged]

        return self._submit(begin, inputs, None if root == self._rank else _finish(staged))

    def allgather(  # type: ignore[override]
        self, outputs: list[Tensors], inputs: Tensors, opts: Any = None
    ) -> Work:
        """Gives every rank the tensors of all ranks; any dtype.

        One broadcast of each rank, all under way together.
        """
        deadline = _deadline(opts)
        staged: list[tensors.Staged] = []
        for slots, tensor in zip(outputs, inputs, strict=True):
            self._check_slots(slots, tensor)
            own = tensors.stage(tensor, "all_gather", fill=True)
            entries = [tensors.stage(slot, "all_gather", fill=False) for slot in slots]
            entries[self._rank].memory.view(-1).copy_(own.memory.view(-1))
            staged += entries
        result = outputs[0] if len(outputs) == 1 else outputs
        return self._submit(
            lambda: self._broadcast_each(staged, deadline), list(result), _finish(staged)
        )

    def all_gather_single(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> Work:
        """Gives every rank the tensors of all ranks, one behind the other in one tensor."""
        return self.all_gather_single_coalesced([output], [input], opts)

    def all_gather_single_coalesced(
        self, output_lists: Tensors, input_list: Tensors, opts: Any = None
    ) -> Work:
        """`all_gather_single` of several tensors."""
        deadline = _deadline(opts)
        whole: list[tensors.Staged] = []
        parts: list[tensors.Staged] = []
        for output, tensor in zip(output_lists, input_list, strict=True):
            if output.numel() != tensor.numel() * self._world_size or output.dtype != tensor.dtype:
                raise ConfigurationError(
                    f"all_gather's output must hold {self._world_size} times the input, "
                    f"{self._world_size * tensor.numel()} elements of {tensor.dtype}, found "
                    f"{output.numel()} of {output.dtype} on rank {self._rank}"
                )
            own = tensors.stage(tensor, "all_gather", fill=True)
            target = tensors.stage(output, "all_gather", fill=False)
            rows = target.memory.view(self._world_size, tensor.numel())
            rows[self._rank].copy_(own.memory.view(-1))
            whole.append(target)
            parts += [tensors.Staged(row, None) for row in rows]
        return self._submit(
            lambda: self._broadcast_each(parts, deadline), list(output_lists), _finish(whole)
        )

    # The names of the same before torch 2.13.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def barrier(self, opts: Any = None) -> Work:
        """Done when all ranks have called it."""
        deadline = _deadline(opts)
        return self._submit(lambda: [self._connection.barrier(deadline=deadline)], [], None)

    # --- what it refuses ----------------------------------------------------------------------

    def reduce(self, *args: object, **kwargs: object) -> NoReturn:
        """Not carried."""
        _refuse("reduce", "use all_reduce")

    def gather(self, *args: object, **kwargs: object) -> NoReturn:
        """Not carried."""
        _refuse("gather", "use all_gather")

    def scatter(self, *args: object, **kwargs: object) -> NoReturn:
        """Not carried."""
        _refuse("scatter", "broadcast the whole and take a part")

    def reduce_scatter(self, *args: object, **kwargs: object) -> NoReturn:
        """Not carried."""
        _refuse("reduce_scatter", "use all_reduce and take a part")

    reduce_scatter_single = reduce_scatter
    reduce_scatter_single_coalesced = reduce_scatter
    _reduce_scatter_base = reduce_scatter
    reduce_scatter_tensor_coalesced = reduce_scatter

    def alltoall(self, *args: object, **kwargs: object) -> NoReturn:
        """Not carried."""
        _refuse("all_to_all", "use all_gather and take a part")

    all_to_all_single = alltoall
    alltoall_base = alltoall

    def send(self, *args: object, **kwargs: object) -> NoReturn:
        """Not carried."""
        _refuse("send", "use broadcast")

    def recv(self, *args: object, **kwargs: object) -> NoReturn:
        """Not carried."""
        _refuse("recv", "use broadcast")

    recv_anysource = recv

    # --- pieces -------------------------------------------------------------------------------

    def _submit(
        self,
        begin: Callable[[], Sequence[_core.Handle]],
        result: list[Any],
        finish: Callable[[], None] | None,
    ) -> Work:
        try:
            return self._completion.submit(begin, result, finish)
        except _core.CoreError as error:
            raise from_core(error.error) from None

    def _broadcast(self, memory: torch.Tensor, root: int, deadline: float | None) -> _core.Handle:
        count, kind = tensors.movable(memory)
        return self._connection.broadcast_ptr(
            memory.data_ptr(),
            count,
            kind,
            root,
            memory,
            deadline=deadline,
            signature=tensors.signature(memory),
        )

    def _broadcast_each(
        self, staged: Sequence[tensors.Staged], deadline: float | None
    ) -> list[_core.Handle]:
        return [
            self._broadcast(entry.memory, index % self._world_size, deadline)
            for index, entry in enumerate(staged)
        ]

    def _check_slots(self, slots: Tensors, tensor: torch.Tensor) -> None:
        if len(slots) != self._world_size:
            raise ConfigurationError(
                f"all_gather needs one output for each of {self._world_size} ranks, found "
                f"{len(slots)} on rank {self._rank}"
            )
        own = slots[self._rank]
        if own.numel() != tensor.numel() or own.dtype != tensor.dtype:
            raise ConfigurationError(
                f"all_gather's output for rank {self._rank} must be like its input, "
                f"{tensor.numel()} elements of {tensor.dtype}, found {own.numel()} of {own.dtype}"
            )


def _leave(completion: Completion, attachment: fabric.Attachment) -> None:
    completion.close()
    attachment.close()


def _refuse(collective: str, instead: str) -> NoReturn:
    raise UnsupportedError(
        f"{collective} is not carried by pycollective, which has all_reduce, broadcast, "
        f"all_gather and barrier; {instead}, or a gloo group for this call"
    )


def _is_average(op: Any) -> bool:
    if op == dist.ReduceOp.SUM:
        return False
    if op == dist.ReduceOp.AVG:
        return True
    names = ("MIN", "MAX", "PRODUCT", "BAND", "BOR", "BXOR")
    found = next((name for name in names if op == getattr(dist.ReduceOp, name)), "another")
    raise UnsupportedError(
        f"all_reduce over pycollective supports ReduceOp.SUM, and AVG for float32, found {found}; "
        "use a gloo group for this call"
    )


def _deadline(opts: Any) -> float | None:
    """Seconds of a call's own timeout; None when it has none."""
    timeout: timedelta | None = getattr(opts, "timeout", None)
    return timeout.total_seconds() if timeout is not None and timeout > timedelta(0) else None


def _finish(
    staged: Sequence[tensors.Staged], divisor: int | None = None
) -> Callable[[], None] | None:
    """What is left to do when the memory has been written; None if nothing is."""
    if divisor is None and all(entry.copy_back is None for entry in staged):
        return None

    @torch.inference_mode()  # tensors made in inference mode can be written nowhere else
    def finish() -> None:
        for entry in staged:
            if divisor is not None:
                entry.memory.div_(divisor)
            if entry.copy_back is not None:
                entry.copy_back()

    return finish
