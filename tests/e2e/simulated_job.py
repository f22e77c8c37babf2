"""One job in the simulator: real engines, the real `p4/allreduce.p4`, links as the test wants them.

`SimulatedJob` configures a fresh switch for the ranks of job 1 and runs collectives on all of them.
It judges nothing; tests compare what comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

import p4emu
from pycollective._core import (
    DataType,
    Direction,
    Error,
    FaultRule,
    FaultStatistics,
    JobConfig,
    LinkConfig,
    LinkStatistics,
    Simulation,
    Timers,
)

SOURCE = Path(__file__).resolve().parents[2] / "p4" / "allreduce.p4"
JOB = 1
EPOCH = 7
SWITCH_MAC = "02:50:43:ff:ff:fe"
SWITCH_IP = "10.255.255.254"

PERFECT = LinkConfig()
# What every port of the network does to frames, in both directions, unless a test says otherwise.
ROUGH = LinkConfig(loss=0.05, duplicate=0.02, hold=0.05, hold_frames=50)

Array = npt.NDArray[np.int32] | npt.NDArray[np.float32]


def mac(rank: int) -> str:
    return f"02:50:43:{JOB >> 8:02x}:{JOB & 255:02x}:{rank:02x}"


def ipv4(rank: int) -> str:
    return f"10.{JOB >> 8}.{JOB & 255}.{rank + 1}"


def mac_number(text: str) -> int:
    return int(text.replace(":", ""), 16)


def ipv4_number(text: str) -> int:
    return int.from_bytes(bytes(int(octet) for octet in text.split(".")), "big")


class SimulatedJob:
    """A job of `world` ranks on ports 1 to `world` of one switch.

    Parameters
    ----------
    program
        `p4/allreduce.p4`, or a mutation of it, compiled with `lanes` and at least `slots`.
    link
        Both directions of every link.
    """

    def __init__(
        self,
        program: p4emu.Program,
        world: int,
        *,
        lanes: int,
        slots: int,
        seed: int = 1,
        link: LinkConfig = PERFECT,
        timers: Timers | None = None,
    ) -> None:
        self.world = world
        self.switch = p4emu.Switch(program)
        self._admit(slots)
        self.simulation = Simulation(
            self.switch.runtime,
            [
                JobConfig(
                    job=JOB,
                    rank=rank,
                    world_size=world,
                    epoch=EPOCH,
                    slots=slots,
                    lanes=lanes,
                    mac=mac(rank),
                    switch_mac=SWITCH_MAC,
                    ipv4=ipv4(rank),
                    switch_ipv4=SWITCH_IP,
                    timers=timers or Timers(),
                )
                for rank in range(world)
            ],
            seed=seed,
            to_switch=link,
            to_host=link,
        )

    def all_reduce(self, inputs: Sequence[Array]) -> list[Array]:
        """Sums `inputs` (one a rank), all well or an assertion; returns every rank's result."""
        outputs = [np.full_like(values, 99) for values in inputs]
        numbers = {
            rank: self.simulation.all_reduce(
                rank, inputs[rank], outputs[rank], data_type(inputs[rank])
            )
            for rank in range(self.world)
        }
        self.finish(numbers)
        return outputs

    def broadcast(self, buffers: Sequence[bytearray], root: int) -> None:
        numbers = {
            rank: self.simulation.broadcast(rank, buffers[rank], DataType.BYTE, root)
            for rank in range(self.world)
        }
        self.finish(numbers)

    def barrier(self) -> None:
        self.finish({rank: self.simulation.barrier(rank) for rank in range(self.world)})

    def finish(self, numbers: dict[int, int]) -> None:
        """Runs until the collectives (rank to number) have ended, all of them well."""
        assert self.simulation.run(limit=600), f"not finished, seed {self.simulation.seed}"
        errors = {rank: self.simulation.error(rank, number) for rank, number in numbers.items()}
        assert not any(errors.values()), f"{errors}, seed {self.simulation.seed}"

    def errors(self, numbers: dict[int, int]) -> dict[int, Error | None]:
        """Runs until the collectives have ended; returns how."""
        assert self.simulation.run(limit=600), f"not finished, seed {self.simulation.seed}"
        return {rank: self.simulation.error(rank, number) for rank, number in numbers.items()}

    def add_fault(self, rule: FaultRule) -> int:
        return self.simulation.add_fault(rule)

    def fault(self, rule: int) -> FaultStatistics:
        return self.simulation.fault(rule)

    def count(self, counter: str) -> int:
        """Packets in one of the job's counters on the switch."""
        return self.switch.read_counter(f"SwitchIngress.{counter}", JOB).packets

    def malformed(self) -> int:
        """Frames that the switch dropped as truncated, damaged or nonsense."""
        return sum(self.switch.read_counter("SwitchIngress.malformed", i).packets for i in range(3))

    def links(self) -> list[LinkStatistics]:
        return [
            self.simulation.link(rank, direction)
            for rank in range(self.world)
            for direction in (Direction.TO_SWITCH, Direction.TO_HOST)
        ]

    def _admit(self, slots: int) -> None:
        def insert(table: str, keys: Sequence[int], action: str, **params: int) -> None:
            matches = tuple(p4emu.Match(key) for key in keys)
            self.switch.insert(table, p4emu.TableEntry(matches, action, params))

        for rank in range(self.world):
            mac_key, ipv4_key = mac_number(mac(rank)), ipv4_number(ipv4(rank))
            insert(
                "SwitchIngress.admission",
                (rank + 1, mac_key, ipv4_key, JOB, rank),
                "SwitchIngress.admit",
            )
            insert(
                "SwitchEgress.receivers",
                (JOB, rank + 1),
                "SwitchEgress.set_receiver",
                mac=mac_key,
                ip=ipv4_key,
                rank=rank,
            )
        self.switch.set_multicast_group(JOB, [(rank + 1, rank + 1) for rank in range(self.world)])
        insert(
            "SwitchIngress.jobs",
            (JOB,),
            "SwitchIngress.set_job",
            epoch=EPOCH,
            slot_base=0,
            slot_limit=slots,
            members=(1 << self.world) - 1,
            group=JOB,
            switch_mac=mac_number(SWITCH_MAC),
            switch_ip=ipv4_number(SWITCH_IP),
        )


def data_type(values: Array) -> DataType:
    return DataType.INT32 if values.dtype == np.int32 else DataType.FLOAT32


def integers(world: int, size: int, seed: int = 0) -> list[npt.NDArray[np.int32]]:
    """Values whose sum over 32 ranks stays in range, and which use most of that range."""
    random = np.random.default_rng([seed, world, size])
    return [
        random.integers(-(2**26), 2**26, size, dtype=np.int32, endpoint=True) for _ in range(world)
    ]


def floats(world: int, size: int, seed: int = 0) -> list[npt.NDArray[np.float32]]:
    """Values of both signs whose magnitudes differ within a block and from block to block."""
    random = np.random.default_rng([seed, world, size])
    scale = np.exp2(random.integers(-30, 30, (size + 255) // 256)).repeat(256)[:size]
    return [
        (random.standard_normal(size) * np.exp2(random.uniform(-8, 8, size)) * scale).astype(
            np.float32
        )
        for _ in range(world)
    ]


def fp32_bound(inputs: Sequence[npt.NDArray[np.float32]], lanes: int) -> npt.NDArray[np.float64]:
    """The documented bound on |result - exact| of each element (docs/protocol.md, section 4).

    n * 2**(E - 30 + ceil(log2 n)) with E the block's largest exponent, and half an ulp of the
    result for the rounding to fp32.
    """
    world, size = len(inputs), inputs[0].size
    blocks = (size + lanes - 1) // lanes
    magnitude = np.zeros(blocks * lanes)
    magnitude[:size] = np.max(np.abs(np.asarray(inputs, dtype=np.float64)), axis=0)
    largest = magnitude.reshape(blocks, lanes).max(axis=1, initial=0)
    with np.errstate(divide="ignore"):
        exponent = np.maximum(np.floor(np.log2(largest)), -126)
    headroom = int(np.ceil(np.log2(world)))
    step = world * np.exp2(exponent - 30 + headroom)
    step[largest == 0] = 0
    exact = np.sum(np.asarray(inputs, dtype=np.float64), axis=0)
    half_ulp = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64) / 2
    bound: npt.NDArray[np.float64] = step.repeat(lanes)[:size] + half_ulp
    return bound
