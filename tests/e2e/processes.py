"""Which processes a test has left behind: those that have its mark in their environment."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path

MARK = "PYCOLLECTIVE_TEST_MARK"


def environment(mark: str, **variables: str) -> dict[str, str]:
    """The test's own environment without a world, with a mark that children inherit."""
    world = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
    own = {
        name: value
        for name, value in os.environ.items()
        if name not in world and not name.startswith("PYCOLLECTIVE_")
    }
    return {**own, MARK: mark, **variables}


def marked(mark: str) -> Mapping[int, str]:
    """Command lines of the living processes that have the mark, by process id."""
    wanted = f"{MARK}={mark}".encode()
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        with contextlib.suppress(OSError):  # it has ended, or is not ours
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if command:  # a zombie has none
                    found[int(folder.name)] = command
    return found


def wait_for(mark: str, part: str, timeout: float = 60.0) -> None:
    """Returns when a process with the mark has `part` in its command line."""
    deadline = time.monotonic() + timeout
    while not any(part in command for command in marked(mark).values()):
        assert time.monotonic() < deadline, f"no process with {part!r}: {marked(mark)}"
        time.sleep(0.05)


def wait_until_gone(mark: str, timeout: float = 10.0) -> None:
    """Returns when no process with the mark is left; fails when some are after `timeout`."""
    deadline = time.monotonic() + timeout
    while left := marked(mark):
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.05)
