"""`pycollective doctor`: what is wrong on this machine, and what to do about it.

Each check is a function that returns what it found, or raises `Problem`. The checks go from the
ground up, and none depends on another one's result.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import platform
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.markup import escape

_WANTED_RECEIVE_BUFFER: Final = 1 << 20
"""Bytes: a window of 128 full frames with the kernel's overhead for each, several times over."""


class Problem(Exception):
    """Something is not as it must be: what was found, and what to do."""

    def __init__(self, found: str, remedy: str) -> None:
        super().__init__(found)
        self.remedy = remedy


class Advice(Problem):
    """Something that works, but could be better."""


def check_platform() -> str:
    """Linux: sockets, signals and /proc are used as it has them."""
    if sys.platform != "linux":
        raise Problem(f"this is {sys.platform}", "pycollective runs on Linux; use it there")
    return f"Python {platform.python_version()} on Linux {platform.release()}"


def check_core() -> str:
    """The C++ core imports."""
    try:
        core = importlib.import_module("pycollective._core")
    except ImportError as error:
        raise Problem(
            f"pycollective._core does not import: {error}",
            "build it: make install, or pip install --no-build-isolation -e .",
        ) from error
    return f"{core.__file__}"


def check_torch() -> str:
    """torch is there, and knows the backend without an import of ours."""
    if importlib.util.find_spec("torch") is None:
        raise Problem(
            "torch is not installed; the NumPy interface works without it",
            'pip install "pycollective[torch]"',
        )
    dist = importlib.import_module("torch.distributed")
    if not dist.is_available():
        raise Problem("this torch has no torch.distributed", "install an official build of torch")
    version = importlib.metadata.version("torch")
    if "pycollective" not in dist.Backend.backend_list:
        raise Problem(
            f'torch {version} does not know the backend "pycollective"',
            "install pycollective in this environment (torch finds it by its entry point), unset "
            "TORCH_DEVICE_BACKEND_AUTOLOAD, or import pycollective.torch in your program",
        )
    return version


def check_program() -> str:
    """The P4 program compiles."""
    p4emu = importlib.import_module("p4emu")
    from pycollective.switch_process import default_program

    program = default_program()
    begin = time.perf_counter()
    try:
        p4emu.compile(program)
    except Exception as error:
        raise Problem(
            f"{program} does not compile:\n{error}", "restore it, or install again"
        ) from error
    return f"{program} in {time.perf_counter() - begin:.1f} s"


def check_loopback() -> str:
    """Full frames pass over UDP on the loopback interface."""
    payload = bytes(1094)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.settimeout(2.0)
        try:
            receiver.bind(("127.0.0.1", 0))
            sender.sendto(payload, receiver.getsockname())
            received = receiver.recv(2048)
        except OSError as error:
            raise Problem(
                f"a datagram of {len(payload)} bytes does not come through 127.0.0.1: {error}",
                "bring the loopback interface up (ip link set lo up), check firewall rules",
            ) from error
    if received != payload:
        raise Problem("127.0.0.1 delivered another datagram", "check firewall rules")
    return f"{len(payload)} bytes over UDP"


def check_receive_buffer() -> str:
    """Sockets may have a buffer for a whole window of frames."""
    path = Path("/proc/sys/net/core/rmem_max")
    try:
        limit = int(path.read_text())
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error}", "pycollective runs on Linux") from error
    if limit < _WANTED_RECEIVE_BUFFER:
        raise Advice(
            f"net.core.rmem_max is {limit:,} bytes; {_WANTED_RECEIVE_BUFFER:,} are wanted, with "
            "less, bursts are lost and have to be repeated",
            f"as root: sysctl -w net.core.rmem_max={4 * _WANTED_RECEIVE_BUFFER}",
        )
    return f"net.core.rmem_max {limit:,} bytes"


def check_grpc() -> str:
    """The P4Runtime messages and gRPC import, in versions that fit each other."""
    try:
        importlib.import_module("p4.v1.p4runtime_pb2_grpc")
        grpc = importlib.import_module("grpc")
    except (ImportError, TypeError) as error:
        # protobuf raises TypeError when generated code is too old for it.
        raise Problem(
            f"P4Runtime over gRPC does not import: {error}",
            "pip install -c constraints.txt grpcio p4runtime protobuf",
        ) from error
    protobuf = importlib.metadata.version("protobuf")
    return f"grpcio {grpc.__version__}, protobuf {protobuf}"


CHECKS: Final[tuple[tuple[str, Callable[[], str]], ...]] = (
    ("platform", check_platform),
    ("C++ core", check_core),
    ("torch", check_torch),
    ("P4Runtime", check_grpc),
    ("P4 program", check_program),
    ("loopback", check_loopback),
    ("receive buffers", check_receive_buffer),
)


def run(checks: tuple[tuple[str, Callable[[], str]], ...] = CHECKS) -> int:
    """Runs all checks and prints what they found; returns 1 if something is wrong, else 0."""
    console = Console(highlight=False, soft_wrap=True)
    well = [_report(console, name, check) for name, check in checks]
    return 0 if all(well) else 1


def _report(console: Console, name: str, check: Callable[[], str]) -> bool:
    """Prints a line for a check, two if there is something to do; False if that is wrong."""
    try:
        found = check()
    except Problem as problem:
        mild = isinstance(problem, Advice)
        mark = "[yellow]advice[/yellow]" if mild else "[red]wrong[/red] "
        console.print(f"{mark} {name}: {escape(str(problem))}")
        console.print(f"       do: {escape(problem.remedy)}")
        return mild
    except Exception as error:  # whatever a broken installation may raise
        console.print(f"[red]wrong[/red]  {name}: {escape(f'{type(error).__name__}: {error}')}")
        console.print("       do: install pycollective again, as README.md says")
        return False
    console.print(f"[green]ok[/green]     {name}: {escape(found)}")
    return True
