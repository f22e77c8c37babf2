"""Puts jobs on a switch that runs p4/allreduce.p4 and takes them away again.

All state is on the switch: what jobs there are and which slots they have is read back from its
`jobs` table before each decision, so that a restarted controller goes on where the last one was.
Main type: `Controller`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from p4.v1 import p4runtime_pb2 as p4rt

from pycollective.controller.client import P4RuntimeClient
from pycollective.controller.errors import (
    PoolExhaustedError,
    ProgramMismatchError,
    SwitchRefusedError,
)
from pycollective.controller.jobs import (
    Job,
    JobCounters,
    WorkerAddress,
    default_workers,
    ipv4_bytes,
    mac_bytes,
)
from pycollective.controller.schema import Schema, group, update

MAX_RANKS = 32
"""Ranks of one job on one switch: the width of the program's membership bitmap."""
JOB_NUMBERS = range(1, 256)
"""Jobs that have counters of their own (INA_JOBS in p4/include/config.p4)."""
DEFAULT_SLOTS = 128
"""Slots a job gets unless it asks for others: 128 KiB of gradient in flight at 256 lanes."""

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
        self._epochs = _epochs()

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

    def jobs(self) -> dict[int, Mapping[str, int]]:
        """The jobs on the switch: number to the parameters of `SwitchIngress.set_job`."""
        entries = self._client.read([self._schema.exact_entry("SwitchIngress.jobs", {})])
        return {
            self._schema.exact_values(e.table_entry)["hdr.ina.job"]: self._schema.params(
                e.table_entry
            )
            for e in entries
        }

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
            The switch port of each rank.
        slots
            Of the pool; None: `DEFAULT_SLOTS`, or what is left if that is less.
        workers
            Addresses of the ranks, when the frames cross a real network; invented otherwise.

        Raises
        ------
        PoolExhaustedError
            When there is no slice of that size, no job number, or there are too many ranks.
        """
        if not 1 <= world_size <= MAX_RANKS:
            raise PoolExhaustedError(
                f"a job has 1 to {MAX_RANKS} ranks on one switch, asked for {world_size}"
            )
        if len(ports) < world_size:
            raise PoolExhaustedError(
                f"a job of {world_size} ranks needs as many switch ports, got {len(ports)}"
            )
        lanes = self.lanes
        existing = self.jobs()
        number = next((n for n in JOB_NUMBERS if n not in existing), None)
        if number is None:
            raise PoolExhaustedError(f"all {len(JOB_NUMBERS)} job numbers are in use")
        base, slots = self._slice(existing, slots)
        in_use = {int(job["epoch"]) for job in existing.values()}
        job = Job(
            number=number,
            epoch=next(e for e in self._epochs if e not in in_use),
            workers=tuple(
                workers if workers is not None else default_workers(number, world_size, list(ports))
            ),
            slot_base=base,
            slots=slots,
            lanes=lanes,
        )
        self._write_job(job)
        return job

    def _slice(
        self, existing: Mapping[int, Mapping[str, int]], slots: int | None
    ) -> tuple[int, int]:
        """The first gap in the pool that is large enough: (base, slots)."""
        gaps: list[tuple[int, int]] = []
        at = 0
        taken = sorted((int(j["slot_base"]), int(j["slot_limit"])) for j in existing.values())
        for base, limit in [*taken, (self.pool_slots, 0)]:
            if base > at:
                gaps.append((at, base - at))
            at = max(at, base + limit)
        largest = max((size for _, size in gaps), default=0)
        wanted = min(DEFAULT_SLOTS, largest) if slots is None else slots
        for base, size in gaps:
            if 0 < wanted <= size:
                return base, wanted
        raise PoolExhaustedError(
            f"asked for {wanted or 1} slots, the largest free slice of the pool of "
            f"{self.pool_slots} has {largest} ({len(existing)} jobs); end a job, ask for fewer "
            "slots, or compile the program with a larger INA_SLOTS"
        )

    def _write_job(self, job: Job) -> None:
        entities = self._entities(job)
        written: list[p4rt.Entity] = []
        try:
            # The job itself comes last: until then nothing of it is admitted.
            for entity in entities:
                self._client.write([update(_INSERT, entity)])
                written.append(entity)
        except BaseException:
            with contextlib.suppress(SwitchRefusedError):
                for entity in reversed(written):
                    self._client.write([update(_DELETE, entity)])
            raise

    def _entities(self, job: Job) -> list[p4rt.Entity]:
        entry = self._schema.exact_entry
        number = job.number
        entities = [group(number, [(w.port, rank + 1) for rank, w in enumerate(job.workers)])]
        for rank, worker in enumerate(job.workers):
            mac = int.from_bytes(mac_bytes(worker.mac), "big")
            ipv4 = int.from_bytes(ipv4_bytes(worker.ipv4), "big")
            entities.append(
                entry(
                    "SwitchIngress.admission",
                    {
                        "standard_metadata.ingress_port": worker.port,
                        "hdr.ethernet.src": mac,
                        "hdr.ipv4.src": ipv4,
                        "hdr.ina.job": number,
                        "hdr.ina.rank": rank,
                    },
                    "SwitchIngress.admit",
                )
            )
            entities.append(
                entry(
                    "SwitchEgress.receivers",
                    {"hdr.ina.job": number, "standard_metadata.egress_rid": rank + 1},
                    "SwitchEgress.set_receiver",
                    {"mac": mac, "ip": ipv4, "rank": rank},
                )
            )
            entities.append(
                entry(
                    "SwitchIngress.l2",
                    {"hdr.ethernet.dst": mac},
                    "SwitchIngress.forward",
                    {"port": worker.port},
                )
            )
        entities.append(
            entry(
                "SwitchIngress.jobs",
                {"hdr.ina.job": number},
                "SwitchIngress.set_job",
                {
                    "epoch": job.epoch,
                    "slot_base": job.slot_base,
                    "slot_limit": job.slots,
                    "members": job.members,
                    "group": number,
                    "switch_mac": int.from_bytes(mac_bytes(job.switch_mac), "big"),
                    "switch_ip": int.from_bytes(ipv4_bytes(job.switch_ipv4), "big"),
                },
            )
        )
        return entities

    def destroy_job(self, job: Job) -> None:
        """Takes a job away: its slots are free, and its ranks are strangers, from then on."""
        for entity in reversed(self._entities(job)):
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


def _epochs() -> Iterator[int]:
    """Epochs for new jobs: 1 to 65535, counting up from a place that time and process choose.

    A slot is fresh for a job when its stored epoch is another one. Within one controller two jobs
    get the same epoch only 65,535 jobs apart. A restarted controller starts elsewhere; the chance
    that a job then meets its own epoch on a slot is one in 65,535, and even then it goes wrong only
    if the slot's sequence number is ahead of the new job's.
    """
    start = (time.time_ns() // 1_000_000 * 31 + os.getpid()) % 65535
    for i in itertools.count():
        yield (start + i) % 65535 + 1
