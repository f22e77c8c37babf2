"""Where lowered statements go: the buffer of the body that is being built, and new variables.

`Emitter` knows IR nodes, places and values, and nothing of the P4 syntax tree. Its subclasses lower
expressions, calls and statements by emitting into it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from p4emu.ir.nodes import (
    Assign,
    AssignSlice,
    Bits,
    Block,
    Const,
    Expr,
    If,
    Leave,
    Program,
    Read,
    SetValid,
    Stmt,
    Switch,
    Type,
    Var,
)
from p4emu.lower import fold
from p4emu.lower.values import (
    BitRange,
    BoolBit,
    ChosenPlace,
    HeaderPlace,
    Place,
    Record,
    StackPlace,
    StructPlace,
    UnionPlace,
    Value,
    is_simple,
    leaves,
    load,
    reads,
)


class Emitter:
    """Builds the statements of one IR block.

    `program` receives what belongs to the whole program (headers, registers, ...). `out` is the
    body under construction.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.out: list[Stmt] = []
        self._labels = 0
        self._leaves: dict[str, int] = {}

    # --- bodies ---

    @contextmanager
    def nested(self) -> Iterator[list[Stmt]]:
        """Collects what is emitted inside into a list of its own."""
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer

    def emit(self, stmt: Stmt) -> None:
        self.out.append(stmt)

    def emit_if(self, condition: Expr, then: Sequence[Stmt], otherwise: Sequence[Stmt]) -> None:
        """An If, or only the side that a constant condition leaves, or nothing."""
        if isinstance(condition, Const):
            self.out.extend(then if condition.value else otherwise)
        elif then:
            self.emit(If(condition, tuple(then), tuple(otherwise)))
        elif otherwise:
            self.emit(If(fold.unary("!", condition), tuple(otherwise)))

    def label(self, what: str) -> str:
        """A new label for a Block."""
        self._labels += 1
        return f"{what}.{self._labels}"

    def emit_block(self, label: str, body: Sequence[Stmt], *, used: bool = False) -> None:
        """`body`, in a Block when something in it leaves `label` before its end.

        `used` says that something does which was not emitted for this block alone.
        """
        body = list(body)
        uses = self._leaves.pop(label, 0)
        if body and isinstance(body[-1], Leave) and body[-1].label == label:
            body.pop()
            uses -= 1
        if uses or used:
            self.emit(Block(label, tuple(body)))
        else:
            self.out.extend(body)

    def emit_leave(self, label: str) -> None:
        """Jumps behind the block of that label, which is still to be emitted."""
        self._leaves[label] = self._leaves.get(label, 0) + 1
        self.emit(Leave(label))

    # --- variables ---

    def local(self, name: str, type_: Type) -> Var:
        """A new local variable."""
        return Var(name, type_, "local")

    def saved(self, value: Value, name: str = "tmp") -> Value:
        """The value as it is now, whatever happens to the variables it reads."""
        if isinstance(value, Record):
            fields = {field: self.saved(inner, name) for field, inner in value.fields.items()}
            valid = None if value.valid is None else self.saved_expr(value.valid, name)
            return Record(fields, valid)
        return self.saved_expr(value, name)

    def saved_expr(self, value: Expr, name: str = "tmp") -> Expr:
        """`saved` for a scalar."""
        if isinstance(value, Const):
            return value
        temporary = self.local(name, value.type)
        self.emit(Assign(temporary, value))
        return Read(temporary)

    def simple(self, value: Value, name: str = "tmp") -> Value:
        """The value in a form that costs nothing to repeat."""
        if isinstance(value, Record):
            fields = {field: self.simple(inner, name) for field, inner in value.fields.items()}
            return Record(fields, value.valid)
        return value if is_simple(value) else self.saved_expr(value, name)

    # --- writing ---

    def store(self, place: Place, value: Value) -> None:
        """place = value, field by field; as if all of the value were read first."""
        if isinstance(place, Var):
            assert not isinstance(value, Record)
            self.emit(Assign(place, value))
            return
        if isinstance(value, Record) and _overlap(place, value):
            value = self.saved(value)
        self._store(place, value)

    def _store(self, place: Place, value: Value) -> None:
        if isinstance(place, Var):
            assert not isinstance(value, Record)
            self.emit(Assign(place, value))
        elif isinstance(place, BitRange):
            assert not isinstance(value, Record)
            unsigned = fold.cast(value, Bits(place.hi - place.lo + 1))
            self.emit(AssignSlice(place.var, place.hi, place.lo, unsigned))
        elif isinstance(place, BoolBit):
            assert not isinstance(value, Record)
            self.emit(Assign(place.var, fold.cast(value, Bits(1))))
        elif isinstance(place, ChosenPlace):
            self.choose(place, lambda option: self._store(option, value))
        else:
            assert isinstance(value, Record)
            self._store_record(place, value)

    def _store_record(
        self, place: StructPlace | HeaderPlace | UnionPlace | StackPlace, value: Record
    ) -> None:
        if isinstance(place, HeaderPlace):
            valid = fold.TRUE if value.valid is None else value.valid
            self.set_valid(place, valid)
            for name, inner in value.fields.items():
                self._store(place.fields[name], inner)
        elif isinstance(place, StackPlace):
            for number, inner in value.fields.items():
                self._store(place.elements[int(number)], inner)
        elif isinstance(place, UnionPlace):
            for name, inner in value.fields.items():
                assert isinstance(inner, Record)
                member = place.fields[name]
                self.emit(Assign(member.header.valid, inner.valid or fold.TRUE))
                for field, field_value in inner.fields.items():
                    self._store(member.fields[field], field_value)
        else:
            for name, inner in value.fields.items():
                self._store(place.fields[name], inner)

    def set_valid(self, place: Place, valid: Expr) -> None:
        """Makes a header valid or not; a valid member of a union makes the others invalid."""
        if isinstance(place, ChosenPlace):
            self.choose(place, lambda option: self.set_valid(option, valid))
            return
        assert isinstance(place, HeaderPlace)
        if isinstance(valid, Const):
            self.emit(SetValid(place.header, bool(valid.value)))
        else:
            self.emit(Assign(place.header.valid, valid))
        if place.siblings:
            others = [SetValid(sibling, False) for sibling in place.siblings]
            self.emit_if(valid, others, ())

    def invalidate(self, place: Place) -> None:
        """Makes every header in a place invalid: how variables and out parameters start."""
        if isinstance(place, HeaderPlace):
            self.emit(SetValid(place.header, False))
        elif isinstance(place, (StructPlace, UnionPlace)):
            for inner in place.fields.values():
                self.invalidate(inner)
        elif isinstance(place, StackPlace):
            for element in place.elements:
                self.invalidate(element)
            self.emit(Assign(place.next_index, Const(0, place.next_index.type)))

    def choose(self, place: ChosenPlace, act: Callable[[Place], None]) -> None:
        """Emits `act` for the option that the index selects, nothing when it is out of range."""
        cases = []
        for number, option in enumerate(place.options):
            with self.nested() as body:
                act(option)
            cases.append(((number,), tuple(body)))
        self.emit(Switch(place.index, tuple(cases)))


def _overlap(place: Place, value: Record) -> bool:
    """Whether writing one field of the place may change what another field's value reads."""
    targets = leaves(place)
    if targets.isdisjoint(reads(value)):
        return False
    # The same variables at the same places: an assignment to itself.
    own = load(place)
    return not (isinstance(own, Record) and list(reads(own)) == list(reads(value)))
