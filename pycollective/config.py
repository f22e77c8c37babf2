"""What a rank must know to take part in a job, and the settings that say where to get it.

`Membership` is one rank's place in one job on one switch: it is made by whoever configured the
switch, travels between ranks as JSON, and becomes the engine's `JobConfig`. `Settings` are the
environment variables. Nothing here opens a connection.

    RANK, WORLD_SIZE            this process and how many there are (torchrun sets them)
    MASTER_ADDR, MASTER_PORT    where rank 0 can be met (torchrun sets them)
    PYCOLLECTIVE_CONTROLLER     HOST:PORT of a running switch's P4Runtime server; unset: rank 0
                                starts a switch of its own
    PYCOLLECTIVE_PORTS          with it: the switch port of each rank in order of rank, as
                                SWITCHPORT=udp:HOST:PORT, separated by commas
    PYCOLLECTIVE_DEADLINE       seconds a collective may take (30); in torch, where every group has
                                a timeout, instead of torch's default of half an hour
    PYCOLLECTIVE_P4             the P4 program of the switch that rank 0 starts
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Final

from pycollective.errors import ConfigurationError

if TYPE_CHECKING:
    from pycollective import _core

MAX_WORLD_SIZE: Final = 32
"""Ranks of one job on one switch: the switch keeps a bitmap of 32 bits (docs/protocol.md)."""

DEFAULT_DEADLINE: Final = 30.0
"""Seconds that a collective may take."""


@dataclass(frozen=True)
class Membership:
    """One rank's place in a job on a switch.

    Parameters
    ----------
    job, epoch
        Number and incarnation of the job, from the controller; neither is 0.
    rank, world_size
        At most `MAX_WORLD_SIZE` ranks.
    slots, lanes
        Of the job's slice of the pool; of the switch's program.
    address
        Of the rank's switch port, `udp:HOST:PORT`.
    mac, ipv4, switch_mac, switch_ipv4
        Of the rank and of the switch inside of the frames.
    """

    job: int
    rank: int
    world_size: int
    epoch: int
    slots: int
    lanes: int
    address: str
    mac: str
    ipv4: str
    switch_mac: str
    switch_ipv4: str

    def __post_init__(self) -> None:
        if not 1 <= self.world_size <= MAX_WORLD_SIZE:
            raise ConfigurationError(
                f"a job has 1 to {MAX_WORLD_SIZE} ranks on one switch, job {self.job} has "
                f"{self.world_size}; use fewer ranks"
            )
        if not 0 <= self.rank < self.world_size:
            raise ConfigurationError(
                f"the rank of {self.world_size} ranks is 0 to {self.world_size - 1}, found "
                f"{self.rank} in job {self.job}"
            )
        udp_endpoint(self.address)

    def to_json(self) -> str:
        """The membership as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Membership:
        """Reads what `to_json` wrote.

        Raises
        ------
        ConfigurationError
            When fields are missing or unknown: the ranks run different versions.
        """
        values = json.loads(text)
        expected = {field.name for field in fields(cls)}
        if not isinstance(values, dict) or set(values) != expected:
            raise ConfigurationError(
                f"a membership has the fields {sorted(expected)}, found {text!r}; run the same "
                "version of pycollective on all ranks"
            )
        return cls(**values)

    def job_config(self, deadline: float = DEFAULT_DEADLINE) -> _core.JobConfig:
        """The engine's configuration; `deadline` in seconds."""
        from pycollective import _core

        return _core.JobConfig(
            job=self.job,
            rank=self.rank,
            world_size=self.world_size,
            epoch=self.epoch,
            slots=self.slots,
            lanes=self.lanes,
            mac=self.mac,
            switch_mac=self.switch_mac,
            ipv4=self.ipv4,
            switch_ipv4=self.switch_ipv4,
            timers=_core.Timers(deadline=deadline),
        )


@dataclass(frozen=True)
class Settings:
    """The environment variables of the module's head, read and checked.

    `rank`, `world_size` and `master` are None when they are not set; `ports` is empty then.
    """

    rank: int | None
    world_size: int | None
    master: tuple[str, int] | None
    controller: str | None
    ports: tuple[tuple[int, str], ...]
    deadline: float
    program: str | None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Reads `environment`, usually `os.environ`.

        Raises
        ------
        ConfigurationError
            For a value that does not parse, naming the variable.
        """
        address, port = environment.get("MASTER_ADDR"), _integer(environment, "MASTER_PORT")
        controller = environment.get("PYCOLLECTIVE_CONTROLLER") or None
        if controller is not None:
            host_port(controller, "PYCOLLECTIVE_CONTROLLER")
        return cls(
            rank=_integer(environment, "RANK"),
            world_size=_integer(environment, "WORLD_SIZE"),
            master=(address, port) if address and port is not None else None,
            controller=controller,
            ports=parse_ports(environment.get("PYCOLLECTIVE_PORTS", "")),
            deadline=_seconds(environment, "PYCOLLECTIVE_DEADLINE", DEFAULT_DEADLINE),
            program=environment.get("PYCOLLECTIVE_P4") or None,
        )


def parse_ports(text: str) -> tuple[tuple[int, str], ...]:
    """Reads `1=udp:127.0.0.1:9001,2=udp:127.0.0.1:9002`: the ranks' switch ports in order of rank.

    Raises
    ------
    ConfigurationError
        For an entry that is not SWITCHPORT=udp:HOST:PORT, or a switch port that occurs twice.
    """
    ports: list[tuple[int, str]] = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        number, _, address = entry.partition("=")
        if not number.isdecimal():
            raise ConfigurationError(
                f"an entry of PYCOLLECTIVE_PORTS is SWITCHPORT=udp:HOST:PORT, found {entry!r}"
            )
        udp_endpoint(address)
        if int(number) in {port for port, _ in ports}:
            raise ConfigurationError(
                f"each rank needs a switch port of its own, but PYCOLLECTIVE_PORTS has port "
                f"{number} twice"
            )
        ports.append((int(number), address))
    return tuple(ports)


def udp_endpoint(address: str) -> str:
    """HOST:PORT of `udp:HOST:PORT`.

    Raises
    ------
    ConfigurationError
        When it is something else.
    """
    scheme, _, rest = address.partition(":")
    if scheme != "udp":
        raise ConfigurationError(
            f"a switch port's address is udp:HOST:PORT, found {address!r}; other kinds of port "
            "cannot be attached to"
        )
    host_port(rest, "a switch port's address")
    return rest


def host_port(text: str, what: str) -> tuple[str, int]:
    """Splits HOST:PORT; `what` names the source in the message.

    Raises
    ------
    ConfigurationError
        When it is something else.
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigurationError(f"{what} is HOST:PORT with a port of 1 to 65535, found {text!r}")
    return host, int(port)


def _integer(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name)
    if not text:
        return None
    if not text.isdecimal():
        raise ConfigurationError(f"{name} is a whole number of at least 0, found {text!r}")
    return int(text)


def _seconds(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value > 0 or math.isinf(value):
        raise ConfigurationError(f"{name} is a number of seconds above 0, found {text!r}")
    return value
