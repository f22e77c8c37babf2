"""What a benchmark measures: `Plan`, and one measured line of it, `Row`. No I/O."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final, Literal, get_args

import numpy as np

from pycollective.errors import ConfigurationError, UnsupportedError

Collective = Literal["all_reduce", "broadcast", "all_gather"]
COLLECTIVES: Final[tuple[Collective, ...]] = get_args(Collective)

DTYPES: Final = {"float": np.dtype(np.float32), "int32": np.dtype(np.int32)}
"""nccl-tests' names of the element types that the network sums."""

_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Plan:
    """A benchmark.

    Parameters
    ----------
    sizes
        Bytes; of the output of an all_gather.
    iterations, warmup
        Timed and untimed calls for each size.
    checks
        Calls for each size whose whole result is compared with the exact one, besides.
    compare
        "gloo", or None for no comparison.
    """

    collective: Collective
    sizes: tuple[int, ...]
    iterations: int
    warmup: int
    checks: int
    dtype: str
    op: str
    compare: str | None

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise UnsupportedError(
                f"the network sums {' and '.join(DTYPES)} (-d), found {self.dtype!r}"
            )
        if self.op != "sum":
            raise UnsupportedError(f"the network supports sum (-o), found {self.op!r}")
        if self.compare not in (None, "gloo"):
            raise UnsupportedError(f"a comparison is with gloo, found {self.compare!r}")
        if self.iterations < 1 or self.warmup < 0 or self.checks < 0:
            raise ConfigurationError(
                "at least one iteration (-n) and no negative warmup (-w) or checks (-c), found "
                f"{self.iterations}, {self.warmup} and {self.checks}"
            )

    def count(self, size: int, world_size: int) -> int:
        """Elements that each rank passes in for a size."""
        elements = size // DTYPES[self.dtype].itemsize
        return elements // world_size if self.collective == "all_gather" else elements

    def to_json(self) -> str:
        """The plan as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Reads what `to_json` wrote."""
        values = json.loads(text)
        values["sizes"] = tuple(values["sizes"])
        return cls(**values)


@dataclass(frozen=True)
class Row:
    """What was measured for one size.

    Times are microseconds of one call, the mean over ranks and iterations; bandwidths are 10^9
    bytes a second. `wrong` counts elements of all ranks and checks. `other_time` is the
    comparison's time.
    """

    size: int
    count: int
    dtype: str
    op: str
    time: float
    algbw: float
    busbw: float
    wrong: int
    other_time: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many times faster than the comparison; None without one."""
        return None if self.other_time is None else self.other_time / self.time


def collective(name: str) -> Collective:
    """The collective of that name.

    Raises
    ------
    UnsupportedError
        When there is none.
    """
    for known in COLLECTIVES:
        if name == known:
            return known
    raise UnsupportedError(f"the network has {', '.join(COLLECTIVES)}, found {name!r}")


def bus_factor(collective: Collective, world_size: int) -> float:
    """busbw over algbw: what each rank's link of a ring carries for a byte of the result."""
    if collective == "all_reduce":
        return 2 * (world_size - 1) / world_size
    if collective == "all_gather":
        return (world_size - 1) / world_size
    return 1.0


def parse_size(text: str) -> int:
    """Bytes of `4`, `64K`, `16M` or `1G`, in powers of 1024 as in nccl-tests.

    Raises
    ------
    ConfigurationError
        When it is something else.
    """
    unit = text[-1:].upper()
    number = text[:-1] if unit in _UNITS else text
    if not number.isdecimal():
        raise ConfigurationError(f"a size is a number of bytes such as 4, 64K or 16M, found {text}")
    return int(number) * _UNITS.get(unit, 1)


def sizes(begin: int, end: int, factor: int | None, increment: int | None) -> tuple[int, ...]:
    """Sizes from `begin` to `end`, multiplied by `factor` or else increased by `increment`.

    Raises
    ------
    ConfigurationError
        When that would never reach the end.
    """
    if begin < 1 or end < begin:
        raise ConfigurationError(
            f"sizes go from at least 1 byte (-b) up to -e, found {begin} to {end}"
        )
    if factor is not None and factor < 2:
        raise ConfigurationError(f"the factor (-f) is at least 2, found {factor}")
    if increment is not None and increment < 1:
        raise ConfigurationError(f"the increment (-i) is at least 1 byte, found {increment}")
    found = [begin]
    while True:
        size = found[-1] * factor if factor is not None else found[-1] + (increment or 1 << 20)
        if size > end:
            return tuple(found)
        found.append(size)
