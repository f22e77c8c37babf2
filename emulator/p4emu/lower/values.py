"""What names and expressions stand for while a program is lowered: places and values.

A *place* can be written: a scalar variable, a bit range of one, or a tree of places for a struct,
a header, a header union or a header stack. A *value* can be read: an IR expression, or a `Record`
of values for everything that is not a scalar. Both exist at compile time only; the IR knows
nothing but scalars and headers.

- `load(place)` gives the value a place has now.
- `leaves(place)` gives the scalar variables a place consists of, to decide on aliasing.
- `reads(value)` gives the variables a value depends on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from p4emu.ir.nodes import BOOL, Const, Expr, Header, Read, Var
from p4emu.ir.walk import reads as expr_reads
from p4emu.lower import fold


@dataclass(eq=False, slots=True)
class BitRange:
    """`var[hi:lo]` as something to write to."""

    var: Var
    hi: int
    lo: int


@dataclass(eq=False, slots=True)
class BoolBit:
    """A `bool` field of a header: a `bit<1>` on the wire."""

    var: Var


@dataclass(eq=False, slots=True)
class StructPlace:
    """A struct, or a tuple whose fields are named "0", "1", ..."""

    fields: dict[str, Place]
    leaf_set: frozenset[Var] | None = field(default=None, repr=False)


@dataclass(eq=False, slots=True)
class HeaderPlace:
    """A header instance; `siblings` are the other members of its header union.

    Fields are places of scalars, or of structs whose fields the header contains.
    """

    header: Header
    fields: dict[str, Place]
    siblings: tuple[Header, ...] = ()


@dataclass(eq=False, slots=True)
class UnionPlace:
    """A header union."""

    fields: dict[str, HeaderPlace]


@dataclass(eq=False, slots=True)
class StackPlace:
    """A header stack; `next_index` counts the elements that the parser has extracted."""

    elements: tuple[HeaderPlace | UnionPlace, ...]
    next_index: Var


@dataclass(eq=False, slots=True)
class ChosenPlace:
    """One of several places of equal shape, by an index that is known at run time only."""

    index: Expr
    options: tuple[Place, ...]


Place = Var | BitRange | BoolBit | StructPlace | HeaderPlace | UnionPlace | StackPlace | ChosenPlace


@dataclass(eq=False, slots=True)
class Record:
    """The value of a struct, tuple, list, stack or union (`valid` None) or of a header.

    Fields are in declaration order; those of tuples, lists and stacks are named "0", "1", ...
    An invalid header literal has no fields.
    """

    fields: dict[str, Value]
    valid: Expr | None = None


Value = Expr | Record


def load(place: Place) -> Value:
    """The value of a place, as expressions over its variables."""
    if isinstance(place, Var):
        return Read(place)
    if isinstance(place, HeaderPlace):
        fields = {name: load(inner) for name, inner in place.fields.items()}
        return Record(fields, Read(place.header.valid))
    if isinstance(place, (StructPlace, UnionPlace)):
        return Record({name: load(inner) for name, inner in place.fields.items()})
    if isinstance(place, StackPlace):
        return Record({str(i): load(element) for i, element in enumerate(place.elements)})
    if isinstance(place, BitRange):
        return fold.slice_(Read(place.var), place.hi, place.lo)
    if isinstance(place, BoolBit):
        return fold.cast(Read(place.var), BOOL)
    return _choose(place.index, [load(option) for option in place.options])


def load_valid(place: Place) -> Expr:
    """isValid() of a header or header union."""
    if isinstance(place, HeaderPlace):
        return Read(place.header.valid)
    if isinstance(place, UnionPlace):
        valid: Expr = fold.FALSE
        for member in place.fields.values():
            valid = fold.binary("||", valid, load_valid(member))
        return valid
    assert isinstance(place, ChosenPlace)
    chosen = _choose(place.index, [load_valid(option) for option in place.options])
    assert not isinstance(chosen, Record)
    return chosen


def _choose(index: Expr, options: list[Value]) -> Value:
    """The option with the number `index`; the last one when the index is out of range."""
    last = options[-1]
    if isinstance(last, Record):
        records = [option for option in options if isinstance(option, Record)]
        fields = {
            name: _choose(index, [record.fields[name] for record in records])
            for name in last.fields
        }
        valids: list[Value] = [r.valid for r in records if r.valid is not None]
        valid = _choose(index, valids) if valids else None
        assert not isinstance(valid, Record)
        return Record(fields, valid)
    chosen: Expr = last
    for number in range(len(options) - 2, -1, -1):
        option = options[number]
        assert not isinstance(option, Record)
        here = fold.binary("==", index, fold.constant(number, index.type))
        chosen = fold.mux(here, option, chosen)
    return chosen


def leaves(place: Place) -> frozenset[Var]:
    """Every scalar variable that writing to the place may change."""
    if isinstance(place, StructPlace):
        if place.leaf_set is None:
            inner = [leaves(inner) for inner in place.fields.values()]
            place.leaf_set = frozenset().union(*inner)
        return place.leaf_set
    if isinstance(place, Var):
        return frozenset((place,))
    if isinstance(place, (BitRange, BoolBit)):
        return frozenset((place.var,))
    if isinstance(place, HeaderPlace):
        valids = (header.valid for header in (place.header, *place.siblings))
        return frozenset(valids).union(*map(leaves, place.fields.values()))
    if isinstance(place, UnionPlace):
        return frozenset().union(*map(leaves, place.fields.values()))
    if isinstance(place, StackPlace):
        return frozenset((place.next_index,)).union(*map(leaves, place.elements))
    return frozenset().union(*map(leaves, place.options))


def reads(value: Value) -> Iterator[Var]:
    """Every variable a value depends on, once per mention."""
    if isinstance(value, Record):
        if value.valid is not None:
            yield from expr_reads(value.valid)
        for inner in value.fields.values():
            yield from reads(inner)
    else:
        yield from expr_reads(value)


def flatten(value: Value) -> Iterator[Expr]:
    """The scalars of a value in order: what a checksum or hash runs over."""
    if isinstance(value, Record):
        for inner in value.fields.values():
            yield from flatten(inner)
    else:
        yield value


def equal(left: Value, right: Value) -> Expr:
    """left == right: field by field; headers are equal when both are invalid, or both valid and
    all fields equal."""
    if not isinstance(left, Record):
        assert not isinstance(right, Record)
        return fold.binary("==", left, right)
    assert isinstance(right, Record)
    same: Expr = fold.TRUE
    for one, other in zip(left.fields.values(), right.fields.values(), strict=False):
        same = fold.binary("&&", same, equal(one, other))
    if left.valid is None and right.valid is None:
        return same
    one_valid, other_valid = left.valid or fold.TRUE, right.valid or fold.TRUE
    if isinstance(one_valid, Const) or isinstance(other_valid, Const):
        both = fold.binary("&&", one_valid, other_valid)
        neither = fold.unary("!", fold.binary("||", one_valid, other_valid))
        return fold.binary("||", neither, fold.binary("&&", both, same))
    agree = fold.binary("==", one_valid, other_valid)
    neither = fold.unary("!", one_valid)
    return fold.binary("&&", agree, fold.binary("||", neither, same))


def is_simple(value: Value) -> bool:
    """Whether repeating the value costs nothing: a constant, a variable, a record of those."""
    if isinstance(value, Record):
        return all(map(is_simple, value.fields.values()))
    return isinstance(value, (Const, Read))
