"""`Switch`: a compiled program with state and ports, addressed by names.

The names are the program's: tables "SwitchIngress.l2", actions "SwitchIngress.forward", registers
and counters alike. This module turns names into the run time's numbers; what happens to packets
happens in `p4emu._runtime` and in the program's machine code.

Main types: `Switch`, `CounterValue`, `Port`; entries are in `p4emu.entries`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Literal, TypeVar

from p4emu import _runtime
from p4emu.entries import (
    Match,
    TableEntry,
    action_bytes,
    check_width,
    entry_bytes,
    entry_from_bytes,
    key_bytes,
    params_from_bytes,
    some,
    table_image,
)
from p4emu.errors import SwitchError
from p4emu.jit import abi
from p4emu.jit.image import ProgramImage, TableSpec

if TYPE_CHECKING:
    from p4emu.program import Program

_T = TypeVar("_T")

Direction = Literal["rx", "tx"]

_LONGEST_HOLD = 3600.0
"""Seconds a frame may be held back."""


@dataclass(frozen=True, slots=True)
class CounterValue:
    """Packets and bytes counted; a counter that counts only one leaves the other 0."""

    packets: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Port:
    """A port as it is now: the address it is bound to, and its statistics by name."""

    address: str
    statistics: Mapping[str, int]


class Switch:
    """A software switch running one program.

    Parameters
    ----------
    program
        From `p4emu.compile`; None for a switch that gets its program later, by `load`.

    Notes
    -----
    All methods may be called from any thread. State is the switch's own: two switches may run the
    same program, and loading a program begins with empty tables, registers and counters.

    Raises
    ------
    SwitchError
        From every method, for names, values and states that do not fit; `code` says how.
    """

    def __init__(self, program: Program | None = None) -> None:
        self._runtime = _runtime.Switch()
        self._program: Program | None = None
        self._tables: dict[str, tuple[int, TableSpec]] = {}
        self._counters: dict[str, tuple[int, int]] = {}
        self._registers: dict[str, tuple[int, int, int, int, int]] = {}
        if program is not None:
            self.load(program)

    # --- life ----------------------------------------------------------------------------------

    @property
    def program(self) -> Program | None:
        """The program that runs."""
        return self._program

    @property
    def runtime(self) -> _runtime.Switch:
        """The C++ object, for the simulation, which drives it directly."""
        return self._runtime

    def load(self, program: Program) -> None:
        """Run another program. Ports stay; tables, registers, counters and groups begin anew.

        Raises
        ------
        SwitchError
            RESOURCE_EXHAUSTED: its registers and counters need more memory than the machine has.
            The program before goes on. FAILED_PRECONDITION: the installed extension module is not
            of this source.
        """
        if _runtime.ABI_VERSION != abi.VERSION:
            raise SwitchError(
                "FAILED_PRECONDITION",
                f"p4emu compiles for version {abi.VERSION} of the run time, and version "
                f"{_runtime.ABI_VERSION} is installed; install the package again",
            )
        image = program.compiled.image
        _check_memory(image)
        tables = {spec.name: (i, spec) for i, spec in enumerate(image.tables)}
        spec = {
            "ingress": program.compiled.ingress,
            "egress": program.compiled.egress,
            "vars_size": image.vars_size,
            "max_header_bytes": image.max_header_bytes,
            "standard": dict(image.standard),
            "tables": [table_image(table) for table in image.tables],
            "registers": [(group.row_bytes, group.length) for group in image.registers],
            "counters": [counter.size for counter in image.counters],
        }
        try:
            self._runtime.load(spec, program.compiled)
        except MemoryError:
            raise SwitchError(
                "RESOURCE_EXHAUSTED", f"there is not enough memory left for {_state_text(image)}"
            ) from None
        self._program = program
        self._tables = tables
        self._counters = {
            counter.name: (i, counter.size)
            for i, counter in enumerate(image.counters)
            if counter.table is None
        }
        self._registers = {
            member.name: (number, member.offset, member.storage, group.length, member.width)
            for number, group in enumerate(image.registers)
            for member in group.members
        }

    def start(self) -> None:
        """Start the thread that moves frames between ports. It sleeps while nothing comes in."""
        self._runtime.start()

    def stop(self) -> None:
        """Stop the thread and complete captures. Starting again is possible."""
        self._runtime.stop()

    def close(self) -> None:
        """Stop the thread and let go of the program and its state."""
        self._runtime.stop()
        self._runtime.load(None, None)
        self._program = None
        self._tables, self._counters, self._registers = {}, {}, {}

    def __enter__(self) -> Switch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- packets -------------------------------------------------------------------------------

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Run one frame through the program as if it had come in at `port`.

        Returns
        -------
        list of (port, frame)
            Every frame that leaves, from its Ethernet header on, in the order they leave.
        """
        return self._runtime.process(port, frame)

    def measure(self, frames: Sequence[tuple[int, bytes]], rounds: int = 1) -> float:
        """Run (port, frame) pairs in order, `rounds` times, and throw away what leaves.

        Returns
        -------
        float
            Seconds. For benchmarks: no Python and no copies between packets.
        """
        return self._runtime.measure(list(frames), rounds)

    def add_port(
        self, number: int, spec: str, *, pcap: str | None = None, pcap_limit: int = 0
    ) -> str:
        """Open a port.

        Parameters
        ----------
        number
            0 to 510.
        spec
            `udp:HOST:PORT`, port 0 for any that is free: frames travel in UDP datagrams.
        pcap
            A file that gets what comes in and goes out at the port.
        pcap_limit
            Frames after which the capture ends; 0 for no limit.

        Returns
        -------
        str
            The spec with the address it is bound to, `udp:127.0.0.1:40001`.
        """
        host, udp_port = parse_port_spec(spec)
        if not 0 <= number <= 0xFFFF:
            raise SwitchError("INVALID_ARGUMENT", f"port numbers go from 0 to 510; got {number}")
        return f"udp:{self._runtime.add_udp_port(number, host, udp_port, pcap or '', pcap_limit)}"

    def impair(
        self,
        port: int,
        direction: Direction,
        *,
        loss: float = 0.0,
        duplicate: float = 0.0,
        hold: float = 0.0,
        hold_frames: int = 50,
        hold_limit: float = 0.002,
        corrupt: float = 0.0,
        seed: int = 0,
    ) -> None:
        """Make one direction of a port's cable bad; without arguments, make it good again.

        Parameters
        ----------
        direction
            "rx": frames into the switch; "tx": frames out of it.
        loss, duplicate, hold, corrupt
            Probabilities for each frame, independent of each other. A frame that is held comes out
            behind 1 to `hold_frames` later ones, or after `hold_limit` seconds. Corruption changes
            up to 15 consecutive bits.
        seed
            What happens to the n-th frame from now on depends on nothing else.

        Notes
        -----
        Captures show what the switch sees: what came in through the cable, what it sends before it
        is in the cable. `process` uses no cable. `ports` counts what happened.

        Raises
        ------
        SwitchError
            NOT_FOUND: there is no such port. INVALID_ARGUMENT: no probability, or no limit.
        """
        if not 0 <= hold_frames < 2**32 or not 0 <= hold_limit <= _LONGEST_HOLD:
            raise SwitchError(
                "INVALID_ARGUMENT",
                f"frames are held back for 0 to {2**32 - 1} frames and 0 to {_LONGEST_HOLD} s; "
                f"got {hold_frames} and {hold_limit}",
            )
        if not 0 <= port <= 0xFFFF:
            raise SwitchError("NOT_FOUND", f"there is no port {port}")
        self._runtime.impair(
            port,
            direction,
            loss,
            duplicate,
            hold,
            hold_frames,
            hold_limit,
            corrupt,
            seed & 0xFFFFFFFFFFFFFFFF,
        )

    def ports(self) -> dict[int, Port]:
        """Every port with its address and statistics."""
        return {
            number: Port(f"udp:{address}", statistics)
            for number, (address, statistics) in self._runtime.ports().items()
        }

    def statistics(self) -> dict[str, int]:
        """Frames processed, sent and dropped by the program that runs, and why others went nowhere.

        `dropped` counts frames of which no copy left, whatever the reason; `oversized` and
        `unknown_group` (multicast to a group that is not set) are reasons the program did not ask
        for. `no_program` and `no_such_port` count since the switch exists.
        """
        return self._runtime.counts()

    # --- tables --------------------------------------------------------------------------------

    def insert(self, table: str, entry: TableEntry) -> None:
        """Add an entry: ALREADY_EXISTS, RESOURCE_EXHAUSTED when the table is full."""
        number, spec = self._table(table)
        self._runtime.table_insert(number, entry_bytes(spec, entry))

    def modify(self, table: str, entry: TableEntry) -> None:
        """Give the entry with these keys and priority another action: NOT_FOUND."""
        number, spec = self._table(table)
        self._runtime.table_modify(number, entry_bytes(spec, entry))

    def delete(self, table: str, keys: Sequence[Match], priority: int = 0) -> None:
        """Remove the entry with these keys and priority: NOT_FOUND."""
        number, spec = self._table(table)
        self._runtime.table_erase(number, key_bytes(spec, keys, priority))

    def entries(self, table: str) -> list[TableEntry]:
        """All entries of a table, in no particular order."""
        number, spec = self._table(table)
        return [entry_from_bytes(spec, raw) for raw in self._runtime.table_entries(number)]

    def set_default(
        self, table: str, action: str, params: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """Set what the table does on a miss: PERMISSION_DENIED when the program has it const."""
        number, spec = self._table(table)
        self._runtime.table_set_default(number, action_bytes(spec, action, params))

    def reset_default(self, table: str) -> None:
        """Back to the program's own default action."""
        self._runtime.table_reset_default(self._table(table)[0])

    def default(self, table: str) -> tuple[str, dict[str, int]]:
        """The default action's name and parameters."""
        number, spec = self._table(table)
        action, data = self._runtime.table_default(number)
        return spec.actions[action].name, params_from_bytes(spec.actions[action], data)

    def read_direct_counter(
        self, table: str, keys: Sequence[Match], priority: int = 0
    ) -> CounterValue:
        """Counts of an entry of a table with a direct counter."""
        number, spec = self._table(table)
        return CounterValue(*self._runtime.table_counts(number, key_bytes(spec, keys, priority)))

    def write_direct_counter(
        self, table: str, keys: Sequence[Match], priority: int, value: CounterValue
    ) -> None:
        """Set the counts of an entry of a table with a direct counter."""
        number, spec = self._table(table)
        self._runtime.table_set_counts(
            number, key_bytes(spec, keys, priority), value.packets, value.bytes
        )

    # --- registers, counters, groups -------------------------------------------------------------

    def register_size(self, name: str) -> int:
        """Elements of a register array."""
        return self._register(name)[3]

    def read_register(self, name: str, index: int) -> int:
        """One element, unsigned: OUT_OF_RANGE."""
        group, element, storage, _, _ = self._register(name)
        self._check_index(index)
        return int.from_bytes(
            self._runtime.read_register(group, element, storage, index, 1), "little"
        )

    def read_registers(self, name: str) -> list[int]:
        """All elements of a register array, unsigned."""
        group, element, storage, size, _ = self._register(name)
        raw = self._runtime.read_register(group, element, storage, 0, size)
        return [
            int.from_bytes(raw[at : at + storage], "little") for at in range(0, len(raw), storage)
        ]

    def write_register(self, name: str, index: int, value: int) -> None:
        """Set one element; `value` is unsigned and fits its width."""
        group, element, storage, _, width = self._register(name)
        self._check_index(index)
        check_width(f"register {name}", value, width)
        self._runtime.write_register(group, element, index, value.to_bytes(storage, "little"))

    def counter_size(self, name: str) -> int:
        """Cells of an indirect counter."""
        return self._counter(name)[1]

    def read_counter(self, name: str, index: int) -> CounterValue:
        """One cell of an indirect counter: OUT_OF_RANGE."""
        self._check_index(index)
        return CounterValue(*self._runtime.read_counter(self._counter(name)[0], index))

    def write_counter(self, name: str, index: int, value: CounterValue) -> None:
        """Set one cell of an indirect counter."""
        self._check_index(index)
        self._runtime.write_counter(self._counter(name)[0], index, value.packets, value.bytes)

    def set_multicast_group(self, group: int, replicas: Iterable[tuple[int, int]]) -> None:
        """Create or replace a group: the (port, instance) of each copy."""
        replicas = list(replicas)
        for what, number, limit in (
            ("multicast group", group, 0xFFFF),
            *(("port", port, 510) for port, _ in replicas),
            *(("instance", instance, 0xFFFF) for _, instance in replicas),
        ):
            if not 0 <= number <= limit:
                raise SwitchError("INVALID_ARGUMENT", f"{what} {number} is not in 0..{limit}")
        self._runtime.set_group(group, replicas)

    def delete_multicast_group(self, group: int) -> None:
        """Remove a group: NOT_FOUND."""
        if not 0 <= group <= 0xFFFF:
            raise SwitchError("NOT_FOUND", f"no multicast group {group}")
        self._runtime.delete_group(group)

    def multicast_groups(self) -> dict[int, list[tuple[int, int]]]:
        """Every group with its (port, instance) pairs."""
        return self._runtime.groups()

    # --- names -----------------------------------------------------------------------------------

    def _table(self, name: str) -> tuple[int, TableSpec]:
        return self._named("table", self._tables, name)

    def _counter(self, name: str) -> tuple[int, int]:
        return self._named("counter", self._counters, name)

    def _register(self, name: str) -> tuple[int, int, int, int, int]:
        return self._named("register", self._registers, name)

    def _named(self, kind: str, known: Mapping[str, _T], name: str) -> _T:
        if self._program is None:
            raise SwitchError("FAILED_PRECONDITION", "the switch has no program; load one first")
        if name not in known:
            raise SwitchError("NOT_FOUND", f"no {kind} {name!r}; the program has {some(known)}")
        return known[name]

    @staticmethod
    def _check_index(index: int) -> None:
        if not 0 <= index < 2**64:
            raise SwitchError("OUT_OF_RANGE", f"index {index} is out of range")


def _state_bytes(image: ProgramImage) -> int:
    """Bytes of a program's registers and counters; entries come later, as they are inserted."""
    registers = sum(group.row_bytes * (group.length + 1) for group in image.registers)
    return registers + sum(16 * counter.size for counter in image.counters)


def _state_text(image: ProgramImage) -> str:
    return f"the program's registers and counters ({_state_bytes(image) / 2**30:.1f} GiB)"


def _check_memory(image: ProgramImage) -> None:
    # The kernel promises more than there is, and ends the process when it has to keep its word.
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if _state_bytes(image) > memory:
        raise SwitchError(
            "RESOURCE_EXHAUSTED",
            f"this machine has {memory / 2**30:.1f} GiB of memory, less than "
            f"{_state_text(image)} need",
        )


def parse_port_spec(spec: str) -> tuple[str, int]:
    """Host and UDP port of `udp:HOST:PORT`.

    Raises
    ------
    SwitchError
        INVALID_ARGUMENT: it is not of that form.
    """
    kind, _, address = spec.partition(":")
    host, _, port = address.rpartition(":")
    if kind == "udp" and host and port.isdecimal() and int(port) <= 0xFFFF:
        return host, int(port)
    raise SwitchError(
        "INVALID_ARGUMENT",
        f"a port is given as udp:HOST:PORT, such as udp:127.0.0.1:0; got {spec!r}",
    )
