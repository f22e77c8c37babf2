"""A switch that runs `p4/allreduce.p4` with one job on it, driven a frame at a time.

Nothing here knows what the program should answer: it crafts frames with the Scapy layer, hands them
to the real JIT-compiled program, and dissects what comes out of which port.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

import p4emu
from pycollective.contrib.scapy import INA, INALanes

SOURCE = Path(__file__).resolve().parents[2] / "p4" / "allreduce.p4"
LANES = 16
SLOTS = 8
DEFINES = {"INA_LANES": str(LANES), "INA_SLOTS": str(SLOTS)}
SWITCH_MAC = "02:50:43:ff:ff:fe"
SWITCH_IP = "10.255.255.254"

CONTRIBUTE, RESULT, STATUS, PROBE, PROBE_REPLY, NACK = 1, 2, 3, 4, 5, 6
SUM, COPY = 0, 6
RETRANSMIT, OVERFLOW, SPECIAL, DATA, MISMATCH = 0x01, 0x02, 0x04, 0x10, 0x20


def mac(job: int, rank: int) -> str:
    return f"02:50:43:{job >> 8:02x}:{job & 255:02x}:{rank:02x}"


def ip(job: int, rank: int) -> str:
    return f"10.{job >> 8}.{job & 255}.{rank + 1}"


@dataclass(frozen=True)
class Out:
    """One frame that left the switch."""

    port: int
    frame: Packet

    @property
    def ina(self) -> Packet:
        return self.frame[INA]

    @property
    def lanes(self) -> list[int] | None:
        """The lanes as signed integers, or None when the frame has none."""
        if INALanes not in self.frame:
            return None
        raw = bytes(self.frame[INALanes])
        return [int.from_bytes(raw[i : i + 4], "big", signed=True) for i in range(0, len(raw), 4)]


class Rig:
    """One switch; `add_job` admits ranks on ports `first_port`, `first_port + 1`, ..."""

    def __init__(self, program: p4emu.Program) -> None:
        self.switch = p4emu.Switch(program)
        self.first_port: dict[int, int] = {}
        self.epoch: dict[int, int] = {}

    def entry(self, table: str, keys: Sequence[int | bytes], action: str, **params: int) -> None:
        self.switch.insert(
            table, p4emu.TableEntry(tuple(p4emu.Match(k) for k in keys), action, params)
        )

    def add_job(
        self,
        job: int,
        world: int,
        *,
        first_port: int = 1,
        base: int = 0,
        limit: int = SLOTS,
        epoch: int = 7,
        admission: bool = True,
    ) -> None:
        """`admission=False` for a program that has no such table any more."""
        self.first_port[job] = first_port
        self.epoch[job] = epoch
        self.switch.set_multicast_group(job, [(first_port + r, r + 1) for r in range(world)])
        for rank in range(world):
            if admission:
                address = (_mac_int(mac(job, rank)), _ip_int(ip(job, rank)))
                keys = (first_port + rank, *address, job, rank)
                self.entry("SwitchIngress.admission", keys, "SwitchIngress.admit")
            self.entry(
                "SwitchEgress.receivers",
                (job, rank + 1),
                "SwitchEgress.set_receiver",
                mac=_mac_int(mac(job, rank)),
                ip=_ip_int(ip(job, rank)),
                rank=rank,
            )
        self.entry(
            "SwitchIngress.jobs",
            (job,),
            "SwitchIngress.set_job",
            **self._job(world, job, base, limit),
        )

    def _job(self, world: int, job: int, base: int, limit: int) -> dict[str, int]:
        return {
            "epoch": self.epoch[job],
            "slot_base": base,
            "slot_limit": limit,
            "members": (1 << world) - 1,
            "group": job,
            "switch_mac": _mac_int(SWITCH_MAC),
            "switch_ip": _ip_int(SWITCH_IP),
        }

    def restart_job(self, job: int, world: int, *, epoch: int) -> None:
        """The controller gives the job a new epoch on the same slots."""
        self.epoch[job] = epoch
        self.switch.modify(
            "SwitchIngress.jobs",
            p4emu.TableEntry(
                (p4emu.Match(job),), "SwitchIngress.set_job", self._job(world, job, 0, SLOTS)
            ),
        )

    def frame(
        self,
        rank: int,
        values: Iterable[int] | None = None,
        *,
        job: int = 1,
        source_mac: str | None = None,
        source_ip: str | None = None,
        **fields: int,
    ) -> Packet:
        """A frame of `rank`; `values` become lanes, missing ones 0. Fields override the header."""
        header = {
            "opcode": CONTRIBUTE,
            "reduce_op": SUM,
            "element_type": 1,
            "job": job,
            "rank": rank,
            "epoch": self.epoch.get(job, 0),
            "sequence": 1,
            "exponent": -128,
            "fingerprint": 0xABCD,
        } | fields
        layers = (
            Ether(src=source_mac or mac(job, rank), dst=SWITCH_MAC)
            / IP(src=source_ip or ip(job, rank), dst=SWITCH_IP, id=0, flags="DF")
            / UDP(sport=0x4E41, dport=0x4E41)
        )
        if values is None:
            return layers / INA(**header)
        values = list(values)
        header.setdefault("lane_count", len(values))
        header["flags"] = header.get("flags", 0) | DATA
        lanes = values + [0] * (LANES - len(values))
        raw = b"".join((v & 0xFFFFFFFF).to_bytes(4, "big") for v in lanes)
        return layers / INA(**header) / INALanes(raw)

    def send(self, rank: int, values: Iterable[int] | None = None, **options: object) -> list[Out]:
        """Sends a frame of `rank` into its own port and returns what comes out."""
        port = options.pop("port", None)
        job = options.get("job", 1)
        frame = self.frame(rank, values, **options)  # type: ignore[arg-type]
        return self.inject(
            self.first_port.get(job, 1) + rank if port is None else port,  # type: ignore[call-overload, operator]
            bytes(frame),
        )

    def inject(self, port: int, raw: bytes) -> list[Out]:
        return [Out(p, Ether(data)) for p, data in self.switch.process(port, raw)]

    def count(self, counter: str, index: int = 1) -> int:
        return self.switch.read_counter(f"SwitchIngress.{counter}", index).packets


def _mac_int(text: str) -> int:
    return int(text.replace(":", ""), 16)


def _ip_int(text: str) -> int:
    return int.from_bytes(bytes(int(part) for part in text.split(".")), "big")


def checksums_hold(frame: Packet) -> bool:
    """Whether Scapy, building the frame anew, arrives at the same IPv4 and UDP checksums."""
    fresh = Ether(bytes(frame))
    del fresh[IP].chksum
    del fresh[UDP].chksum
    rebuilt = Ether(bytes(fresh))
    same_udp = rebuilt[UDP].chksum % 0xFFFF == frame[UDP].chksum % 0xFFFF
    return rebuilt[IP].chksum == frame[IP].chksum and same_udp
