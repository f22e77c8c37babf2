"""The intermediate representation between the P4 front end and LLVM.

An IR program is what is left of a P4 program when everything the compiler can decide has been
decided: packages, parsers and controls are instantiated and inlined, generics are specialised,
types are flattened to scalars, constants are folded, and copy-in/copy-out is explicit assignments.
What remains is six blocks of structured statements over named scalar variables, and the stateful
objects (tables, registers, counters) they touch.

The IR knows nothing of LLVM and nothing of source syntax except `Source` positions for messages.
Every node is immutable except the containers that lowering fills (`Program`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

# --- types -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bits:
    """`bit<width>` or, when `signed`, `int<width>` (two's complement). Width is at least 1."""

    width: int
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Bool:
    """The P4 `bool`."""


Type = Bits | Bool
BOOL = Bool()


def storage_bytes(width: int) -> int:
    """Bytes one scalar of `width` bits occupies in a packet's variable block and in action data.

    1, 2, 4 or 8 bytes up to 64 bits, else a multiple of 8. Values are stored zero-extended,
    little-endian; a Bool takes one byte.
    """
    for size in (1, 2, 4, 8):
        if width <= size * 8:
            return size
    return (width + 63) // 64 * 8


@dataclass(frozen=True, slots=True)
class Source:
    """Where in the P4 source a node comes from; lines and columns count from 1."""

    file: str
    line: int
    column: int


# --- storage ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Var:
    """One scalar variable. Identity is object identity; `name` is for people.

    `packet` variables (headers, metadata, standard metadata) live from parser to deparser and are
    copied for each replica; `local` ones live within one run of one block.
    """

    name: str
    type: Type
    storage: Literal["packet", "local"]


@dataclass(frozen=True, eq=False, slots=True)
class Header:
    """One header instance: its fields in wire order, and the variable that holds its validity."""

    name: str
    fields: tuple[Var, ...]
    valid: Var


@dataclass(frozen=True, eq=False, slots=True)
class Register:
    """A register array. Registers of equal length and width are interleaved by index."""

    name: str
    type: Bits
    size: int


@dataclass(frozen=True, eq=False, slots=True)
class Counter:
    """An indirect counter array; a direct counter has `table` set and no size of its own."""

    name: str
    kind: Literal["packets", "bytes", "packets_and_bytes"]
    size: int
    table: str | None = None


# --- expressions -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Const:
    """A literal; for a signed type the value may be negative. Bool is 0 or 1."""

    value: int
    type: Type


@dataclass(frozen=True, slots=True)
class Read:
    """The value of a variable."""

    var: Var

    @property
    def type(self) -> Type:
        return self.var.type


@dataclass(frozen=True, slots=True)
class Unary:
    """`-` and `~` on Bits, `!` on Bool."""

    op: Literal["-", "~", "!"]
    operand: Expr
    type: Type


BinaryOp = Literal[
    "+", "-", "*", "/", "%", "|+|", "|-|", "&", "|", "^", "<<", ">>",
    "==", "!=", "<", "<=", ">", ">=", "&&", "||",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Binary:
    """Both operands have equal types, except shifts, whose right operand is any unsigned Bits.

    Comparisons and logic give Bool. Signedness of the operands picks signed or unsigned
    comparison, division, saturation and right shift. `&&` and `||` operands have no side effects
    (lowering has made those explicit), so they need no short circuit.
    """

    op: BinaryOp
    left: Expr
    right: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class Cast:
    """To another width (truncate; extend by the operand's signedness), to another signedness, or
    between Bool and bit<1>."""

    operand: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class Slice:
    """operand[hi:lo], unsigned, hi - lo + 1 bits."""

    operand: Expr
    hi: int
    lo: int

    @property
    def type(self) -> Type:
        return Bits(self.hi - self.lo + 1)


@dataclass(frozen=True, slots=True)
class Concat:
    """left ++ right; the type has left's signedness."""

    left: Expr
    right: Expr
    type: Bits


@dataclass(frozen=True, slots=True)
class Mux:
    """condition ? then : otherwise; both sides free of side effects."""

    condition: Expr
    then: Expr
    otherwise: Expr

    @property
    def type(self) -> Type:
        return self.then.type


@dataclass(frozen=True, slots=True)
class Lookahead:
    """The next bits of the packet, not consumed; parser only. A short packet raises
    PacketTooShort."""

    type: Bits


Expr = Const | Read | Unary | Binary | Cast | Slice | Concat | Mux | Lookahead

# --- statements ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assign:
    """target = value, types equal."""

    target: Var
    value: Expr


@dataclass(frozen=True, slots=True)
class AssignSlice:
    """target[hi:lo] = value."""

    target: Var
    hi: int
    lo: int
    value: Expr


@dataclass(frozen=True, slots=True)
class If:
    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class Switch:
    """On a Bits value; the case values are distinct; no fall-through."""

    selector: Expr
    cases: tuple[tuple[tuple[int, ...], tuple[Stmt, ...]], ...]
    default: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A body that `Leave(label)` jumps out of: how return, exit and break are expressed."""

    label: str
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """Jump behind the enclosing Block with this label."""

    label: str


@dataclass(frozen=True, slots=True)
class SetValid:
    """header.setValid() / setInvalid(). Field values are left as they are."""

    header: Header
    valid: bool


@dataclass(frozen=True, slots=True)
class Extract:
    """packet.extract(header): parser only; a packet too short raises PacketTooShort."""

    header: Header


@dataclass(frozen=True, slots=True)
class Advance:
    """packet.advance(bits)."""

    bits: Expr


@dataclass(frozen=True, slots=True)
class Verify:
    """verify(condition, error): parser only; `error` is the index in Program.errors."""

    condition: Expr
    error: int


@dataclass(frozen=True, slots=True)
class Emit:
    """packet.emit(header): appends it if valid; deparser only."""

    header: Header


@dataclass(frozen=True, slots=True)
class Apply:
    """table.apply(). `hit` (Bool) and `action` (32-bit index in Table.actions) get the outcome."""

    table: Table
    hit: Var | None = None
    action: Var | None = None


@dataclass(frozen=True, slots=True)
class RegisterRead:
    """target = register[index]; an index out of range reads 0, as BMv2 does."""

    register: Register
    target: Var
    index: Expr


@dataclass(frozen=True, slots=True)
class RegisterWrite:
    """register[index] = value; an index out of range does nothing."""

    register: Register
    index: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Count:
    """counter.count(index); a direct counter's `index` is None."""

    counter: Counter
    index: Expr | None


ChecksumAlgorithm = Literal["csum16", "crc16", "crc32", "identity", "xor16"]


@dataclass(frozen=True, slots=True)
class Hash:
    """target = algorithm over the concatenated data (bits in order, zero-padded to whole bytes).

    The target is `bit<16>` for csum16, crc16 and xor16, `bit<32>` for crc32, and `bit<64>` for
    identity: the first eight bytes as a big-endian number (fewer bytes: a smaller number).
    """

    target: Var
    algorithm: ChecksumAlgorithm
    data: tuple[Expr, ...]


Stmt = (
    Assign | AssignSlice | If | Switch | Block | Leave | SetValid | Extract | Advance | Verify
    | Emit | Apply | RegisterRead | RegisterWrite | Count | Hash
)  # fmt: skip

# --- tables ----------------------------------------------------------------------------------

MatchKind = Literal["exact", "lpm", "ternary", "range", "optional"]


@dataclass(frozen=True, slots=True)
class Key:
    """One key field, evaluated at apply time."""

    name: str
    expr: Expr
    kind: MatchKind


@dataclass(frozen=True, eq=False, slots=True)
class Action:
    """An action as one table uses it: control-plane parameters as local Vars, and its body.

    `name` and the names of `params` are those the control plane uses. The body is code of the place
    that applies the table: it reads and writes that block's local variables, and a `Leave` in it
    may name a Block around the `Apply` (that is how `exit` in an action is expressed).
    """

    name: str
    params: tuple[Var, ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class ActionCall:
    """An action of the table (its index) with constant arguments: defaults and const entries."""

    action: int
    args: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyMatch:
    """One field of an entry: value and mask for ternary and lpm (mask all ones when exact),
    low and high for range."""

    value: int
    mask: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of `entries`; a larger priority wins. Lines count down from their number to 1."""

    keys: tuple[KeyMatch, ...]
    call: ActionCall
    priority: int = 0


@dataclass(eq=False, slots=True)
class Table:
    """A match-action table. `default` always exists (NoAction when the source names none).

    `const_default` and `const_entries` say that the control plane must not change them. A table
    without keys has no entries. A table is applied in one block only, perhaps at several places.
    """

    name: str
    keys: tuple[Key, ...]
    actions: tuple[Action, ...]
    default: ActionCall
    size: int
    entries: tuple[Entry, ...] = ()
    counter: Counter | None = None
    source: Source | None = None
    const_default: bool = False
    const_entries: bool = False


# --- blocks ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeysetValue:
    """Matches (selector & mask) == (value & mask); a mask of None means all ones."""

    value: int
    mask: int | None = None


@dataclass(frozen=True, slots=True)
class KeysetRange:
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class KeysetAny:
    """`_` and `default`."""


Keyset = KeysetValue | KeysetRange | KeysetAny

ACCEPT = "accept"
REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Goto:
    state: str


@dataclass(frozen=True, slots=True)
class Select:
    """The first case whose keysets all match; none matching raises error.NoMatch.

    Selectors are unsigned Bits: lowering has cast signed ones and bool.
    """

    selectors: tuple[Expr, ...]
    cases: tuple[tuple[tuple[Keyset, ...], str], ...]


@dataclass(frozen=True, slots=True)
class State:
    """One parser state; `accept` and `reject` are reserved names and not in the list."""

    name: str
    body: tuple[Stmt, ...]
    transition: Goto | Select


@dataclass(eq=False, slots=True)
class Program:
    """A whole v1model program. `standard` maps standard_metadata field names to their Vars.

    Blocks run in this order: parser, verify, ingress, (replication), egress, compute, deparser.
    `packet_vars` lists every packet variable that belongs to no header, `headers` every header.
    All packet variables start as 0 and all headers invalid; local variables start as 0 too.
    The P4 `error` type is `bit<32>`, the index in `errors`; so is an enum without a type of its
    own.
    """

    name: str
    headers: list[Header] = field(default_factory=list)
    packet_vars: list[Var] = field(default_factory=list)
    standard: dict[str, Var] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    parser: dict[str, State] = field(default_factory=dict)
    verify: tuple[Stmt, ...] = ()
    ingress: tuple[Stmt, ...] = ()
    egress: tuple[Stmt, ...] = ()
    compute: tuple[Stmt, ...] = ()
    deparser: tuple[Stmt, ...] = ()
    tables: list[Table] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
