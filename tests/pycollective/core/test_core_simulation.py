"""The simulation as Python drives it, around a function that plays the switch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from model_switch import LANES, lone_job, mirror
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap

from pycollective._core import (
    CoreError,
    DataType,
    Direction,
    ErrorCode,
    FaultAction,
    FaultRule,
    FrameMatch,
    LinkConfig,
    Opcode,
    Simulation,
    Timers,
)

ROUGH = LinkConfig(loss=0.05, duplicate=0.02, hold=0.05, corrupt=0.02)


def run_sum(seed: int, link: LinkConfig) -> tuple[float, int]:
    simulation = Simulation(mirror, [lone_job()], seed=seed, to_switch=link, to_host=link)
    values = np.arange(1000, dtype=np.int32)
    total = np.zeros_like(values)
    number = simulation.all_reduce(0, values, total, DataType.INT32)
    assert simulation.run()
    assert simulation.error(0, number) is None
    assert (total == values).all()
    return simulation.now, simulation.statistics(0).retransmissions


def test_a_seed_gives_the_same_run_again() -> None:
    assert run_sum(1, ROUGH) == run_sum(1, ROUGH)
    assert run_sum(1, ROUGH) != run_sum(2, ROUGH)


def test_time_is_virtual() -> None:
    # 1 Mbit/s: a frame of 134 bytes takes more than a millisecond, 63 of them a noticeable time.
    now, _ = run_sum(1, LinkConfig(bits_per_second=1e6))
    assert now > 63 * 134 * 8 / 1e6


def test_a_rule_hits_the_frame_it_names() -> None:
    simulation = Simulation(mirror, [lone_job()], seed=1)
    rule = simulation.add_fault(
        FaultRule(
            FaultAction.DROP,
            FrameMatch(host=0, direction=Direction.TO_HOST, opcode=Opcode.RESULT, chunk=2),
        )
    )
    values = np.zeros(5 * LANES, dtype=np.int32)
    simulation.all_reduce(0, values, values, DataType.INT32)
    assert simulation.run()
    assert simulation.fault(rule).hit == 1
    assert simulation.statistics(0).retransmissions == 1


def test_a_rule_that_holds_needs_a_moment() -> None:
    with pytest.raises(ValueError, match="until"):
        FaultRule(FaultAction.HOLD, FrameMatch())


def test_collectives_follow_each_other_in_virtual_time() -> None:
    simulation = Simulation(mirror, [lone_job()], seed=1)
    first = simulation.barrier(0)
    assert simulation.run()
    then = simulation.now
    second = simulation.broadcast(0, bytearray(b"abc"), DataType.BYTE, 0)
    with pytest.raises(KeyError, match="not ended"):
        simulation.error(0, second)
    assert simulation.run()
    assert [(e.host, e.id, e.error) for e in simulation.ended] == [
        (0, first, None),
        (0, second, None),
    ]
    assert simulation.now > then


def test_memory_is_held_until_the_end() -> None:
    simulation = Simulation(mirror, [lone_job()], seed=1)
    data = bytearray(100)
    simulation.broadcast(0, data, DataType.BYTE, 0)
    with pytest.raises(BufferError):
        data.clear()
    assert simulation.run()
    data.clear()


def test_a_switch_that_answers_nothing_is_an_error_in_virtual_time() -> None:
    timers = Timers(connect_timeout=2.0)
    simulation = Simulation(lambda port, frame: [], [lone_job(timers=timers)], seed=1)
    number = simulation.barrier(0)
    assert simulation.run()
    error = simulation.error(0, number)
    assert error is not None
    assert error.code == ErrorCode.SWITCH_UNREACHABLE
    assert simulation.now == pytest.approx(2.0)


def test_an_exception_of_the_switch_function_comes_out() -> None:
    def broken(port: int, frame: bytes) -> list[tuple[int, bytes]]:
        raise ZeroDivisionError("in the switch")

    simulation = Simulation(broken, [lone_job()], seed=1)
    simulation.barrier(0)
    with pytest.raises(ZeroDivisionError, match="in the switch"):
        simulation.run()


def test_a_capture_opens_in_scapy(tmp_path: Path) -> None:
    simulation = Simulation(mirror, [lone_job()], seed=1)
    path = tmp_path / "port1.pcap"
    simulation.capture(0, str(path))
    simulation.barrier(0)
    assert simulation.run()
    packets = rdpcap(str(path))
    link = simulation.link(0, Direction.TO_SWITCH)
    assert len(packets) == 2 * link.delivered
    assert packets[0][Ether].dst == "02:50:43:ff:ff:fe"
    assert float(packets[-1].time) == pytest.approx(simulation.now, abs=1e-5)
    with pytest.raises(OSError, match="cannot write"):
        simulation.capture(0, str(tmp_path / "missing" / "port1.pcap"))


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="must be a"):
        Simulation(3, [lone_job()], seed=1)
    with pytest.raises(CoreError, match="epoch"):
        Simulation(mirror, [lone_job(epoch=0)], seed=1)
    simulation = Simulation(mirror, [lone_job()], seed=1)
    with pytest.raises(IndexError):
        simulation.barrier(1)
    with pytest.raises(CoreError) as raised:
        simulation.all_reduce(0, bytearray(4), bytearray(4), DataType.BYTE)
    assert raised.value.error.code == ErrorCode.UNSUPPORTED
