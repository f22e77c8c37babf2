"""Lowers parsers: states, select, packet_in, and subparsers.

A subparser's states are copied into the caller's state machine under a prefix: the statement that
applies it ends the caller's state, its `accept` continues in a new state with the statements behind
the call, its `reject` is the caller's. (Names with a `$` are in no source.) Header stacks are
indexed by a variable that counts the extracted elements.
"""

from __future__ import annotations

from p4emu.frontend import ast
from p4emu.frontend.program import BlockApply, ExternMethodCall
from p4emu.frontend.source import Source
from p4emu.frontend.types import StackType, Type
from p4emu.ir.nodes import (
    ACCEPT,
    BOOL,
    REJECT,
    Advance,
    Assign,
    Bits,
    Const,
    Expr,
    Extract,
    Goto,
    Keyset,
    KeysetAny,
    KeysetRange,
    KeysetValue,
    Lookahead,
    Read,
    Select,
    SetValid,
    State,
    Stmt,
    Verify,
)
from p4emu.lower import fold, shapes
from p4emu.lower.arguments import Passing
from p4emu.lower.errors import error, unsupported
from p4emu.lower.instances import Blocks
from p4emu.lower.scope import Frame, Instance
from p4emu.lower.values import ChosenPlace, HeaderPlace, Place, Record, StackPlace, Value

START = "start"
_COUNT = Bits(32)
_STACK_OUT_OF_BOUNDS = "StackOutOfBounds"


class ParserLowering(Blocks):
    """Builds `Program.parser`."""

    _current = START
    _body: list[Stmt]
    _names: dict[str, str]

    # --- the state machine ---

    def run_parser(self, frame: Frame, declaration: ast.ParserDeclaration) -> None:
        """Lowers the top-level parser in an activation whose parameters are bound.

        Statements already emitted (copies of arguments) belong to its start.
        """
        self._current, self._body = START, self.out
        self._states(frame, declaration, prefix="", accept=ACCEPT)

    def _begin(self, name: str) -> None:
        self._current = name
        self.out = self._body = []

    def _finish(self, transition: Goto | Select) -> None:
        state = State(self._current, tuple(self._body), transition)
        self.program.parser[self._current] = state

    def _states(
        self, frame: Frame, declaration: ast.ParserDeclaration, prefix: str, accept: str
    ) -> None:
        """Ends the current state by entering the parser, and lowers the parser's states."""
        caller, self.frame = self.frame, frame
        names = {state.name: prefix + state.name for state in declaration.states}
        names |= {ACCEPT: accept, REJECT: REJECT}
        for local in declaration.locals:
            if isinstance(local, ast.VariableDeclaration):
                self.statement(local)
        inside = self._current == names[START]
        if inside and self.out and any(START in _targets(state) for state in declaration.states):
            # What initialises variables runs once, though a transition leads back to the start.
            names[START] = f"{START}.$again"
            inside = False
        if not inside:
            self._finish(Goto(names[START]))
        states = sorted(declaration.states, key=lambda state: state.name != START)
        for state in states:
            if not (inside and state.name == START):
                self._begin(names[state.name])
            for statement in state.statements:
                self.statement(statement)
            self._finish(self._transition(state, names))
        self.frame = caller

    def call_control(self, call: BlockApply, expression: ast.CallExpression) -> None:
        """A subparser (controls cannot be applied in parsers)."""
        instance = self.instance_of(call, expression)
        declaration = instance.declaration
        if not isinstance(declaration, ast.ParserDeclaration):
            raise unsupported(expression.source, "applying a control inside of a parser")
        if self.out is not self._body:
            raise unsupported(expression.source, "applying a parser under a condition")
        frame = self.activate(instance)
        copy_outs = self.bind(frame, declaration.parameters, call.arguments, Passing.DIRECT)
        name = f"{self._current}.{_last_part(instance)}"
        behind = f"{name}.$done"
        self._states(frame, declaration, prefix=f"{name}.", accept=behind)
        self._begin(behind)
        self.copy_out(copy_outs)

    # --- transitions ---

    def _transition(self, state: ast.ParserState, names: dict[str, str]) -> Goto | Select:
        transition = state.transition
        if transition is None:
            return Goto(REJECT)
        if isinstance(transition, ast.DirectTransition):
            return Goto(names[transition.state])
        selectors: list[Expr] = []
        for node in transition.selectors:
            mark = len(self.out)
            selector = self.expr(node)
            if len(self.out) != mark:
                selectors = [self._scalar(self.save_before(mark, s)) for s in selectors]
            if selector.type == BOOL:
                selector = fold.cast(selector, Bits(1))
            selectors.append(selector)
        signed = [isinstance(s.type, Bits) and s.type.signed for s in selectors]
        cases = tuple(
            (self._keysets(case.keyset, selectors, signed), names[case.state])
            for case in transition.cases
        )
        return Select(tuple(map(_unsigned, selectors)), cases)

    def _keysets(
        self, keyset: ast.Expression, selectors: list[Expr], signed: list[bool]
    ) -> tuple[Keyset, ...]:
        if isinstance(keyset, ast.DontCare):
            return (KeysetAny(),) * len(selectors)
        parts = keyset.elements if isinstance(keyset, ast.TupleKeyset) else (keyset,)
        if len(parts) != len(selectors):
            raise unsupported(keyset.source, "a set of values for several keys at once")
        return tuple(
            self._keyset(part, _width(selector), is_signed)
            for part, selector, is_signed in zip(parts, selectors, signed, strict=True)
        )

    def _keyset(self, keyset: ast.Expression, width: int, signed: bool) -> Keyset:
        if isinstance(keyset, ast.DontCare):
            return KeysetAny()
        if isinstance(keyset, ast.MaskExpression):
            mask = self._pattern(keyset.mask, width)
            return KeysetValue(self._pattern(keyset.value, width) & mask, mask)
        if isinstance(keyset, ast.RangeExpression):
            if signed:
                raise unsupported(keyset.source, "a range of signed numbers in `select`")
            return KeysetRange(self._pattern(keyset.low, width), self._pattern(keyset.high, width))
        return KeysetValue(self._pattern(keyset, width))

    def _pattern(self, expression: ast.Expression, width: int) -> int:
        value = self.compile_time(expression, "a value in `select`")
        return fold.pattern(value.value, width)

    # --- errors ---

    def verify(self, condition: ast.Expression, code: ast.Expression, source: Source) -> None:
        holds, signalled = self.expr_pair(condition, code)
        if isinstance(signalled, Const):
            self.emit(Verify(holds, signalled.value))
            return
        # The IR has only errors that are known: one check for each that it may be.
        failed = self._scalar(self.simple(fold.unary("!", holds)))
        for number in range(len(self.program.errors)):
            other = fold.binary("!=", signalled, fold.constant(number, signalled.type))
            self.emit(Verify(fold.binary("||", fold.unary("!", failed), other), number))

    def _require(self, condition: Expr, error_name: str) -> None:
        self.emit(Verify(condition, self.program.errors.index(error_name)))

    # --- packet_in ---

    def packet_in(self, call: ExternMethodCall, source: Source) -> Value | None:
        method = call.method.name
        if method == "extract":
            if len(call.arguments) != 1:
                raise unsupported(source, "extracting a varbit field")
            self._extract(call, call.arguments[0].value, source)
            return None
        if method == "lookahead":
            return self._lookahead(self.substituted(call.result), source)
        if method == "advance":
            distance = call.arguments[0].value
            assert distance is not None
            self.emit(Advance(fold.cast(self.expr(distance), _COUNT)))
            return None
        raise unsupported(source, f"`{method}` of packet_in")

    def _extract(
        self, call: ExternMethodCall, target: ast.Expression | None, source: Source
    ) -> None:
        if target is None:
            type_ = self.substituted(call.type_arguments[0])
            self.emit(Advance(Const(self._width(type_, source), _COUNT)))
            return
        self._extract_header(self.place(target), source)
        stack = self._advanced_stack(target)
        if stack is not None:
            one = fold.binary("+", Read(stack.next_index), Const(1, _COUNT))
            self.emit(Assign(stack.next_index, one))

    def _advanced_stack(self, target: ast.Expression) -> StackPlace | None:
        """The stack whose next element (or a member of it, if that is a union) is extracted."""
        while isinstance(target, ast.MemberExpression):
            base = target.base
            if target.member == "next" and isinstance(self.checked.own_type(base), StackType):
                stack = self.place(base)
                if not isinstance(stack, StackPlace):
                    raise unsupported(base.source, "a stack that is part of a stack element")
                return stack
            target = base
        return None

    def _extract_header(self, place: Place, source: Source) -> None:
        if isinstance(place, ChosenPlace):
            self.choose(place, lambda option: self._extract_header(option, source))
            return
        if not isinstance(place, HeaderPlace):
            raise unsupported(source, "extracting anything but headers")
        self.emit(Extract(place.header))
        for sibling in place.siblings:
            self.emit(SetValid(sibling, False))

    def _lookahead(self, type_: Type, source: Source) -> Value:
        width = self._width(type_, source)
        bits = self.local("lookahead", Bits(width))
        self.emit(Assign(bits, Lookahead(Bits(width))))
        value, rest = self._unpack(type_, Read(bits), width, source)
        assert rest == 0
        return value

    def _unpack(self, type_: Type, bits: Expr, top: int, source: Source) -> tuple[Value, int]:
        """A value of the type from the bits below `top`, and where it ends."""
        scalar = shapes.scalar_type(type_)
        if scalar is not None:
            width = scalar.width if isinstance(scalar, Bits) else 1
            return fold.cast(fold.slice_(bits, top - 1, top - width), scalar), top - width
        fields: dict[str, Value] = {}
        for name, inner in shapes.element_types(type_):
            fields[name], top = self._unpack(inner, bits, top, source)
        return Record(fields, fold.TRUE if shapes.is_header(type_) else None), top

    def _width(self, type_: Type, source: Source) -> int:
        """The size of a type in the packet, in bits."""
        scalar = shapes.scalar_type(type_)
        if scalar is not None:
            return scalar.width if isinstance(scalar, Bits) else 1
        if not shapes.has_elements(type_):
            raise unsupported(source, f"reading a {type_} from the packet")
        return sum(self._width(inner, source) for _, inner in shapes.element_types(type_))

    # --- header stacks ---

    def stack_member(self, stack: StackPlace, member: str, source: Source) -> Value | Place:
        if member == "next":
            return self._next(stack)
        last = fold.binary("-", Read(stack.next_index), Const(1, _COUNT))
        if member == "lastIndex":
            return last
        if member != "last":
            raise error(source, f"a header stack has no `{member}`")
        self._require(
            fold.binary("!=", Read(stack.next_index), Const(0, _COUNT)), _STACK_OUT_OF_BOUNDS
        )
        return ChosenPlace(self.saved_expr(last, "last"), stack.elements)

    def _next(self, stack: StackPlace) -> ChosenPlace:
        size = Const(len(stack.elements), _COUNT)
        index = Read(stack.next_index)
        self._require(fold.binary("<", index, size), _STACK_OUT_OF_BOUNDS)
        return ChosenPlace(index, stack.elements)


def _targets(state: ast.ParserState) -> set[str]:
    """The states a state may go to."""
    transition = state.transition
    if isinstance(transition, ast.DirectTransition):
        return {transition.state}
    if isinstance(transition, ast.SelectTransition):
        return {case.state for case in transition.cases}
    return set()


def _last_part(instance: Instance) -> str:
    return instance.path.rsplit(".", 1)[-1]


def _width(expr: Expr) -> int:
    assert isinstance(expr.type, Bits)
    return expr.type.width


def _unsigned(expr: Expr) -> Expr:
    return fold.cast(expr, Bits(_width(expr)))
