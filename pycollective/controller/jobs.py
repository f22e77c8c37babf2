"""What a job on a switch is: plain values, no connection.

The addresses are those inside of the frames (docs/protocol.md); a loopback job invents them, a job
between machines uses those of the network cards.
"""

from __future__ import annotations

from dataclasses import dataclass

SWITCH_MAC = "02:50:43:ff:ff:fe"
SWITCH_IPV4 = "10.255.255.254"


@dataclass(frozen=True)
class WorkerAddress:
    """Where one rank is: its switch port, and its MAC and IPv4 address inside of the frames."""

    port: int
    mac: str
    ipv4: str


@dataclass(frozen=True)
class Job:
    """A job as it is configured on a switch.

    Attributes
    ----------
    number, epoch
        Of the job; the epoch is another one each time a job gets the same slots.
    workers
        In order of rank.
    slot_base, slots
        Its slice of the pool.
    lanes
        Of the switch's program.
    """

    number: int
    epoch: int
    workers: tuple[WorkerAddress, ...]
    slot_base: int
    slots: int
    lanes: int
    switch_mac: str = SWITCH_MAC
    switch_ipv4: str = SWITCH_IPV4

    @property
    def world_size(self) -> int:
        """Ranks."""
        return len(self.workers)

    @property
    def members(self) -> int:
        """The bitmap of all ranks."""
        return (1 << self.world_size) - 1


@dataclass(frozen=True)
class JobCounters:
    """Packets of a job as the switch counted them (docs/protocol.md, section 3)."""

    packets: int
    bytes: int
    duplicates: int
    stale: int
    rejected: int
    completions: int


def default_workers(job: int, world_size: int, ports: list[int]) -> tuple[WorkerAddress, ...]:
    """Addresses for a job whose frames never leave this machine: locally administered MACs and
    10.0.0.0/8, both with job and rank in them."""
    return tuple(
        WorkerAddress(
            port=ports[rank],
            mac=f"02:50:43:{job >> 8:02x}:{job & 255:02x}:{rank:02x}",
            ipv4=f"10.{job >> 8}.{job & 255}.{rank + 1}",
        )
        for rank in range(world_size)
    )


def mac_bytes(text: str) -> bytes:
    """The six bytes of "02:50:43:00:01:00"."""
    return bytes.fromhex(text.replace(":", ""))


def ipv4_bytes(text: str) -> bytes:
    """The four bytes of "10.0.0.1"."""
    return bytes(int(part) for part in text.split("."))
