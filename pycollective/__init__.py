"""In-network collectives: gradients are added up inside a programmable switch.

`Communicator` works on NumPy arrays; importing torch registers the torch.distributed backend
"pycollective". What is named here is imported when it is first used: torch imports this package
when it is imported itself, and must not pay for, or fail with, the C++ core.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pycollective.communicator import Communicator, ReduceOp, Work
    from pycollective.config import Membership
    from pycollective.errors import (
        CancelledError,
        CollectiveError,
        ConfigurationError,
        DeadlineExceededError,
        EpochChangedError,
        FabricError,
        MismatchError,
        MtuError,
        PycollectiveError,
        ReductionOverflowError,
        RendezvousError,
        SlotRefusedError,
        SwitchUnreachableError,
        TransportError,
        UnsupportedError,
    )

__all__ = [
    "CancelledError",
    "CollectiveError",
    "Communicator",
    "ConfigurationError",
    "DeadlineExceededError",
    "EpochChangedError",
    "FabricError",
    "Membership",
    "MismatchError",
    "MtuError",
    "PycollectiveError",
    "ReduceOp",
    "ReductionOverflowError",
    "RendezvousError",
    "SlotRefusedError",
    "SwitchUnreachableError",
    "TransportError",
    "UnsupportedError",
    "Work",
]

_HOME = {
    "Communicator": "pycollective.communicator",
    "ReduceOp": "pycollective.communicator",
    "Work": "pycollective.communicator",
    "Membership": "pycollective.config",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME.get(name, "pycollective.errors")), name)
