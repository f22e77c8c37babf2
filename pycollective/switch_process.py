"""A p4emu switch as a process of its own.

`SwitchProcess.start` runs `p4emu run`, which compiles a P4 program, opens a loopback UDP port for
each switch port and serves P4Runtime; it returns when the switch has said at which addresses. The
process ends with `stop`, and by itself when its parent ends, however that ends. It is in a session
of its own, so that a Ctrl-C in the terminal does not reach it before its users have left.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from pycollective.errors import FabricError

_STOP_GRACE = 3.0
"""Seconds between asking the switch to end and killing it."""


@dataclass(frozen=True)
class SwitchAddresses:
    """Where a running switch can be reached: P4Runtime as HOST:PORT, ports as udp:HOST:PORT."""

    grpc: str
    ports: Mapping[int, str]


class SwitchProcess:
    """A running p4emu. Use `start`; it is a context manager."""

    def __init__(
        self, process: subprocess.Popen[bytes], addresses: SwitchAddresses, log: IO[bytes]
    ) -> None:
        self._process = process
        self._log = log
        self.addresses = addresses

    @classmethod
    def start(
        cls,
        program: Path | None,
        ports: int,
        *,
        timeout: float = 60.0,
        captures: Mapping[int, Path] | None = None,
        capture_limit: int = 10_000,
    ) -> SwitchProcess:
        """Starts a switch with ports 1 to `ports` and waits until it is ready.

        Parameters
        ----------
        program
            The P4 source; None for a switch that a controller is to give one.
        timeout
            Seconds for compiling and starting.
        captures
            Switch ports whose frames are recorded, and the pcap file of each.
        capture_limit
            Frames after which a recording ends.

        Raises
        ------
        FabricError
            When it does not start, with what it said: for a P4 source with errors, those.
        """
        command = [sys.executable, "-m", "p4emu", "run"]
        command += [] if program is None else [str(program)]
        command += ["--grpc-addr", "127.0.0.1:0", "--json", "--exit-with-parent"]
        for port in range(1, ports + 1):
            command += ["--port", f"{port}=udp:127.0.0.1:0"]
        for port, path in (captures or {}).items():
            command += ["--pcap", f"{port}={path}", "--pcap-limit", str(capture_limit)]
        log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the switch)
        try:
            process = _start_in_lasting_thread(command, log)
        except OSError as error:
            log.close()
            raise FabricError(
                f"the switch could not be started as {' '.join(command[:4])} ({error.strerror}); "
                "check that this Python can run programs"
            ) from error
        try:
            addresses = _read_addresses(process, log, timeout)
        except BaseException:
            _end(process)
            log.close()
            raise
        return cls(process, addresses, log)

    @property
    def pid(self) -> int:
        """Of the switch's process."""
        return self._process.pid

    def output(self) -> str:
        """What the switch has written to its standard error so far."""
        return _read_log(self._log)

    def stop(self) -> None:
        """Ends the switch and waits for it. May be called again."""
        if self._log.closed:
            return
        _end(self._process)
        self._log.close()

    def __enter__(self) -> SwitchProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def _start_in_lasting_thread(command: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Starts a process from a thread that lasts as long as the process.

    The kernel's "end with your parent" means the thread that started it, and the caller's thread
    may end long before this process does.
    """
    started: Future[subprocess.Popen[bytes]] = Future()

    def start() -> None:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        except OSError as error:
            started.set_exception(error)
            return
        started.set_result(process)
        process.wait()

    threading.Thread(target=start, name="switch-process", daemon=True).start()
    return started.result()


def _read_addresses(
    process: subprocess.Popen[bytes], log: IO[bytes], timeout: float
) -> SwitchAddresses:
    line = _read_line(process, timeout)
    if line is None:
        raise FabricError(f"the switch was not ready after {timeout:.0f} s; it said: {_said(log)}")
    try:
        message = json.loads(line)
        ports = {int(port): str(address) for port, address in message["ports"].items()}
        return SwitchAddresses(str(message["grpc"]), ports)
    except (KeyError, TypeError, ValueError):
        code = process.wait(_STOP_GRACE) if not line else None
        ended = f"ended with exit status {code}" if code is not None else f"answered {line!r}"
        raise FabricError(
            f"the switch {ended} instead of saying its addresses; it said: {_said(log)}"
        ) from None


def _read_line(process: subprocess.Popen[bytes], timeout: float) -> bytes | None:
    """The first line of the process's output, what there is of it at its end; None: timeout."""
    assert process.stdout is not None
    deadline = time.monotonic() + timeout
    line = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(deadline - time.monotonic(), 0.0)):
                return None
            part = os.read(process.stdout.fileno(), 4096)
            if not part:
                break
            line += part
    return bytes(line)


def _read_log(log: IO[bytes]) -> str:
    # pread: the switch writes through the same open file, whose position must not move.
    size = os.fstat(log.fileno()).st_size
    return os.pread(log.fileno(), size, 0).decode(errors="replace").strip()


def _said(log: IO[bytes]) -> str:
    return _read_log(log) or "nothing"


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def default_program() -> Path:
    """The all-reduce program that comes with the package, or of the source tree it runs from.

    Raises
    ------
    FabricError
        When neither is there.
    """
    here = Path(__file__).resolve().parent
    candidates: Sequence[Path] = (here / "p4" / "allreduce.p4", here.parent / "p4" / "allreduce.p4")
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise FabricError(
        "allreduce.p4 should be at one of "
        f"{', '.join(str(candidate) for candidate in candidates)}; install pycollective again, or "
        "set PYCOLLECTIVE_P4 to a program"
    )
