"""`pycollective demo`, as `make demo` runs it but shorter, and interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import environment, marked, wait_for, wait_until_gone
from scapy.layers.inet import IP, UDP
from scapy.utils import rdpcap

from pycollective.contrib.scapy import INA, Flag, INALanes, Opcode

RANKS = 2
EPOCHS = 25


@pytest.fixture
def mark() -> Iterator[str]:
    """A mark for the demo's processes; none of them may be left when the test ends."""
    mark = uuid.uuid4().hex
    yield mark
    try:
        wait_until_gone(mark)
    finally:
        for process in marked(mark):
            os.kill(process, signal.SIGKILL)


def demo(out: Path, mark: str, epochs: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pycollective", "demo", "--out", str(out)]
    return subprocess.Popen(
        [*command, "--ranks", str(RANKS), "--epochs", str(epochs)],
        env=environment(mark, TMPDIR=str(out.parent)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_it_trains_through_the_switch_as_it_does_over_gloo(tmp_path: Path, mark: str) -> None:
    out = tmp_path / "demo-out"
    with demo(out, mark, EPOCHS) as process:
        said, _ = process.communicate(timeout=200)
    assert process.returncode == 0, said
    for part in ("256 lanes", "training over pycollective", "training over gloo", "test accuracy"):
        assert part in said
    _check_metrics(json.loads((out / "metrics.json").read_text()))
    assert (out / "loss.png").read_bytes().startswith(b"\x89PNG")
    _check_capture(out / "port1.pcap")
    assert [path.name for path in tmp_path.iterdir()] == ["demo-out"]


def _check_metrics(metrics: dict[str, object]) -> None:
    assert metrics["agree"] is True
    assert metrics["accuracy_difference"] <= 0.005  # type: ignore[operator]
    assert 0 <= metrics["largest_parameter_difference"] < 0.01  # type: ignore[operator]
    trainings: dict[str, dict[str, object]] = metrics["trainings"]  # type: ignore[assignment]
    assert set(trainings) == {"pycollective", "gloo"}
    for training in trainings.values():
        assert training["test_accuracy"] > 0.95  # type: ignore[operator]
        assert len(training["epochs"]) == EPOCHS  # type: ignore[arg-type]
    counters: dict[str, int] = metrics["switch_counters"]  # type: ignore[assignment]
    # Every epoch sums the gradients, 199 blocks, several times.
    assert counters["completions"] > EPOCHS * 199
    assert counters["packets"] == RANKS * counters["completions"]
    assert counters["rejected"] == 0


def _check_capture(path: Path) -> None:
    packets = rdpcap(str(path))
    assert 100 < len(packets) <= 2000
    opcodes = set()
    for packet in packets:
        assert INA in packet
        assert (INALanes in packet) == bool(int(packet[INA].flags) & Flag.DATA)
        opcodes.add(packet[INA].opcode)
    assert {Opcode.PROBE, Opcode.PROBE_REPLY, Opcode.CONTRIBUTE, Opcode.RESULT} <= opcodes
    data = next(packet for packet in packets if INALanes in packet and packet[INA].opcode == 2)
    assert len(data[INALanes].lanes) == 256
    sums = data[IP].chksum, data[UDP].chksum
    del data[IP].chksum, data[UDP].chksum
    again = data.__class__(bytes(data))
    assert (again[IP].chksum, again[UDP].chksum) == sums


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing_behind(
    tmp_path: Path, mark: str, number: signal.Signals
) -> None:
    with demo(tmp_path / "demo-out", mark, 100_000) as process:
        wait_for(mark, "pycollective.demo.train")
        process.send_signal(number)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + number, said
    assert "interrupted" in said
    assert not marked(mark)
    assert not list(tmp_path.glob("pycollective-*"))


def test_a_training_that_fails_shows_the_ranks_error(tmp_path: Path, mark: str) -> None:
    with demo(tmp_path / "demo-out", mark, 100_000) as process:
        wait_for(mark, "pycollective.demo.train")
        (switch,) = [i for i, command in marked(mark).items() if "p4emu run" in command]
        os.kill(switch, signal.SIGKILL)
        said, _ = process.communicate(timeout=150)
    assert process.returncode == 2
    assert "the training over pycollective ended with status" in said
    assert "Error" in said
