"""What a torch collective returns, and the thread that completes its futures.

`Work` is torch's work around `pycollective.work.Work`. Whoever waits for it sleeps on the core's
handle; the thread of `Completion` sleeps in the core, without the GIL, until any collective ends,
and then completes the work's future and runs its callbacks.

A future that fails carries the exception's name and text, in a RuntimeError: torch makes that of
every failure that its C++ code is to see, and DDP's reducer waits for futures in C++. `Work.wait`
raises the exception itself.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from pycollective import _core, work
from pycollective.errors import CollectiveError

_log = logging.getLogger(__name__)


class Work(dist.Work):
    """A collective that runs, as torch.distributed wants it."""

    def __init__(
        self,
        handles: Sequence[_core.Handle],
        tensors: list[Any],
        finish: Callable[[], None] | None,
    ) -> None:
        super().__init__()
        self._inner = work.Work(handles, tensors, finish)
        self._lock = threading.Lock()
        self._source: torch.futures.Future[None] | None = None
        self._future: torch.futures.Future[list[Any]] | None = None

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Sleeps until done; a timeout of zero or None leaves that to the collective's deadline.

        Raises
        ------
        CollectiveError
            When the collective has failed, or `timeout` passes first.
        """
        seconds = None if timeout is None else timeout.total_seconds()
        self._inner.wait(seconds if seconds else None)
        return True

    def synchronize(self) -> None:
        """The same as `wait`: there is no stream to synchronize with."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether it has ended, well or not."""
        return self._inner.done()

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self._inner.done() and self._inner.exception() is None

    def exception(self) -> CollectiveError | None:
        """Why it failed; None when it succeeded or still runs."""
        return self._inner.exception()

    def result(self) -> list[Any]:
        """The collective's outputs; waits for them."""
        return self._inner.wait()

    def get_future(self) -> torch.futures.Future[list[Any]]:
        """A future of the outputs, the same one each time."""
        with self._lock:
            if self._future is None:
                source: torch.futures.Future[None] = torch.futures.Future()
                self._future = source.then(lambda _: self._inner.wait())
                if self._inner.done():
                    source.set_result(None)
                else:
                    self._source = source
            return self._future

    def complete(self) -> None:
        """Finishes the work if all its handles are done. Does nothing when called again."""
        with self._lock:
            if not self._inner.done():
                return
            self._inner.finish()
            source, self._source = self._source, None
        if source is not None:
            source.set_result(None)


class Completion:
    """Submits collectives, and completes their works from a thread of its own."""

    def __init__(self, connection: _core.Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._pending: dict[int, Work] = {}
        self._thread = threading.Thread(target=self._run, name="pycollective", daemon=True)
        self._thread.start()

    def submit(
        self,
        begin: Callable[[], Sequence[_core.Handle]],
        tensors: list[Any],
        finish: Callable[[], None] | None = None,
    ) -> Work:
        """Starts what `begin` submits to the connection, as one work with `tensors` as result."""
        with self._lock:
            handles = begin()
            result = Work(handles, tensors, finish)
            for handle in handles:
                self._pending[handle.id] = result
        return result

    def close(self) -> None:
        """Closes the connection, completes what was outstanding, and ends the thread."""
        self._connection.close()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        while (handle := self._connection.next_completed()) is not None:
            with self._lock:
                ended = self._pending.pop(handle.id, None)
            try:
                if ended is not None:
                    ended.complete()
            except Exception:
                _log.exception("a callback of collective %d failed", handle.id)
