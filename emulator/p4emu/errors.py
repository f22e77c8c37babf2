"""What a switch can fail with, with gRPC's canonical codes, because P4Runtime reports them so."""

from __future__ import annotations

_NAMES = {
    3: "INVALID_ARGUMENT",
    5: "NOT_FOUND",
    6: "ALREADY_EXISTS",
    7: "PERMISSION_DENIED",
    8: "RESOURCE_EXHAUSTED",
    9: "FAILED_PRECONDITION",
    11: "OUT_OF_RANGE",
    12: "UNIMPLEMENTED",
    14: "UNAVAILABLE",
}


class SwitchError(Exception):
    """A call of the control plane or of port management that the switch refuses.

    Attributes
    ----------
    code
        The canonical code's name, such as "NOT_FOUND".
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    @classmethod
    def from_code(cls, number: int, message: str) -> SwitchError:
        """From the number of a canonical code, as the run time reports it."""
        return cls(_NAMES[number], message)
