"""Jobs as entries of the program's tables, and back: `entities_of` writes, `find` reads.

In the order in which they are written; they are deleted the other way round:

    SwitchIngress.admission        who may speak as which rank of job N
    SwitchEgress.receivers         what each replica's receiver is called
    SwitchIngress.l2               ordinary traffic to each worker's MAC
    multicast group N              a replica for each rank: its switch port, instance rank + 1
    SwitchIngress.jobs             N's epoch, slots, members and group: with it the job exists

Admission comes first and goes last, so that what a controller has left behind, when it ended in
between, can be told from the entries of others. `SwitchIngress.jobs` has one more, number 0, which
is no job: the epoch given last (`epoch_memory`).

Knows the program's names and no connection. Main types: `Found`, `Remains`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from p4.v1 import p4runtime_pb2 as p4rt

from pycollective.controller.jobs import (
    Job,
    WorkerAddress,
    ipv4_bytes,
    ipv4_text,
    mac_bytes,
    mac_text,
)
from pycollective.controller.schema import Schema, group

_ADMISSION = "SwitchIngress.admission"
_RECEIVERS = "SwitchEgress.receivers"
_L2 = "SwitchIngress.l2"
_JOBS = "SwitchIngress.jobs"

_NO_JOB = 0
"""The job number that is never given (p4/include/config.p4)."""


# --- writing -------------------------------------------------------------------------------------


def entities_of(schema: Schema, job: Job, forwarding: Mapping[int, int]) -> list[p4rt.Entity]:
    """What there is to insert for a job, in order.

    Parameters
    ----------
    forwarding
        What is in table l2 already, MAC to switch port: a host may be a worker of several jobs.
    """
    admission, receivers, l2 = [], [], []
    forwarding = dict(forwarding)
    for rank, worker in enumerate(job.workers):
        mac = int.from_bytes(mac_bytes(worker.mac), "big")
        ipv4 = int.from_bytes(ipv4_bytes(worker.ipv4), "big")
        admission.append(
            schema.exact_entry(
                _ADMISSION,
                {
                    "standard_metadata.ingress_port": worker.port,
                    "hdr.ethernet.src": mac,
                    "hdr.ipv4.src": ipv4,
                    "hdr.ina.job": job.number,
                    "hdr.ina.rank": rank,
                },
                "SwitchIngress.admit",
            )
        )
        receivers.append(
            schema.exact_entry(
                _RECEIVERS,
                {"hdr.ina.job": job.number, "standard_metadata.egress_rid": rank + 1},
                "SwitchEgress.set_receiver",
                {"mac": mac, "ip": ipv4, "rank": rank},
            )
        )
        if forwarding.get(mac) != worker.port:
            forwarding[mac] = worker.port
            l2.append(
                schema.exact_entry(
                    _L2, {"hdr.ethernet.dst": mac}, "SwitchIngress.forward", {"port": worker.port}
                )
            )
    replicas = [(worker.port, rank + 1) for rank, worker in enumerate(job.workers)]
    return [*admission, *receivers, *l2, group(job.number, replicas), _job_entry(schema, job)]


def _job_entry(schema: Schema, job: Job) -> p4rt.Entity:
    return schema.exact_entry(
        _JOBS,
        {"hdr.ina.job": job.number},
        "SwitchIngress.set_job",
        {
            "epoch": job.epoch,
            "slot_base": job.slot_base,
            "slot_limit": job.slots,
            "members": job.members,
            "group": job.number,
            "switch_mac": int.from_bytes(mac_bytes(job.switch_mac), "big"),
            "switch_ip": int.from_bytes(ipv4_bytes(job.switch_ipv4), "big"),
        },
    )


def epoch_memory(schema: Schema, epoch: int) -> p4rt.Entity:
    """The entry that keeps the epoch given last, in the form of a job without ranks and slots.

    It lives exactly as long as the registers in which slots keep their epochs, because loading a
    program clears both; and unlike a register it can be read and written on BMv2, too.
    """
    return _job_entry(schema, Job(_NO_JOB, epoch, (), slot_base=0, slots=0, lanes=0))


# --- reading -------------------------------------------------------------------------------------


@dataclass
class Remains:
    """What a switch has of one job number, whether or not the job itself is there."""

    admission: list[p4rt.Entity] = field(default_factory=list)
    receivers: list[p4rt.Entity] = field(default_factory=list)
    l2: list[p4rt.Entity] = field(default_factory=list)
    group: p4rt.Entity | None = None
    job: p4rt.Entity | None = None

    def entities(self) -> list[p4rt.Entity]:
        """All of it, in the order of `entities_of`."""
        last = [entity for entity in (self.group, self.job) if entity is not None]
        return [*self.admission, *self.receivers, *self.l2, *last]


@dataclass
class Found:
    """What a switch has of jobs.

    Attributes
    ----------
    jobs
        By number.
    remains
        By job number; every job has some.
    groups
        Numbers of all multicast groups, those of others included.
    forwarding
        Switch port by MAC, of table l2.
    last_epoch
        That of `epoch_memory`; None when none was given yet.
    """

    jobs: dict[int, Job] = field(default_factory=dict)
    remains: dict[int, Remains] = field(default_factory=dict)
    groups: set[int] = field(default_factory=set)
    forwarding: dict[int, int] = field(default_factory=dict)
    last_epoch: int | None = None


def everything(schema: Schema) -> list[p4rt.Entity]:
    """What to read for `find`: all entries of the tables, and all groups."""
    tables = (_ADMISSION, _RECEIVERS, _L2, _JOBS)
    return [*(schema.exact_entry(table, {}) for table in tables), group(0, [])]


def find(schema: Schema, entities: Iterable[p4rt.Entity], lanes: int) -> Found:
    """Sort what was read by the jobs it belongs to.

    A worker's entry in table l2 belongs to its job unless another job has the same worker. What
    belongs to no job is left out of `remains`.
    """
    found = Found()
    workers: dict[int, dict[int, WorkerAddress]] = {}
    l2: dict[int, p4rt.Entity] = {}
    groups: dict[int, p4rt.Entity] = {}

    def remains(number: int) -> Remains:
        return found.remains.setdefault(number, Remains())

    for entity in entities:
        if entity.WhichOneof("entity") == "packet_replication_engine_entry":
            replication = entity.packet_replication_engine_entry
            groups[replication.multicast_group_entry.multicast_group_id] = entity
            continue
        table, action = schema.names(entity.table_entry)
        keys = schema.exact_values(entity.table_entry)
        if (table, action) == (_ADMISSION, "SwitchIngress.admit"):
            number = keys["hdr.ina.job"]
            remains(number).admission.append(entity)
            workers.setdefault(number, {})[keys["hdr.ina.rank"]] = WorkerAddress(
                keys["standard_metadata.ingress_port"],
                mac_text(keys["hdr.ethernet.src"]),
                ipv4_text(keys["hdr.ipv4.src"]),
            )
        elif table == _RECEIVERS:
            remains(keys["hdr.ina.job"]).receivers.append(entity)
        elif (table, action) == (_L2, "SwitchIngress.forward"):
            mac = keys["hdr.ethernet.dst"]
            l2[mac] = entity
            found.forwarding[mac] = schema.params(entity.table_entry)["port"]
        elif (table, action) == (_JOBS, "SwitchIngress.set_job"):
            if keys["hdr.ina.job"] == _NO_JOB:
                found.last_epoch = schema.params(entity.table_entry)["epoch"]
            else:
                remains(keys["hdr.ina.job"]).job = entity

    found.groups = set(groups)
    macs = {
        number: {int.from_bytes(mac_bytes(worker.mac), "big") for worker in ranks.values()}
        for number, ranks in workers.items()
    }
    for number, part in found.remains.items():
        shared = set().union(*(macs[other] for other in macs if other != number))
        part.l2 = [l2[mac] for mac in macs.get(number, set()) - shared if mac in l2]
        group_number = number
        if part.job is not None:
            ranks = workers.get(number, {})
            job = _job(schema, part.job.table_entry, [ranks[rank] for rank in sorted(ranks)], lanes)
            found.jobs[number] = job
            group_number = schema.params(part.job.table_entry)["group"]
        # A group without admission is of somebody else, who chose the same number.
        if part.admission:
            part.group = groups.get(group_number)
    return found


def _job(schema: Schema, entry: p4rt.TableEntry, workers: list[WorkerAddress], lanes: int) -> Job:
    params = schema.params(entry)
    return Job(
        number=schema.exact_values(entry)["hdr.ina.job"],
        epoch=params["epoch"],
        workers=tuple(workers),
        slot_base=params["slot_base"],
        slots=params["slot_limit"],
        lanes=lanes,
        switch_mac=mac_text(params["switch_mac"]),
        switch_ipv4=ipv4_text(params["switch_ip"]),
    )
