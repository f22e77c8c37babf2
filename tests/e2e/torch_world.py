"""A world of torch ranks that outlives single tests: importing torch takes longer than most tests.

`TorchWorld.run(scenario)` calls a module-level function as every rank, in processes where the
default group is initialized, and raises what the ranks raised.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import traceback
from collections.abc import Callable, Mapping
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

_TIMEOUT = 100.0
"""Seconds for a scenario; far more than any needs."""


class TorchWorld:
    """Ranks with an initialized default group. A context manager.

    Parameters
    ----------
    environment
        Variables of the ranks besides the test's own: where the switch is.
    timeout
        Of `init_process_group`, seconds.
    """

    def __init__(self, world_size: int, environment: Mapping[str, str], timeout: float) -> None:
        context = multiprocessing.get_context("spawn")
        self.world_size = world_size
        self._scratch = tempfile.TemporaryDirectory(prefix="torch-world-")
        self._pipes: list[Connection] = []
        self._processes = []
        before = dict(os.environ)
        os.environ.update(environment, OMP_NUM_THREADS="1")
        try:
            for rank in range(world_size):
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=_rank, args=(theirs, rank, world_size, self._scratch.name, timeout)
                )
                process.start()
                theirs.close()
                self._pipes.append(ours)
                self._processes.append(process)
        finally:
            os.environ.clear()
            os.environ.update(before)

    def run(self, scenario: Callable[..., Any], *arguments: object) -> list[Any]:
        """What each rank's call of the scenario returned.

        Raises
        ------
        AssertionError
            With the traceback of every rank that raised.
        """
        for pipe in self._pipes:
            pipe.send((scenario, arguments))
        answers = []
        for rank, pipe in enumerate(self._pipes):
            assert pipe.poll(_TIMEOUT), f"rank {rank} does not come back from {scenario.__name__}"
            answers.append(pipe.recv())
        failures = [f"rank {rank}:\n{text}" for rank, (text, _) in enumerate(answers) if text]
        assert not failures, "\n".join(failures)
        return [result for _, result in answers]

    def close(self) -> None:
        """Ends the ranks."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(20)
            if process.is_alive():
                process.kill()
                process.join()
        self._scratch.cleanup()

    def __enter__(self) -> TorchWorld:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def initialize(rank: int, world_size: int, folder: str, timeout: float) -> None:
    """Joins a world that meets in `folder`. The backend is found without an import of ours."""
    import torch.distributed as dist

    dist.init_process_group(
        "pycollective",
        init_method=f"file://{Path(folder) / 'store'}",
        rank=rank,
        world_size=world_size,
        timeout=timedelta(seconds=timeout),
    )


def _rank(pipe: Connection, rank: int, world_size: int, folder: str, timeout: float) -> None:
    import torch.distributed as dist

    initialize(rank, world_size, folder, timeout)
    while True:
        try:
            scenario, arguments = pipe.recv()
        except EOFError:
            break
        try:
            answer = None, scenario(*arguments)
        except Exception:
            answer = traceback.format_exc(), None
        pipe.send(answer)
    if dist.is_initialized():
        dist.destroy_process_group()
