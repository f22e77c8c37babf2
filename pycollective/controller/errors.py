"""What can go wrong between the controller and a switch."""

from __future__ import annotations

from pycollective.errors import FabricError


class ControllerError(FabricError):
    """The switch's P4Runtime server cannot be reached, or the connection broke."""


class NotPrimaryError(ControllerError):
    """Another controller is the switch's primary, or this one is not any more."""


class SwitchRefusedError(ControllerError):
    """The switch refused an update; the message has its reason.

    Attributes
    ----------
    code
        The canonical gRPC code's name, such as "ALREADY_EXISTS".
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class ProgramMismatchError(ControllerError):
    """The switch's program lacks something that this controller needs."""


class PoolExhaustedError(ControllerError):
    """The slot pool, the job numbers or the ranks of a job do not suffice.

    Attributes
    ----------
    asked, free
        How many of what the message names.
    """

    def __init__(self, message: str, *, asked: int, free: int) -> None:
        super().__init__(message)
        self.asked = asked
        self.free = free
