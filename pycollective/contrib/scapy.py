"""Scapy layers for the wire format: `INA`, the 28-byte header, and `INALanes` behind it.

Importing this module binds `INA` to UDP port 20033, so that Scapy dissects captures of any switch
port. Lengths and both checksums are computed when a packet is built. Fields are those of
docs/protocol.md, section 1, by the same names. Written from that document, independently of the P4
and the C++ definitions, so that a comparison of the three means something.

Examples
--------
>>> from scapy.all import rdpcap
>>> import pycollective.contrib.scapy
>>> rdpcap("demo-out/port1.pcap")[0].show()
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, IntFlag
from typing import Any, Final

from scapy.fields import (
    BitEnumField,
    BitField,
    ByteEnumField,
    ByteField,
    FieldListField,
    FlagsField,
    IntField,
    ShortField,
    SignedByteField,
    SignedIntField,
)
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, bind_layers

INA_UDP_PORT: Final = 0x4E41

_MAX_LANES: Final = 16384
"""More than fit an IPv4 packet: the layer's length says how many there are. Scapy's own limit for
lists, `conf.max_list_count`, is below a full frame."""


class Opcode(IntEnum):
    """What a frame is."""

    CONTRIBUTE = 1
    RESULT = 2
    STATUS = 3
    PROBE = 4
    PROBE_REPLY = 5
    NACK = 6


class ReduceOp(IntEnum):
    """How lanes are combined."""

    SUM = 0
    MIN = 1
    MAX = 2
    BAND = 3
    BOR = 4
    BXOR = 5
    COPY = 6


class ElementType(IntEnum):
    """What the lanes are."""

    NONE = 0
    INT32 = 1
    BLOCK_FLOAT32 = 2
    RAW_WORD = 3
    SPECIAL_CODE = 4


class Flag(IntFlag):
    """Bits of `flags`."""

    RETRANSMIT = 0x01
    OVERFLOW = 0x02
    SPECIAL = 0x04
    ECN_ECHO = 0x08
    DATA = 0x10
    MISMATCH = 0x20


_FLAG_NAMES: Final = [flag.name or "" for flag in sorted(Flag)] + ["bit6", "bit7"]


def _names(kind: type[IntEnum]) -> dict[int, str]:
    return {member.value: member.name for member in kind}


class INA(Packet):
    """The header of in-network aggregation."""

    name = "INA"
    fields_desc = [  # noqa: RUF012 (Scapy's convention)
        ByteField("version", 1),
        ByteEnumField("opcode", Opcode.CONTRIBUTE.value, _names(Opcode)),
        ByteEnumField("reduce_op", ReduceOp.SUM.value, _names(ReduceOp)),
        ByteEnumField("element_type", ElementType.NONE.value, _names(ElementType)),
        ShortField("job", 0),
        ShortField("rank", 0),
        ShortField("epoch", 0),
        BitField("slot", 0, 15),
        BitEnumField("slot_version", 0, 1, {0: "even", 1: "odd"}),
        IntField("sequence", 0),
        IntField("chunk", 0),
        ShortField("lane_count", 0),
        SignedByteField("exponent", -128),
        FlagsField("flags", 0, 8, _FLAG_NAMES),
        IntField("fingerprint", 0),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Lanes follow the header if, and only if, flag DATA is set."""
        if int(self.flags) & Flag.DATA:
            return INALanes
        guessed: type[Packet] = Packet.guess_payload_class(self, payload)
        return guessed

    def mysummary(self) -> str:
        """One line: what, whose, which chunk in which slot."""
        return str(
            self.sprintf(
                "INA %opcode% job %job% rank %rank% #%sequence% chunk %chunk% slot %slot%/"
                "%slot_version% [%flags%]"
            )
        )


class INALanes(Packet):
    """The lanes of a frame with flag DATA, as signed 32-bit numbers."""

    name = "INA lanes"
    fields_desc = [  # noqa: RUF012 (Scapy's convention)
        FieldListField("lanes", [], SignedIntField("lane", 0), max_count=_MAX_LANES),
    ]


bind_layers(UDP, INA, dport=INA_UDP_PORT)
bind_layers(UDP, INA, sport=INA_UDP_PORT)
bind_layers(UDP, INA, sport=INA_UDP_PORT, dport=INA_UDP_PORT)
bind_layers(INA, INALanes)


def frame(
    *,
    source_mac: str,
    destination_mac: str,
    source_ipv4: str,
    destination_ipv4: str,
    lanes: Sequence[int] | None = None,
    **header: Any,
) -> Packet:
    """A whole frame as the specification has it: TTL 64, identification 0, don't fragment.

    Parameters
    ----------
    lanes
        Signed 32-bit numbers; sets flag DATA. None: a frame without lanes.
    **header
        Fields of `INA`.

    Returns
    -------
    Packet
        `bytes()` of it has lengths and checksums filled in.
    """
    flags = int(header.pop("flags", 0))
    if lanes is not None:
        flags |= Flag.DATA
    packet = (
        Ether(src=source_mac, dst=destination_mac)
        / IP(src=source_ipv4, dst=destination_ipv4, id=0, flags="DF", ttl=64)
        / UDP(sport=INA_UDP_PORT, dport=INA_UDP_PORT)
        / INA(flags=flags, **header)
    )
    return packet if lanes is None else packet / INALanes(lanes=list(lanes))
