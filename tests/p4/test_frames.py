"""Frames that are damaged, and frames that are none of the program's business."""

from __future__ import annotations

import random

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from .rig import INALanes, Rig, mac

TRUNCATED, CHECKSUM, HEADER = 0, 1, 2


def malformed(rig: Rig) -> int:
    return sum(rig.count("malformed", kind) for kind in (TRUNCATED, CHECKSUM, HEADER))


def test_a_frame_cut_at_any_byte_is_dropped_and_never_counts(rig: Rig) -> None:
    whole = bytes(rig.frame(0, [1, 2, 3]))
    for length in range(len(whole)):
        assert rig.inject(1, whole[:length]) == []
    assert rig.count("job_packets") == 0
    # Up to the IPv4 header's end nothing says that the frame is ours.
    assert rig.count("malformed", TRUNCATED) == len(whole)


def test_any_single_flipped_bit_behind_the_addresses_is_dropped_or_refused(rig: Rig) -> None:
    whole = bytes(rig.frame(0, [1, 2, 3]))
    for bit in range(14 * 8, len(whole) * 8):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << (bit % 8)
        assert rig.inject(1, bytes(damaged)) == [], f"bit {bit}"
    assert rig.count("job_packets") == 0
    assert rig.count("malformed", CHECKSUM) > 0


def test_random_bytes_are_dropped(rig: Rig) -> None:
    seed = 20261201
    print(f"seed {seed}")
    source = random.Random(seed)
    header = bytes(rig.frame(0, [1]))[:42]
    for _ in range(500):
        tail = source.randbytes(source.randrange(0, 200))
        assert rig.inject(1, header + tail) == []
        assert rig.inject(1, source.randbytes(source.randrange(0, 120))) == []
    assert rig.count("job_packets") == 0


def test_bytes_behind_the_datagram_do_not_reach_the_result(rig: Rig) -> None:
    for rank in range(2):
        rig.send(rank, [1])
    padded = bytes(rig.frame(2, [1])) + b"padding"
    out = rig.inject(3, padded)
    assert out[0].lanes is not None
    assert out[0].lanes[0] == 3


def test_both_spellings_of_a_zero_checksum_are_accepted(rig: Rig) -> None:
    frame = rig.frame(0, [1])
    checksum = Ether(bytes(frame))[UDP].chksum
    # Adding the checksum's value to a 16-bit word of the data makes the checksum come to zero.
    frame["INA"].fingerprint = (frame["INA"].fingerprint + checksum) & 0xFFFFFFFF
    for spelling in (0xFFFF, 0x0000):
        frame[UDP].chksum = spelling
        rig.inject(1, bytes(frame))
    assert rig.count("malformed", CHECKSUM) == 0
    assert rig.count("job_packets") == 1
    assert rig.count("job_duplicates") == 1


@pytest.mark.parametrize("length", [36, 99, 101, 0])
def test_a_length_that_is_not_the_frames_is_malformed(rig: Rig, length: int) -> None:
    frame = rig.frame(0, [1])
    frame[UDP].len = length
    assert rig.inject(1, bytes(frame)) == []
    assert malformed(rig) == 1


def other_traffic() -> list[Ether]:
    to = {"dst": mac(1, 1), "src": mac(1, 0)}
    return [
        Ether(**to) / IP(dst="10.0.1.2") / ICMP(),
        Ether(**to) / IP(dst="10.0.1.2") / TCP(dport=80) / Raw(b"hello"),
        Ether(**to) / IP(dst="10.0.1.2") / UDP(dport=53) / Raw(b"query"),
        Ether(**to) / IP(dst="10.0.1.2") / UDP(dport=1),
        Ether(**to, type=0x86DD) / Raw(b"\x60" + bytes(50)),
        Ether(**to) / ARP(psrc="10.0.1.1", pdst="10.0.1.2"),
        Ether(**to, type=0x1234) / Raw(b""),
    ]


@pytest.mark.parametrize("frame", other_traffic(), ids=lambda f: f.summary())
def test_other_traffic_is_forwarded_unchanged(rig: Rig, frame: Ether) -> None:
    rig.entry(
        "SwitchIngress.l2", (int(mac(1, 1).replace(":", ""), 16),), "SwitchIngress.forward", port=2
    )
    raw = bytes(frame)
    assert rig.switch.process(1, raw) == [(2, raw)]


def test_fragments_to_the_ina_port_are_forwarded_as_other_traffic(rig: Rig) -> None:
    rig.entry("SwitchIngress.l2", (0x02504300FFFE,), "SwitchIngress.forward", port=3)
    frame = rig.frame(0, [1])
    frame.dst = "02:50:43:00:ff:fe"
    frame[IP].flags = "MF"
    raw = bytes(frame)
    assert rig.switch.process(1, raw) == [(3, raw)]
    assert rig.count("job_packets") == 0


def test_an_unknown_destination_is_dropped(rig: Rig) -> None:
    assert rig.switch.process(1, bytes(other_traffic()[0])) == []


def test_flooding_spares_the_port_the_frame_came_from(rig: Rig) -> None:
    rig.switch.set_multicast_group(99, [(1, 1), (2, 2), (3, 3)])
    rig.entry("SwitchIngress.l2", (0xFFFFFFFFFFFF,), "SwitchIngress.flood", group=99)
    raw = bytes(Ether(dst="ff:ff:ff:ff:ff:ff", src=mac(1, 0)) / ARP())
    assert sorted(rig.switch.process(2, raw)) == [(1, raw), (3, raw)]


def test_lanes_layer_is_what_the_frame_carries(rig: Rig) -> None:
    frame = Ether(bytes(rig.frame(0, [-1, 2])))
    assert bytes(frame[INALanes])[:8] == b"\xff\xff\xff\xff\x00\x00\x00\x02"
