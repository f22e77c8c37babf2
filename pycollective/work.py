"""A collective that runs: what the asynchronous methods of a communicator return.

A `Work` is one or more handles of the core (an all-gather is several broadcasts) and what is left
to do in Python when they are done, such as copying into an array that is not contiguous. That is
done once, by whoever notices first: the caller who waits, or a completion thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from pycollective.errors import CollectiveError, DeadlineExceededError, from_core

if TYPE_CHECKING:
    from pycollective import _core

T = TypeVar("T")


class Work(Generic[T]):
    """A collective that runs, with the result that `wait` returns.

    Buffers of the collective must not be changed before it is done, nor, for arrays that are not
    contiguous, read before `wait` has returned.
    """

    def __init__(
        self,
        handles: Sequence[_core.Handle],
        result: T,
        finish: Callable[[], None] | None = None,
    ) -> None:
        self._handles = handles
        self._result = result
        self._finish = finish
        self._lock = threading.Lock()
        self._finished = False
        self._error: CollectiveError | None = None

    def done(self) -> bool:
        """Whether `wait` would return, or raise, at once."""
        return self._finished or all(handle.done() for handle in self._handles)

    def wait(self, timeout: float | None = None) -> T:
        """Sleeps until the collective is done, and returns its result.

        Parameters
        ----------
        timeout
            Seconds to wait; None: until done, which the collective's own deadline bounds.

        Raises
        ------
        DeadlineExceededError
            When `timeout` passes first. The collective goes on, and can be waited for again.
        CollectiveError
            When the collective has failed.
        """
        if not self._finished:
            self._sleep(timeout)
            self.finish()
        if self._error is not None:
            raise self._error
        return self._result

    def exception(self) -> CollectiveError | None:
        """Why it failed; None when it succeeded or is not done."""
        if not self._finished and self.done():
            self.finish()
        return self._error

    def _sleep(self, timeout: float | None) -> None:
        begin = time.monotonic()
        for handle in self._handles:
            left = None if timeout is None else max(begin + timeout - time.monotonic(), 0.0)
            if not handle.wait(left):
                assert timeout is not None
                error = DeadlineExceededError(
                    f"waited {timeout:.3f} s for collective {handle.id} of this communicator, "
                    "which still runs; wait longer, or let its deadline end it"
                )
                error.waited = timeout
                raise error

    def finish(self) -> None:
        """Does what is left when all handles are done. Does nothing when called again."""
        with self._lock:
            if self._finished:
                return
            failure = next((handle.error for handle in self._handles if handle.error), None)
            if failure is not None:
                self._error = from_core(failure)
            elif self._finish is not None:
                self._finish()
            self._finish = None
            self._handles = ()
            self._finished = True
