"""What a job on a switch is: plain values, no connection.

The addresses are those inside of the frames (docs/protocol.md); a loopback job invents them, a job
between machines uses those of the network cards.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pycollective.errors import ConfigurationError

SWITCH_MAC = "02:50:43:ff:ff:fe"
SWITCH_IPV4 = "10.255.255.254"

MAX_PORT = 510
"""Of a switch: v1model's ports have 9 bits, and 511 means drop."""

_MAC = re.compile("[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.IGNORECASE)


@dataclass(frozen=True)
class WorkerAddress:
    """Where one rank is: its switch port, and its MAC and IPv4 address inside of the frames.

    Raises
    ------
    ConfigurationError
        For what is no address of one host.
    """

    port: int
    mac: str
    ipv4: str

    def __post_init__(self) -> None:
        if not 0 <= self.port <= MAX_PORT:
            raise ConfigurationError(f"a switch port is 0 to {MAX_PORT}, found {self.port}")
        if not _MAC.fullmatch(self.mac):
            raise ConfigurationError(
                f"a MAC address is written as 02:50:43:00:01:00, found {self.mac!r}"
            )
        if mac_bytes(self.mac)[0] & 1:
            raise ConfigurationError(f"{self.mac} is the MAC address of a group, not of a host")
        try:
            ipaddress.IPv4Address(self.ipv4)
        except ipaddress.AddressValueError:
            raise ConfigurationError(
                f"an IPv4 address is written as 10.0.1.1, found {self.ipv4!r}"
            ) from None


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


def default_workers(job: int, world_size: int, ports: Sequence[int]) -> tuple[WorkerAddress, ...]:
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


def mac_text(value: int) -> str:
    """ "02:50:43:00:01:00" for 0x025043000100."""
    return value.to_bytes(6, "big").hex(":")


def ipv4_bytes(text: str) -> bytes:
    """The four bytes of "10.0.0.1"."""
    return ipaddress.IPv4Address(text).packed


def ipv4_text(value: int) -> str:
    """ "10.0.0.1" for 0x0a000001."""
    return str(ipaddress.IPv4Address(value))
