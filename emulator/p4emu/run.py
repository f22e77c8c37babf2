"""A switch as a process: from its options to its end on a signal.

`run_switch` compiles, opens ports, serves P4Runtime, tells its caller the addresses, and waits. It
knows the process it runs in (signals, its parent) and neither arguments nor output.

Main types: `RunOptions`, `PortOption`, `ImpairOption`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from p4emu.switch import Direction

_PR_SET_PDEATHSIG = 1
"""From <linux/prctl.h>."""


@dataclass(frozen=True, slots=True)
class PortOption:
    """A switch port to open, and the file that captures it, if one does."""

    number: int
    spec: str
    pcap: Path | None


@dataclass(frozen=True, slots=True)
class ImpairOption:
    """One direction of a port's cable to make bad, with arguments of `Switch.impair`."""

    port: int
    direction: Direction
    loss: float = 0.0
    duplicate: float = 0.0
    hold: float = 0.0
    corrupt: float = 0.0


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What to run; see `p4emu run --help`."""

    program: Path | None
    ports: Sequence[PortOption]
    grpc_address: str
    defines: Mapping[str, str]
    include: Sequence[Path]
    pcap_limit: int
    impairments: Sequence[ImpairOption]
    seed: int
    device_id: int
    exit_with_parent: bool


def run_switch(options: RunOptions, ready: Callable[[str, dict[int, str], int], None]) -> None:
    """Run a switch until SIGINT or SIGTERM; from the main thread.

    Parameters
    ----------
    ready
        Called once everything listens, with the gRPC address, the address of each port and the
        device id.

    Raises
    ------
    CompileError
        The program has errors.
    SwitchError, OSError
        An address or a file cannot be used.
    """
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    if options.exit_with_parent:
        _end_with_parent(stop)

    from p4emu.p4runtime.bundle import Sources, pack
    from p4emu.p4runtime.server import Server
    from p4emu.program import compile
    from p4emu.switch import Switch

    program, config = None, b""
    if options.program is not None:
        program = compile(options.program, defines=options.defines, include=options.include)
        config = pack(Sources(options.program, options.defines, options.include))
    with Switch(program) as switch:
        addresses = {}
        for port in options.ports:
            pcap = None
            if port.pcap is not None:
                port.pcap.parent.mkdir(parents=True, exist_ok=True)
                pcap = str(port.pcap)
            addresses[port.number] = switch.add_port(
                port.number, port.spec, pcap=pcap, pcap_limit=options.pcap_limit
            )
        for cable in options.impairments:
            switch.impair(
                cable.port,
                cable.direction,
                loss=cable.loss,
                duplicate=cable.duplicate,
                hold=cable.hold,
                corrupt=cable.corrupt,
                seed=options.seed,
            )
        switch.start()
        server = Server(switch, options.grpc_address, options.device_id, device_config=config)
        try:
            ready(server.start(), addresses, options.device_id)
            stop.wait()
        finally:
            server.stop()


def _end_with_parent(stop: threading.Event) -> None:
    """Have the kernel send SIGTERM when the thread that started this process ends."""
    parent = os.getppid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"cannot follow the parent's end: {os.strerror(error)}")
    if os.getppid() != parent:  # it ended before the kernel knew
        stop.set()
