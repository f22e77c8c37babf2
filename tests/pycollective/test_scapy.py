"""The Scapy layer reads and writes whole frames, and shows names where the wire has numbers."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from pycollective.contrib.scapy import INA, INA_UDP_PORT, Flag, INALanes, Opcode, ReduceOp, frame

ADDRESSES = {
    "source_mac": "02:50:43:00:01:00",
    "destination_mac": "02:50:43:ff:ff:fe",
    "source_ipv4": "10.0.1.1",
    "destination_ipv4": "10.255.255.254",
}


def test_the_header_has_28_bytes() -> None:
    assert len(bytes(INA())) == 28


def test_a_frame_is_dissected_into_its_fields_and_lanes() -> None:
    built = frame(
        **ADDRESSES, lanes=[1, -1, 2**31 - 1, -(2**31)], opcode=Opcode.RESULT, job=0x1234, rank=5,
        epoch=0xFEDC, slot=0x7ABC, slot_version=1, sequence=2**32 - 1, chunk=7, lane_count=4,
        exponent=-126, reduce_op=ReduceOp.MAX, fingerprint=0xDEADBEEF, flags=Flag.OVERFLOW,
    )  # fmt: skip
    read = Ether(bytes(built))
    header = read[INA]
    assert (header.version, header.opcode, header.reduce_op) == (1, Opcode.RESULT, ReduceOp.MAX)
    assert (header.job, header.rank, header.epoch) == (0x1234, 5, 0xFEDC)
    assert (header.slot, header.slot_version) == (0x7ABC, 1)
    assert (header.sequence, header.chunk, header.lane_count) == (2**32 - 1, 7, 4)
    assert (header.exponent, header.fingerprint) == (-126, 0xDEADBEEF)
    assert int(header.flags) == Flag.OVERFLOW | Flag.DATA
    assert read[INALanes].lanes == [1, -1, 2**31 - 1, -(2**31)]


def test_checksums_and_lengths_are_filled_in() -> None:
    read = Ether(bytes(frame(**ADDRESSES, lanes=[7] * 256)))
    assert (read[IP].len, read[UDP].len) == (20 + 8 + 28 + 1024, 8 + 28 + 1024)
    assert (read[IP].ttl, read[IP].id, str(read[IP].flags)) == (64, 0, "DF")
    ip_sum, udp_sum = read[IP].chksum, read[UDP].chksum
    del read[IP].chksum, read[UDP].chksum
    again = Ether(bytes(read))
    assert (again[IP].chksum, again[UDP].chksum) == (ip_sum, udp_sum)


@pytest.mark.parametrize("count", [16, 256, 2048])
def test_as_many_lanes_are_read_as_there_are(count: int) -> None:
    lanes = [i - 100 for i in range(count)]
    assert Ether(bytes(frame(**ADDRESSES, lanes=lanes)))[INALanes].lanes == lanes


def test_a_header_without_flag_data_has_no_lanes() -> None:
    read = Ether(bytes(frame(**ADDRESSES, opcode=Opcode.PROBE)))
    assert INA in read
    assert INALanes not in read
    assert not read[INA].payload


def test_padding_of_a_short_ethernet_frame_is_no_lane() -> None:
    read = Ether(bytes(frame(**ADDRESSES, lanes=[3])) + bytes(6))
    assert read[INALanes].lanes == [3]


@pytest.mark.parametrize("direction", ["sport", "dport"])
def test_either_port_says_that_it_is_ours(direction: str) -> None:
    datagram = UDP(bytes(UDP(**{"sport": 1, "dport": 2, direction: INA_UDP_PORT}) / Raw(bytes(28))))
    assert INA in datagram


def test_other_traffic_is_left_alone() -> None:
    assert INA not in UDP(bytes(UDP(sport=5000, dport=5001) / Raw(bytes(28))))


def test_the_summary_reads_as_a_sentence() -> None:
    packet = frame(**ADDRESSES, lanes=[1], job=9, rank=2, sequence=4, chunk=8, slot=6)
    text = packet.summary()
    assert "INA CONTRIBUTE job 9 rank 2 #4 chunk 8 slot 6" in text
    assert "DATA" in text
