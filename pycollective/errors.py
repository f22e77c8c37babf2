"""What can go wrong, as exceptions: one hierarchy under `PycollectiveError`.

Every message says what was expected, what was found, who found it and what to do. Errors that a
running job meets begin as values in the C++ core (`_core.Error`) and become exceptions here, in
`from_core`; the exception keeps the value's fields. This module imports neither the core nor torch,
so that it can be used where they are missing. Main types: `PycollectiveError`, `CollectiveError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pycollective import _core

__all__ = [
    "CancelledError",
    "CollectiveError",
    "ConfigurationError",
    "DeadlineExceededError",
    "EpochChangedError",
    "FabricError",
    "MismatchError",
    "MtuError",
    "PycollectiveError",
    "ReductionOverflowError",
    "RendezvousError",
    "SlotRefusedError",
    "SwitchUnreachableError",
    "TransportError",
    "UnsupportedError",
    "from_core",
]


class PycollectiveError(Exception):
    """Base of everything that pycollective raises on purpose."""


class ConfigurationError(PycollectiveError, ValueError):
    """A setting or an argument that cannot be right, found before anything is sent."""


class FabricError(PycollectiveError, RuntimeError):
    """The switch could not be started, configured or found."""


class RendezvousError(PycollectiveError, ConnectionError):
    """The ranks of a job did not find each other."""


class CollectiveError(PycollectiveError):
    """A failure that the engine of one rank reports.

    Attributes
    ----------
    job, rank : int or None
        Who reports it.
    operation : str or None
        all_reduce, broadcast or barrier; None outside of a collective.
    sequence : int
        Number of the collective, from 1; 0 outside of one.
    missing_ranks : tuple of int or None
        Ranks the switch has nothing from; None when the switch has not said.
    waited : float
        Seconds since the collective, or the connecting, began.
    """

    job: int | None = None
    rank: int | None = None
    operation: str | None = None
    sequence: int = 0
    missing_ranks: tuple[int, ...] | None = None
    waited: float = 0.0


class DeadlineExceededError(CollectiveError, TimeoutError):
    """A collective did not finish in time; the message names the missing ranks or the silence."""


class SwitchUnreachableError(CollectiveError, ConnectionError):
    """No answer from the switch."""


class MismatchError(CollectiveError, ValueError):
    """The ranks called different collectives, sizes, types, ops or roots."""


class ReductionOverflowError(CollectiveError, OverflowError):
    """An integer sum left the signed 32-bit range; raised on every rank, nothing wraps."""


class EpochChangedError(CollectiveError, ConnectionError):
    """The job was started anew on the switch; this member is from before."""


class SlotRefusedError(CollectiveError, ValueError):
    """The switch gives this job fewer slots than this rank was configured for."""


class MtuError(CollectiveError, OSError):
    """Full frames do not fit the path."""


class TransportError(CollectiveError, OSError):
    """The operating system refuses an address or a socket."""


class CancelledError(CollectiveError):
    """The communicator was closed while the collective ran."""


class UnsupportedError(CollectiveError, ValueError):
    """A dtype, reduce op, device or collective that the network does not carry (yet)."""


_EXCEPTIONS: Final[dict[str, type[CollectiveError]]] = {
    "DEADLINE_EXCEEDED": DeadlineExceededError,
    "SWITCH_UNREACHABLE": SwitchUnreachableError,
    "MISMATCH": MismatchError,
    "REDUCTION_OVERFLOW": ReductionOverflowError,
    "EPOCH_CHANGED": EpochChangedError,
    "BAD_SLOT": SlotRefusedError,
    "MTU": MtuError,
    "TRANSPORT": TransportError,
    "CANCELLED": CancelledError,
    "UNSUPPORTED": UnsupportedError,
}


def from_core(error: _core.Error) -> CollectiveError:
    """The exception for an error value of the C++ core, ready to be raised.

    Parameters
    ----------
    error
        Any error but one with code NONE.

    Raises
    ------
    ValueError
        For code NONE or one this module does not know: a defect, not a condition of the network.
    """
    kind = _EXCEPTIONS.get(error.code.name)
    if kind is None:
        raise ValueError(f"no exception stands for the core's error code {error.code.name}")
    exception = kind(error.text)
    exception.job = error.job
    exception.rank = error.rank
    exception.operation = error.operation
    exception.sequence = error.sequence
    missing = error.missing_ranks
    exception.missing_ranks = None if missing is None else tuple(missing)
    exception.waited = error.waited
    return exception
