"""Puts jobs on a switch that runs p4/allreduce.p4 and takes them away again.

All state is on the switch: what jobs there are, which slots they have and which epoch was given
last is read back from its tables before each decision, so that a restarted controller goes on where
the last one was. What a job is made of is in `entries`; here it is decided what jobs there can be.
Main type: `Controller`.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from p4.v1 import p4runtime_pb2 as p4rt

from pycollective.controller.client import P4RuntimeClient
from pycollective.controller.entries import (
    Found,
    Remains,
    entities_of,
    epoch_memory,
    everything,
    find,
)
from pycollective.controller.errors import (
    ControllerError,
    PoolExhaustedError,
    ProgramMismatchError,
)
from pycollective.controller.jobs import Job, JobCounters, WorkerAddress, default_workers
from pycollective.controller.schema import Schema, update
from pycollective.errors import ConfigurationError

MAX_RANKS = 32
"""Ranks of one job on one switch: the width of the program's membership bitmap."""
JOB_NUMBERS = range(1, 256)
"""Jobs that have counters of their own (INA_JOBS in p4/include/config.p4)."""
DEFAULT_SLOTS = 128
"""Slots a job gets unless it asks for others: 128 KiB of gradient in flight at 256 lanes."""

_EPOCHS = 0xFFFF
"""Epochs there are: 16 bits, without 0."""

_INSERT, _DELETE = p4rt.Update.INSERT, p4rt.Update.DELETE
_LANE = re.compile(r"\.lane[0-9a-f]+\.accumulators$")


class Controller:
    """The controller of one switch.

    Parameters
    ----------
    address
        HOST:PORT of the switch's P4Runtime server.
    device_id, election_id
        See `P4RuntimeClient`.
    timeout
        Seconds to connect, and for each call.

    Raises
    ------
    ControllerError
        From every method: no connection, another primary, an update refused.
    """

    def __init__(
        self, address: str, *, device_id: int = 1, election_id: int = 1, timeout: float = 10.0
    ) -> None:
        self._client = P4RuntimeClient(
            address, device_id=device_id, election_id=election_id, timeout=timeout
        )
        self._schema = Schema(self._client.pipeline())

    # --- pipeline --------------------------------------------------------------------------------

    def load(self, program: Path, defines: Mapping[str, str] | None = None) -> None:
        """Makes a p4emu switch compile and run a P4 program; its tables are empty then.

        Raises
        ------
        CompileError
            The program has errors.
        """
        from p4emu.p4runtime.bundle import make_bundle  # needs the front end, which takes time

        p4info, config = make_bundle(program, defines=defines or {})
        self._client.set_pipeline(p4info, config)
        self._schema = Schema(p4info)

    @property
    def lanes(self) -> int:
        """Lanes of the switch's program: the registers that hold accumulators."""
        lanes = sum(_LANE.search(name) is not None for name in self._schema.register_sizes())
        if lanes == 0:
            raise ProgramMismatchError(
                f"the switch at {self._client.address} runs no all-reduce program; load "
                "p4/allreduce.p4 (Controller.load, or p4emu run p4/allreduce.p4)"
            )
        return lanes

    @property
    def pool_slots(self) -> int:
        """Slots of the switch's pool, of all jobs together."""
        sizes = [n for name, n in self._schema.register_sizes().items() if _LANE.search(name)]
        return min(sizes, default=0) // 2

    # --- jobs ------------------------------------------------------------------------------------

    def jobs(self) -> dict[int, Job]:
        """The jobs on the switch by number, whoever put them there."""
        return self._find().jobs

    def create_job(
        self,
        world_size: int,
        ports: Sequence[int],
        *,
        slots: int | None = None,
        workers: Sequence[WorkerAddress] | None = None,
    ) -> Job:
        """Admits a job.

        Parameters
        ----------
        world_size
            1 to 32 ranks.
        ports
            The switch port of each rank; more than that are not used.
        slots
            Of the pool; None: `DEFAULT_SLOTS`, or what is left if that is less.
        workers
            Addresses of the ranks, at these ports, when the frames cross a real network; invented
            otherwise.

        Raises
        ------
        PoolExhaustedError
            When there is no slice of that size, no job number, or there are too many ranks.
        ConfigurationError
            When the workers do not fit the ports.
        """
        if not 1 <= world_size <= MAX_RANKS:
            raise PoolExhaustedError(
                f"a job has 1 to {MAX_RANKS} ranks on one switch, asked for {world_size}",
                asked=world_size,
                free=MAX_RANKS,
            )
        if len(ports) < world_size:
            raise PoolExhaustedError(
                f"a job of {world_size} ranks needs as many switch ports, got {len(ports)}",
                asked=world_size,
                free=len(ports),
            )
        ports = ports[:world_size]
        if workers is not None and [worker.port for worker in workers] != list(ports):
            raise ConfigurationError(
                f"the ranks' switch ports are {list(ports)}, their addresses say "
                f"{[worker.port for worker in workers]}"
            )
        found = self._find()
        number = self._number(found)
        base, slots = self._slice(found.jobs.values(), slots)
        if number in found.remains:  # of a controller that did not come to an end
            self._delete(found.remains[number])
            found = self._find()
        job = Job(
            number=number,
            epoch=self._give_epoch(found),
            workers=tuple(
                default_workers(number, world_size, ports) if workers is None else workers
            ),
            slot_base=base,
            slots=slots,
            lanes=self.lanes,
        )
        self._insert(entities_of(self._schema, job, found.forwarding))
        return job

    def destroy_job(self, job: Job) -> None:
        """Takes a job away: its slots are free, and its ranks are strangers, from then on.

        A job that is gone already is no error; nor is one that has made room for another job of
        the same number, which stays. Jobs of other controllers come from `jobs`.
        """
        found = self._find()
        there = found.jobs.get(job.number)
        if there is not None and there.epoch == job.epoch:
            self._delete(found.remains[job.number])

    def _find(self) -> Found:
        lanes = self.lanes
        return find(self._schema, self._client.read(everything(self._schema)), lanes)

    @staticmethod
    def _number(found: Found) -> int:
        for number in JOB_NUMBERS:
            if number in found.jobs:
                continue
            remains = found.remains.get(number)
            if number in found.groups and (remains is None or remains.group is None):
                continue  # a multicast group of somebody else has the number
            return number
        raise PoolExhaustedError(
            f"all {len(JOB_NUMBERS)} job numbers are in use; end a job", asked=1, free=0
        )

    def _slice(self, existing: Collection[Job], slots: int | None) -> tuple[int, int]:
        """The first gap in the pool that is large enough: (base, slots)."""
        gaps: list[tuple[int, int]] = []
        at = 0
        taken = sorted((job.slot_base, job.slots) for job in existing)
        for base, limit in [*taken, (self.pool_slots, 0)]:
            if base > at:
                gaps.append((at, base - at))
            at = max(at, base + limit)
        largest = max((size for _, size in gaps), default=0)
        wanted = min(DEFAULT_SLOTS, largest) if slots is None else slots
        for base, size in gaps:
            if 0 < wanted <= size:
                return base, wanted
        wanted = wanted or 1
        raise PoolExhaustedError(
            f"asked for {wanted} slots, the largest free slice of the pool of "
            f"{self.pool_slots} has {largest} ({len(existing)} jobs); end a job, ask for fewer "
            "slots, or compile the program with a larger INA_SLOTS",
            asked=wanted,
            free=largest,
        )

    def _give_epoch(self, found: Found) -> int:
        """An epoch that no slot of the switch has from an earlier job: 1 to 65535, in turn.

        The switch itself remembers which was given last, for as long as its slots do, so that this
        holds whichever controller asks. The first one after the switch has lost its memory is
        chosen by the time: hosts of a job from before must not take it for theirs.
        """
        if found.last_epoch is None:
            last, kind = time.time_ns() // 1_000_000 % _EPOCHS, _INSERT
        else:
            last, kind = found.last_epoch, p4rt.Update.MODIFY
        in_use = {job.epoch for job in found.jobs.values()}
        following = ((last + i) % _EPOCHS + 1 for i in range(_EPOCHS))
        epoch = next(epoch for epoch in following if epoch not in in_use)
        self._client.write([update(kind, epoch_memory(self._schema, epoch))])
        return epoch

    def _insert(self, entities: Sequence[p4rt.Entity]) -> None:
        """Inserts in order; what was inserted before an error is taken back."""
        written: list[p4rt.Entity] = []
        try:
            for entity in entities:
                self._client.write([update(_INSERT, entity)])
                written.append(entity)
        except BaseException:
            # Without a connection it stays, until the next controller that uses the number.
            with contextlib.suppress(ControllerError):
                for entity in reversed(written):
                    self._client.write([update(_DELETE, entity)])
            raise

    def _delete(self, remains: Remains) -> None:
        for entity in reversed(remains.entities()):
            self._client.write([update(_DELETE, entity)])

    def counters(self, job: int) -> JobCounters:
        """What the switch has counted for a job number since its program was loaded."""
        names = ("packets", "duplicates", "stale", "rejected", "completions")
        cells = self._client.read(
            [self._schema.counter_cell(f"SwitchIngress.job_{name}", job) for name in names]
        )
        data = [cell.counter_entry.data for cell in cells]
        counts = dict(zip(names, (int(d.packet_count) for d in data), strict=True))
        return JobCounters(bytes=int(data[0].byte_count), **counts)

    def close(self) -> None:
        """Ends the connection; jobs go on."""
        self._client.close()

    def __enter__(self) -> Controller:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
