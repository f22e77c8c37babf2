"""Starts the ranks of a training with torchrun, and ends them whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from pycollective.demo.events import Event, decode
from pycollective.errors import PycollectiveError

_END_GRACE = 10.0
"""Seconds for torchrun to end its ranks before it is killed."""


class TrainingFailedError(PycollectiveError, RuntimeError):
    """A rank failed; the message has what the ranks said last."""


def train(
    backend: str,
    ranks: int,
    epochs: int,
    parameter_file: Path,
    environment: Mapping[str, str],
) -> Iterator[Event]:
    """Trains, and yields the events as they come.

    Parameters
    ----------
    parameter_file
        Where rank 0 writes the final parameters; in a folder that the caller removes afterwards.
    environment
        Variables of the ranks besides the caller's own.

    Raises
    ------
    TrainingFailedError
        When torchrun ends with an error.
    """
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", str(ranks), "-m", "pycollective.demo.train"]
    command += [backend, str(epochs), str(parameter_file)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            # torchrun leaves its folders for logs behind; they are to go where the file goes.
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "TMPDIR": str(parameter_file.parent),
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # a Ctrl-C ends the ranks through us, in order
        )
        try:
            assert process.stdout is not None
            for line in process.stdout:
                event = decode(line)
                if event is not None:
                    yield event
            status = process.wait()
            if status != 0:
                log.seek(0)
                said = log.read().decode(errors="replace")
                raise TrainingFailedError(
                    f"the training over {backend} ended with status {status}; the ranks said:\n"
                    f"{_first_failure(said)}"
                )
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_END_GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _first_failure(said: str) -> str:
    """The lines of the ranks' own tracebacks, without torchrun's account of them."""
    own = [line for line in said.splitlines() if line.startswith("[rank")]
    return "\n".join(own[-30:]) if own else said[-4000:]
