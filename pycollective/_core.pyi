"""The C++ core as Python sees it: engine over sockets, simulation, wire format, numeric kernels.

It is not the user's interface (that is `pycollective.Communicator` and the torch backend) and
raises only `CoreError` for what concerns a job; `pycollective.errors` turns the `Error` it carries
into the public exceptions. Nothing here needs torch. The GIL is released around all waiting and
never held by the I/O threads. Main types: `JobConfig`, `Connection`, `Handle`, `Error`,
`Simulation`.
"""

import enum
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer, Self

# NumPy's stubs call an array a Buffer from Python 3.12 on only.
_Buffer: TypeAlias = Buffer | npt.NDArray[Any]

# --- values on the wire ------------------------------------------------------------------------

INA_VERSION: int
INA_UDP_PORT: int
INA_HEADER_BYTES: int
LANE_BYTES: int
MAX_WORLD_SIZE: int
NO_EXPONENT: int

class Opcode(enum.IntEnum):
    """What a frame is (docs/protocol.md, section 2)."""

    CONTRIBUTE = 1
    RESULT = 2
    STATUS = 3
    PROBE = 4
    PROBE_REPLY = 5
    NACK = 6

class ReduceOp(enum.IntEnum):
    """How lanes are combined. Only SUM can be asked of a connection so far; COPY is broadcast's."""

    SUM = 0
    MIN = 1
    MAX = 2
    BAND = 3
    BOR = 4
    BXOR = 5
    COPY = 6

class ElementType(enum.IntEnum):
    """What a chunk's lanes are."""

    NONE = 0
    INT32 = 1
    BLOCK_FLOAT32 = 2
    RAW_WORD = 3
    SPECIAL_CODE = 4

class Flag(enum.IntFlag):
    """Bits of the header field `flags`."""

    RETRANSMIT = 0x01
    OVERFLOW = 0x02
    SPECIAL = 0x04
    ECN_ECHO = 0x08
    DATA = 0x10
    MISMATCH = 0x20

class NackReason(enum.IntEnum):
    """`fingerprint` of a NACK."""

    EPOCH = 1
    SLOT = 2

class FieldDescription:
    """One field of the INA header: its place in bits from the header's first, most significant."""

    @property
    def name(self) -> str: ...
    @property
    def bit_offset(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def signed(self) -> bool: ...

def ina_fields() -> list[FieldDescription]:
    """The INA header's layout as the C++ core has it, in wire order."""

class InaHeader:
    """The INA header as values; the constructor takes any of its fields by keyword."""

    def __init__(
        self,
        *,
        version: int = 1,
        opcode: int = 1,
        reduce_op: int = 0,
        element_type: int = 0,
        job: int = 0,
        rank: int = 0,
        epoch: int = 0,
        slot: int = 0,
        slot_version: int = 0,
        sequence: int = 0,
        chunk: int = 0,
        lane_count: int = 0,
        exponent: int = -128,
        flags: int = 0,
        fingerprint: int = 0,
    ) -> None: ...
    version: int
    opcode: int
    reduce_op: int
    element_type: int
    job: int
    rank: int
    epoch: int
    slot: int
    slot_version: int
    sequence: int
    chunk: int
    lane_count: int
    exponent: int
    flags: int
    fingerprint: int
    def __eq__(self, other: object) -> bool: ...

class ParsedFrame:
    """A well-formed frame, taken apart; lanes are the big-endian bytes behind the header."""

    @property
    def header(self) -> InaHeader: ...
    @property
    def lanes(self) -> bytes: ...
    @property
    def source_mac(self) -> str: ...
    @property
    def destination_mac(self) -> str: ...
    @property
    def source_ipv4(self) -> str: ...
    @property
    def destination_ipv4(self) -> str: ...

def build_frame(
    header: InaHeader,
    *,
    source_mac: str,
    destination_mac: str,
    source_ipv4: str,
    destination_ipv4: str,
    lanes: bytes = b"",
) -> bytes:
    """A whole Ethernet frame, checksums included. Flag DATA must be set if there are lanes only.

    Raises
    ------
    ValueError
        For an address that does not parse, or lanes that contradict the header.
    """

def parse_frame(frame: bytes) -> ParsedFrame:
    """Takes a frame apart, from its Ethernet header on.

    Raises
    ------
    ValueError
        When it is not well formed; the message is the reason's name, such as "udp_checksum".
    """

# --- numeric kernels ---------------------------------------------------------------------------

def headroom_bits(world_size: int) -> int:
    """ceil(log2(world_size)): the bits kept free so that a sum over all ranks cannot overflow."""

def block_exponent(values: npt.NDArray[np.float32]) -> tuple[int, bool]:
    """The block's exponent (-127 for all zero), and whether it holds a NaN or an infinity."""

def quantize(values: npt.NDArray[np.float32], exponent: int, headroom: int) -> bytes:
    """round_half_even(x * 2**(30 - headroom - exponent)) as big-endian 32-bit lanes; NaN, inf as 0.

    Raises
    ------
    ValueError
        When the exponent is below the block's own, or a parameter is out of range.
    """

def dequantize(lanes: bytes, exponent: int, headroom: int) -> npt.NDArray[np.float32]:
    """lane * 2**(exponent - 30 + headroom), rounded once to fp32.

    Raises
    ------
    ValueError
        When the bytes are no whole number of lanes, or a parameter is out of range.
    """

# --- engine ------------------------------------------------------------------------------------

class DataType(enum.IntEnum):
    """Element types of buffers. BYTE is for broadcast only."""

    BYTE = 0
    INT32 = 1
    FLOAT32 = 2

class ErrorCode(enum.IntEnum):
    """What went wrong; see `pycollective.errors` for the exception of each."""

    NONE = 0
    DEADLINE_EXCEEDED = 1
    SWITCH_UNREACHABLE = 2
    MISMATCH = 3
    REDUCTION_OVERFLOW = 4
    EPOCH_CHANGED = 5
    BAD_SLOT = 6
    MTU = 7
    TRANSPORT = 8
    CANCELLED = 9
    UNSUPPORTED = 10

class State(enum.IntEnum):
    """States of an engine (docs/protocol.md, section 4)."""

    CONNECTING = 0
    IDLE = 1
    RUNNING = 2
    FAILED = 3

class Error:
    """An error as a value. Fields that say nothing about this error are None or 0."""

    @property
    def code(self) -> ErrorCode: ...
    @property
    def job(self) -> int: ...
    @property
    def rank(self) -> int:
        """The rank that reports it."""
    @property
    def operation(self) -> str | None:
        """One of all_reduce, broadcast and barrier; None outside of a collective."""
    @property
    def sequence(self) -> int:
        """Number of the collective, from 1; 0 outside of one."""
    @property
    def chunk(self) -> int | None: ...
    @property
    def slot(self) -> int | None: ...
    @property
    def slot_version(self) -> int | None: ...
    @property
    def missing_ranks(self) -> list[int] | None:
        """Ranks the switch has nothing from; None when the switch has not said."""
    @property
    def waited(self) -> float:
        """Seconds since the collective, or the connecting, began."""
    @property
    def silent(self) -> float | None:
        """Seconds since the switch was last heard; None if it never was."""
    @property
    def expected(self) -> int: ...
    @property
    def found(self) -> int: ...
    @property
    def detail(self) -> str: ...
    @property
    def text(self) -> str:
        """One sentence: what was expected, what was found, who, and what to do; also str()."""

class CoreError(Exception):
    """A call could not be carried out. `error` says why."""

    error: Error

class Timers:
    """Timers of docs/protocol.md, section 4, in seconds."""

    def __init__(
        self,
        *,
        rto_initial: float = 0.050,
        rto_min: float = 0.020,
        rto_max: float = 0.500,
        probe_interval: float = 0.100,
        connect_timeout: float = 5.0,
        deadline: float = 30.0,
    ) -> None: ...
    rto_initial: float
    rto_min: float
    rto_max: float
    probe_interval: float
    connect_timeout: float
    deadline: float

class JobConfig:
    """What one rank must know of its job. MAC addresses as "02:50:43:00:01:00", IPv4 as "10.0.1.1".

    Raises
    ------
    ValueError
        For an address that does not parse. Limits of the other fields are checked when the
        configuration is used.
    """

    def __init__(
        self,
        *,
        job: int,
        rank: int,
        world_size: int,
        epoch: int,
        slots: int,
        mac: str,
        switch_mac: str,
        ipv4: str,
        switch_ipv4: str,
        lanes: int = 256,
        timers: Timers = ...,
        first_sequence: int = 1,
    ) -> None: ...
    job: int
    rank: int
    world_size: int
    epoch: int
    slots: int
    lanes: int
    mac: str
    switch_mac: str
    ipv4: str
    switch_ipv4: str
    timers: Timers
    first_sequence: int

class EngineStatistics:
    """What an engine has seen and done since it was made; frames unless said otherwise."""

    frames_sent: int
    bytes_sent: int
    probes_sent: int
    retransmissions: int
    frames_received: int
    bytes_received: int
    results: int
    statuses: int
    probe_replies: int
    nacks: int
    ecn_echoes: int
    malformed: dict[str, int]
    """Dropped frames by reason: "truncated", "udp_checksum", ..."""
    foreign_opcode: int
    foreign_job: int
    foreign_rank: int
    foreign_epoch: int
    duplicates: int
    stale: int
    unexpected: int
    collectives_completed: int
    collectives_failed: int
    smoothed_rtt: float
    """Seconds; 0 until the first sample."""
    rto: float
    """Seconds, of a chunk that is sent now."""

class TransportStatistics:
    """Counts since a connection's socket was opened; counts of frames unless said otherwise."""

    frames_sent: int
    bytes_sent: int
    frames_received: int
    bytes_received: int
    send_calls: int
    receive_calls: int
    send_blocked: int
    """Times the socket's buffer was full."""
    send_dropped: int
    oversized: int
    peer_refused: int
    """Reports that nobody listens at the far end."""
    peer_unreachable: int

class ConnectionStatistics:
    """One consistent copy of a connection's counts."""

    state: State
    engine: EngineStatistics
    transport: TransportStatistics
    wakeups: int
    """Times the I/O thread has slept and been woken."""

class Handle:
    """A collective that runs. The connection keeps its buffers alive until it is done."""

    @property
    def id(self) -> int:
        """Counted from 1 in the order of submission to the connection."""
    def wait(self, timeout: float | None = None) -> bool:
        """Sleeps until done or `timeout` seconds have passed; True when done.

        Signal handlers run meanwhile, and may raise (KeyboardInterrupt).
        """
    def done(self) -> bool: ...
    @property
    def error(self) -> Error | None:
        """Why it failed; None when it succeeded or is not done."""

class Connection:
    """One rank's engine over a UDP socket to a switch port, with an I/O thread.

    Collectives run in the order of submission, which must be the same on all ranks. All methods may
    be called from any thread. A `Connection` closes itself when it is garbage collected and at
    interpreter exit. After fork() it is of no use to the child, where every handle fails at once.
    """

    @staticmethod
    def connect(
        config: JobConfig,
        remote: str,
        local: str | None = None,
        *,
        mtu: int | None = None,
        connect_timeout: float | None = None,
        completion_queue: bool = False,
    ) -> Connection:
        """Opens the socket, starts the thread and waits until the switch has answered.

        Parameters
        ----------
        remote
            "HOST:PORT" of the switch port.
        local
            "HOST:PORT" or "HOST" to bind to; None leaves it to the system.
        mtu
            Bytes an IP packet of the path may have; None asks the system.
        connect_timeout
            Seconds; None takes `config.timers.connect_timeout`.
        completion_queue
            Whether to keep every finished handle for `next_completed`.

        Raises
        ------
        CoreError
            UNSUPPORTED for a bad configuration, MTU when full frames do not fit the path, TRANSPORT
            when an address or socket does not work, SWITCH_UNREACHABLE when nobody answers.
        """
    def all_reduce(
        self,
        input: _Buffer,
        output: _Buffer,
        dtype: DataType,
        op: ReduceOp = ...,
        *,
        deadline: float | None = None,
        signature: int = 0,
    ) -> Handle:
        """Starts an all-reduce of whole C-contiguous buffers, which may be the same.

        `signature` is a hash (32 bits) of what else must be the same on all ranks, such as a shape.

        Raises
        ------
        CoreError
            UNSUPPORTED for buffers that do not fit each other or `dtype`. Errors that the engine
            finds come with the handle.
        """
    def all_reduce_ptr(
        self,
        input_address: int,
        output_address: int,
        count: int,
        dtype: DataType,
        op: ReduceOp = ...,
        keep_alive: object = None,
        *,
        deadline: float | None = None,
        signature: int = 0,
    ) -> Handle:
        """The same for `count` elements at addresses; `keep_alive` is held until it is done."""
    def broadcast(
        self,
        buffer: _Buffer,
        dtype: DataType,
        root: int,
        *,
        deadline: float | None = None,
        signature: int = 0,
    ) -> Handle:
        """Starts a broadcast of the root's buffer into everyone else's. Raises as all_reduce."""
    def broadcast_ptr(
        self,
        address: int,
        count: int,
        dtype: DataType,
        root: int,
        keep_alive: object = None,
        *,
        deadline: float | None = None,
        signature: int = 0,
    ) -> Handle:
        """The same for `count` elements at an address."""
    def barrier(self, *, deadline: float | None = None) -> Handle:
        """Starts a barrier: done when all ranks have started theirs."""
    def next_completed(self, timeout: float | None = None) -> Handle | None:
        """The next finished handle, in order of completion, each exactly once.

        Sleeps without the GIL. None when `timeout` seconds have passed, and when the connection is
        closed and nothing is left.

        Raises
        ------
        RuntimeError
            When the connection was made without `completion_queue`.
        """
    def statistics(self) -> ConnectionStatistics: ...
    def close(self) -> None:
        """Fails outstanding collectives with CANCELLED and ends the thread. May be called again."""
    @property
    def closed(self) -> bool: ...
    @property
    def failure(self) -> Error | None:
        """Why the connection can carry no further collectives, if so."""
    @property
    def config(self) -> JobConfig: ...
    @property
    def local_address(self) -> str: ...
    @property
    def remote_address(self) -> str: ...
    @property
    def receive_buffer(self) -> int:
        """Bytes of the socket's receive buffer. Less than `receive_buffer_wanted` means that
        net.core.rmem_max should be raised: a full window may overflow it, which costs repeats."""
    @property
    def receive_buffer_wanted(self) -> int: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

# --- simulation --------------------------------------------------------------------------------

class Direction(enum.IntEnum):
    """Of a link between a host and its switch port."""

    TO_SWITCH = 0
    TO_HOST = 1

class LinkConfig:
    """What one direction of a link does. Probabilities are per frame; times in seconds.

    Parameters
    ----------
    bits_per_second
        0: frames take no time on the wire.
    queue_frames
        Frames that may wait for the wire, the rest is dropped; 0: any number.
    hold
        Probability that a frame is held back until 1 to `hold_frames` later frames have passed, or
        `hold_limit` seconds.
    corrupt
        Probability that 1 to 15 consecutive bits are damaged.
    """

    def __init__(
        self,
        *,
        delay: float = 5e-6,
        bits_per_second: float = 0.0,
        queue_frames: int = 0,
        loss: float = 0.0,
        duplicate: float = 0.0,
        hold: float = 0.0,
        hold_frames: int = 50,
        hold_limit: float = 0.010,
        corrupt: float = 0.0,
    ) -> None: ...
    delay: float
    bits_per_second: float
    queue_frames: int
    loss: float
    duplicate: float
    hold: float
    hold_frames: int
    hold_limit: float
    corrupt: float

class LinkStatistics:
    """Frames of one direction of a link, by fate."""

    sent: int
    delivered: int
    """Copies included."""
    lost: int
    queue_drops: int
    duplicated: int
    held: int
    corrupted: int

class FaultAction(enum.IntEnum):
    """What a rule does with a frame; HOLD and DUPLICATE let go at the rule's moment."""

    DROP = 0
    HOLD = 1
    DUPLICATE = 2

class FrameMatch:
    """Which frames are meant; None matches anything."""

    def __init__(
        self,
        *,
        host: int | None = None,
        direction: Direction | None = None,
        opcode: Opcode | None = None,
        sequence: int | None = None,
        chunk: int | None = None,
        slot: int | None = None,
        slot_version: int | None = None,
        retransmit: bool | None = None,
    ) -> None: ...

class FaultRule:
    """A stated misfortune.

    The rule acts on `count` (0: all) frames that match, after `skip` of them, until its moment: the
    time `until_time`, or when frame number `until_occurrence` that matches `until_delivered` has
    been processed by its receiver. What it holds is delivered directly after that frame, in the
    order of the rules.
    """

    def __init__(
        self,
        action: FaultAction,
        match: FrameMatch,
        *,
        skip: int = 0,
        count: int = 1,
        until_delivered: FrameMatch | None = None,
        until_occurrence: int = 1,
        until_time: float | None = None,
    ) -> None: ...

class FaultStatistics:
    """What became of a rule."""

    hit: int
    released: int
    moment: float | None
    """Virtual seconds, when it let go."""

class Ended:
    """How one collective of one host ended."""

    host: int
    id: int
    error: Error | None
    at: float
    """Virtual seconds."""

class Simulation:
    """Hosts with the real engine, links and a switch in virtual time; one seed decides everything.

    Parameters
    ----------
    switch
        The `runtime` of a `p4emu.Switch`, or a function (port, frame) -> [(port, frame), ...].
        Host h is on port h + 1.
    hosts
        One configuration for each host; usually the ranks of one job in order.
    """

    def __init__(
        self,
        switch: Any | Callable[[int, bytes], Sequence[tuple[int, bytes]]],
        hosts: Sequence[JobConfig],
        *,
        seed: int,
        to_switch: LinkConfig = ...,
        to_host: LinkConfig = ...,
        switch_delay: float = 1e-6,
    ) -> None: ...
    def all_reduce(
        self,
        host: int,
        input: _Buffer,
        output: _Buffer,
        dtype: DataType,
        op: ReduceOp = ...,
        *,
        deadline: float | None = None,
    ) -> int:
        """Starts an all-reduce at the present virtual time; returns its number at that host.

        Raises
        ------
        CoreError
            UNSUPPORTED, from the engine or about the buffers.
        """
    def broadcast(
        self,
        host: int,
        buffer: _Buffer,
        dtype: DataType,
        root: int,
        *,
        deadline: float | None = None,
    ) -> int: ...
    def barrier(self, host: int, *, deadline: float | None = None) -> int: ...
    def configure_link(self, host: int, direction: Direction, config: LinkConfig) -> None: ...
    def add_fault(self, rule: FaultRule) -> int:
        """Adds a rule; returns its index for `fault`."""
    def silence(self, host: int) -> None:
        """From now on the host neither sends nor receives."""
    def capture(self, host: int, path: str) -> None:
        """Records both directions at the host's switch port into a pcap file."""
    def run(self, limit: float = 60.0) -> bool:
        """Runs until all collectives of all hosts that are not silent have ended.

        False when `limit` virtual seconds pass first.
        """
    def drain(self, limit: float = 60.0) -> bool:
        """Runs until no frame is on its way or held back by a link."""
    @property
    def now(self) -> float: ...
    @property
    def seed(self) -> int: ...
    @property
    def ended(self) -> list[Ended]: ...
    def error(self, host: int, id: int) -> Error | None:
        """How a collective ended, None for well. KeyError when it has not ended."""
    def statistics(self, host: int) -> EngineStatistics: ...
    def link(self, host: int, direction: Direction) -> LinkStatistics: ...
    def fault(self, rule: int) -> FaultStatistics: ...
