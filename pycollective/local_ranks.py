"""Several ranks as processes on this machine, started and ended together.

What torchrun does, for programs that need no torch and no restarts. Each process gets RANK,
WORLD_SIZE, MASTER_ADDR and MASTER_PORT. When one fails, or the parent leaves the `with` block, the
others are asked to end, and then made to.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import IO

from pycollective.errors import PycollectiveError

_END_GRACE = 5.0
"""Seconds between asking ranks to end and killing them."""


class RankFailedError(PycollectiveError, RuntimeError):
    """A rank's process ended with an error. `status` is its exit status, negative for a signal."""

    def __init__(self, rank: int, status: int, said: str) -> None:
        super().__init__(f"rank {rank} ended with status {status}; it said: {said or 'nothing'}")
        self.rank = rank
        self.status = status


class LocalRanks:
    """Processes that run one command as ranks of one world. A context manager.

    Parameters
    ----------
    command
        Program and arguments, the same for all ranks.
    world_size
        How many.
    environment
        Variables besides the parent's.
    """

    def __init__(
        self,
        command: Sequence[str],
        world_size: int,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._logs: list[IO[bytes]] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        world = {
            "WORLD_SIZE": str(world_size),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_port()),
        }
        base = {**os.environ, **(environment or {}), **world}
        try:
            for rank in range(world_size):
                log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the ranks)
                self._logs.append(log)
                self._processes.append(
                    subprocess.Popen(
                        command,
                        env={**base, "RANK": str(rank)},
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                        stderr=log,
                        start_new_session=True,
                    )
                )
        except BaseException:
            self.close()
            raise

    def lines(self) -> Iterator[str]:
        """Lines that rank 0 writes to its standard output, until all ranks have ended.

        Raises
        ------
        RankFailedError
            When a rank ends with an error, at once.
        """
        output = self._processes[0].stdout
        assert output is not None
        pending = bytearray()
        with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            for rank, process in enumerate(self._processes):
                ended = os.pidfd_open(process.pid)
                stack.callback(os.close, ended)
                selector.register(ended, selectors.EVENT_READ, rank)
            while selector.get_map():
                for key, _ in selector.select():
                    if key.data is not None:
                        selector.unregister(key.fileobj)
                        self._check(key.data)
                        continue
                    part = os.read(output.fileno(), 65536)
                    if not part:
                        selector.unregister(output)
                    pending += part
                    *whole, rest = pending.split(b"\n")
                    pending = bytearray(rest)
                    for line in whole:
                        yield line.decode()

    def _check(self, rank: int) -> None:
        status = self._processes[rank].wait()
        if status == 0:
            return
        # Others may have failed first and for better reasons: the one that was waited for.
        log = self._logs[rank]
        said = os.pread(log.fileno(), os.fstat(log.fileno()).st_size, 0).decode(errors="replace")
        raise RankFailedError(rank, status, said.strip())

    def close(self) -> None:
        """Ends what still runs and waits for it. May be called again."""
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + _END_GRACE
        for process in self._processes:
            try:
                process.wait(max(deadline - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        for log in self._logs:
            log.close()
        self._logs.clear()

    def __enter__(self) -> LocalRanks:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def free_port() -> int:
    """A TCP port of the loopback interface that nobody uses at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
