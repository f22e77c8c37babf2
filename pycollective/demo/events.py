"""What rank 0 of a training tells the demo: one JSON line for each event on standard output."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Begun:
    """All ranks are there and the model is the same on all of them."""

    backend: str
    parameters: int
    job: int | None


@dataclass(frozen=True)
class Epoch:
    """The end of one pass over the training data.

    `loss` is the mean over all ranks, `accuracy` the share of the test set, `algbw` 10^9 bytes a
    second of an all-reduce as large as the gradients. `packets` and `retransmissions` count rank
    0's frames, both directions, since the beginning; None over gloo.
    """

    number: int
    loss: float
    accuracy: float
    seconds: float
    algbw: float
    packets: int | None
    retransmissions: int | None


@dataclass(frozen=True)
class Ended:
    """The training is over; seconds of all epochs together, measurements aside."""

    seconds: float


Event: TypeAlias = Begun | Epoch | Ended

_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (Begun, Epoch, Ended)}


def encode(event: Event) -> str:
    """One line of JSON."""
    return json.dumps({"event": type(event).__name__, **asdict(event)})


def decode(line: str) -> Event | None:
    """The event of a line; None for anything else that a rank may have printed."""
    try:
        values = json.loads(line)
    except json.JSONDecodeError:
        return None
    if not isinstance(values, dict) or values.get("event") not in _KINDS:
        return None
    event: Event = _KINDS[values.pop("event")](**values)
    return event
