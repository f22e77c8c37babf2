"""The demo from beginning to end: a switch, a training through it, one over gloo, a comparison.

Everything that is started here is ended here, in reverse order, on success, failure and signals.
"""

from __future__ import annotations

import contextlib
import importlib.util
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import FrameType

import numpy as np
from rich.console import Console

from pycollective.demo import report
from pycollective.demo.display import Display
from pycollective.demo.events import Begun, Ended, Epoch
from pycollective.demo.torchrun import train
from pycollective.errors import ConfigurationError
from pycollective.switch_process import SwitchProcess, default_program

_CAPTURED_PORT = 1
_CAPTURED_FRAMES = 2000
"""Enough for the first steps of the training, both directions."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _InterruptedError(BaseException):
    """A signal asked the demo to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run(out: Path, ranks: int, epochs: int) -> int:
    """Runs the demo.

    Parameters
    ----------
    out
        Folder for `loss.png`, `metrics.json` and `port1.pcap`; made if it is not there.
    ranks, epochs
        Of both trainings.

    Returns
    -------
    int
        Exit status: 0; 1 when the trainings do not agree or are not good enough; 128 and the
        signal's number when interrupted.

    Raises
    ------
    PycollectiveError
        When the switch does not start or a training fails.
    """
    _require("torch", "sklearn", "matplotlib")
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    try:
        with _signals_end_it(), tempfile.TemporaryDirectory(prefix="pycollective-demo-") as scratch:
            comparison, counters = _compare(console, out, Path(scratch), ranks, epochs)
            report.write_picture(out / "loss.png", comparison)
            report.write_metrics(out / "metrics.json", comparison, ranks, counters)
    except _InterruptedError as interrupted:
        console.print("interrupted: the switch and all ranks have ended")
        return 128 + interrupted.number
    console.print(report.table(comparison))
    console.print(f"written: {out}/loss.png, {out}/metrics.json, {out}/port{_CAPTURED_PORT}.pcap")
    for complaint in comparison.complaints:
        console.print(f"[red]not as expected:[/red] {complaint}")
    return 1 if comparison.complaints else 0


def _compare(
    console: Console, out: Path, scratch: Path, ranks: int, epochs: int
) -> tuple[report.Comparison, Mapping[str, int]]:
    program = default_program()
    with console.status("starting p4emu"):
        switch = SwitchProcess.start(
            None,
            ranks,
            captures={_CAPTURED_PORT: out / f"port{_CAPTURED_PORT}.pcap"},
            capture_limit=_CAPTURED_FRAMES,
        )
    with switch:
        addresses = switch.addresses
        console.print(f"switch: p4emu, process {switch.pid}, P4Runtime at {addresses.grpc}")
        with console.status(f"the switch compiles {program.name}"):
            console.print(_load(addresses.grpc, program))
        # From here on it is a switch like any other: rank 0 puts the job on it over P4Runtime.
        environment = {
            "PYCOLLECTIVE_CONTROLLER": addresses.grpc,
            "PYCOLLECTIVE_PORTS": ",".join(
                f"{number}={address}" for number, address in sorted(addresses.ports.items())
            ),
        }
        through, job = _train(console, "pycollective", ranks, epochs, scratch, environment)
        counters = {} if job is None else _counters(addresses.grpc, job)
        console.print(
            "switch counters: " + ", ".join(f"{name} {value:,}" for name, value in counters.items())
        )
    over, _ = _train(console, "gloo", ranks, epochs, scratch, {})
    return report.Comparison(through, over), counters


def _train(
    console: Console,
    backend: str,
    ranks: int,
    epochs: int,
    scratch: Path,
    environment: Mapping[str, str],
) -> tuple[report.Training, int | None]:
    parameter_file = scratch / f"{backend}.npy"
    lines: list[Epoch] = []
    seconds, job = 0.0, None
    with Display(console, backend, epochs) as display:
        for event in train(backend, ranks, epochs, parameter_file, environment):
            match event:
                case Begun():
                    job = event.job
                    display.training()
                case Epoch():
                    lines.append(event)
                    display.add(event)
                case Ended():
                    seconds = event.seconds
    return report.Training(backend, tuple(lines), seconds, np.load(parameter_file)), job


def _load(grpc_address: str, program: Path) -> str:
    from pycollective.controller import Controller

    begin = time.perf_counter()
    with Controller(grpc_address) as controller:
        controller.load(program)
        seconds = time.perf_counter() - begin
        return (
            f"program: {program.name}, {controller.lanes} lanes, {controller.pool_slots} slots, "
            f"compiled and loaded in {seconds:.1f} s"
        )


def _counters(grpc_address: str, job: int) -> Mapping[str, int]:
    from pycollective.controller import Controller

    with Controller(grpc_address) as controller:
        return asdict(controller.counters(job))


def _require(*modules: str) -> None:
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"the demo needs {', '.join(missing)}, which this Python does not have; install it "
            'with: pip install "pycollective[demo]"'
        )


@contextlib.contextmanager
def _signals_end_it() -> Iterator[None]:
    """Turns the first signal into `_InterruptedError`; later ones do not disturb the ending."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        for ignored in _SIGNALS:
            signal.signal(ignored, signal.SIG_IGN)
        raise _InterruptedError(number)

    before = [signal.signal(number, interrupt) for number in _SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(_SIGNALS, before, strict=True):
            signal.signal(number, handler)
