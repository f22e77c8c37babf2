"""Packets per second of the JIT-compiled all-reduce program, in process, without sockets.

    python benchmarks/switch_throughput.py [--lanes 64 256] [--ranks 4] [--seconds 3]

Every packet is a fresh contribution that the program adds (no repeats): parser, both checksums, the
admission and job tables, the slot's registers, all lanes; every `ranks`-th packet completes a chunk
and leaves as `ranks` replicas, each with egress, new checksums and deparsing. One round is two uses
of every slot; between rounds, outside the measured time, the slots' epochs are cleared so that the
same frames are fresh again. The figure is the median over rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import p4emu
from pycollective import _core

SOURCE = Path(__file__).resolve().parents[1] / "p4" / "allreduce.p4"
SLOTS = 512
JOB, EPOCH = 1, 7
SWITCH_MAC, SWITCH_IPV4 = 0x0250_43FF_FFFE, 0x0AFF_FFFE
EPOCH_REGISTER = "SwitchIngress.aggregation.tag.epochs"


def admit(switch: p4emu.Switch, ranks: int) -> None:
    """One job with the whole pool on ports 1 to `ranks`."""

    def entry(table: str, keys: tuple[int, ...], action: str, **params: int) -> None:
        switch.insert(table, p4emu.TableEntry(tuple(map(p4emu.Match, keys)), action, params))

    switch.set_multicast_group(1, [(rank + 1, rank + 1) for rank in range(ranks)])
    for rank in range(ranks):
        mac, ipv4 = 0x0250_4300_0100 + rank, 0x0A00_0101 + rank
        entry("SwitchIngress.admission", (rank + 1, mac, ipv4, JOB, rank), "SwitchIngress.admit")
        entry(
            "SwitchEgress.receivers",
            (JOB, rank + 1),
            "SwitchEgress.set_receiver",
            mac=mac,
            ip=ipv4,
            rank=rank,
        )
    entry(
        "SwitchIngress.jobs",
        (JOB,),
        "SwitchIngress.set_job",
        epoch=EPOCH,
        slot_base=0,
        slot_limit=SLOTS,
        members=(1 << ranks) - 1,
        group=1,
        switch_mac=SWITCH_MAC,
        switch_ip=SWITCH_IPV4,
    )


def contributions(lanes: int, ranks: int) -> list[tuple[int, bytes]]:
    """One frame of each rank for each of the pool's 2 x SLOTS rows, in the order of use."""
    frames = []
    for use in range(2 * SLOTS):
        for rank in range(ranks):
            header = _core.InaHeader(
                opcode=_core.Opcode.CONTRIBUTE,
                element_type=_core.ElementType.INT32,
                job=JOB,
                rank=rank,
                epoch=EPOCH,
                slot=use % SLOTS,
                slot_version=use // SLOTS % 2,
                sequence=1,
                chunk=use,
                lane_count=lanes,
                flags=_core.Flag.DATA,
            )
            frame = _core.build_frame(
                header,
                source_mac=f"02:50:43:00:01:{rank:02x}",
                destination_mac="02:50:43:ff:ff:fe",
                source_ipv4=f"10.0.1.{rank + 1}",
                destination_ipv4="10.255.255.254",
                lanes=b"".join((use + lane).to_bytes(4, "big") for lane in range(lanes)),
            )
            frames.append((rank + 1, frame))
    return frames


def measure(program: p4emu.Program, lanes: int, ranks: int, seconds: float) -> float:
    """Packets per second in, the median of rounds that take `seconds` together."""
    with p4emu.Switch(program) as switch:
        admit(switch, ranks)
        frames = contributions(lanes, ranks)
        rates = []
        end = time.monotonic() + seconds
        while not rates or time.monotonic() < end:
            for row in range(2 * SLOTS):
                switch.write_register(EPOCH_REGISTER, row, 0)
            rates.append(len(frames) / switch.measure(frames))
            rounds = len(rates)
            added = switch.read_counter("SwitchIngress.job_packets", JOB).packets
            done = switch.read_counter("SwitchIngress.job_completions", JOB).packets
            if (added, done) != (rounds * len(frames), rounds * 2 * SLOTS):
                raise SystemExit(
                    f"expected {rounds * len(frames)} additions and {rounds * 2 * SLOTS} "
                    f"completions, the switch counted {added} and {done}"
                )
        return statistics.median(rates)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--lanes", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=3.0, help="measured for each lane count")
    options = parser.parse_args()

    table = Table(title=f"allreduce.p4 in process, one core, {options.ranks} ranks")
    for heading in ("lanes", "compile s", "packets/s in", "frames/s out", "payload Gbit/s in"):
        table.add_column(heading, justify="right")
    for lanes in options.lanes:
        defines = {"INA_LANES": str(lanes), "INA_SLOTS": str(SLOTS)}
        begin = time.perf_counter()
        program = p4emu.compile(SOURCE, defines=defines)
        compiled = time.perf_counter() - begin
        rate = measure(program, lanes, options.ranks, options.seconds)
        table.add_row(
            str(lanes),
            f"{compiled:.2f}",
            f"{rate:,.0f}",
            f"{rate:,.0f}",
            f"{rate * lanes * 32 / 1e9:.1f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
