"""The parser's state machine, as basic blocks of the ingress function.

The position is a byte offset into the frame. An error (a short packet, a failed `verify`, no
matching case) ends parsing: `parser_error` is set and the packet goes on to ingress with what has
been extracted, as in BMv2. Only a parser whose states form a loop counts its steps; more than
`MAX_LOOP_STEPS` of them raise ParserTimeout, so that every parser ends.

Entry point: `emit_parser`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llvmlite import ir as ll

from p4emu.ir.nodes import (
    ACCEPT,
    REJECT,
    Advance,
    Extract,
    Goto,
    Keyset,
    KeysetAny,
    KeysetRange,
    KeysetValue,
    Lookahead,
    Program,
    Select,
    State,
    Verify,
)
from p4emu.jit import abi
from p4emu.jit.errors import CodegenError, UnsupportedNodeError
from p4emu.jit.expressions import ExpressionEmitter, constant
from p4emu.jit.frame import I64, Frame
from p4emu.jit.layout import header_bytes
from p4emu.jit.statements import StatementEmitter
from p4emu.jit.wire import extract_header, fit, i64, load_bits

# Transitions along edges that close a loop, for one packet. The largest frame has 64 KiB; a loop
# that consumes 16 bytes a turn passes it.
MAX_LOOP_STEPS = 4096


def emit_parser(frame: Frame, program: Program) -> None:
    """Emit the parser; code goes on behind it, with `Packet.payload` set."""
    _ParserEmitter(frame, program).emit()


class _ParserEmitter:
    def __init__(self, frame: Frame, program: Program) -> None:
        self._frame = frame
        self._program = program
        self._position = frame.zeroed(I64, "position")
        self._steps: Any = None
        self._back_edges = set(_back_edges(program))
        self._error_blocks: dict[int, Any] = {}
        self._done = frame.block("parsed")
        self._blocks = {name: frame.block(f"state.{name}") for name in program.parser}
        self._expressions = ExpressionEmitter(frame, self._lookahead)
        self._statements = StatementEmitter(
            frame,
            self._expressions,
            extra={Extract: self._extract, Advance: self._advance, Verify: self._verify},
        )

    def emit(self) -> None:
        frame = self._frame
        frame.go(self._blocks["start"] if self._program.parser else self._done)
        for name, state in self._program.parser.items():
            frame.start(self._blocks[name])
            self._statements.body(state.body)
            if not frame.terminated:
                self._transition(state)
        self._errors()
        frame.start(self._done)
        payload = fit(frame.builder, frame.load(self._position, I64, 8), 32)
        frame.builder.store(payload, frame.at(frame.packet, abi.PACKET_PAYLOAD), align=4)

    # --- errors ---

    def _error(self, name: str) -> Any:
        try:
            return self._error_block(self._program.errors.index(name))
        except ValueError:
            raise CodegenError(
                f"the program has no error {name!r}: {', '.join(self._program.errors)}"
            ) from None

    def _error_block(self, index: int) -> Any:
        block = self._error_blocks.get(index)
        if block is None:
            block = self._frame.block(f"error.{self._program.errors[index]}")
            self._error_blocks[index] = block
        return block

    def _errors(self) -> None:
        frame = self._frame
        variable = self._program.standard.get("parser_error")
        for index, block in self._error_blocks.items():
            frame.start(block)
            if variable is not None:
                frame.write(variable, constant(index, variable.type))
            frame.go(self._done)

    def _require(self, condition: Any, error: Any) -> None:
        following = self._frame.block("checked")
        branch = self._frame.builder.cbranch(condition, following, error)
        branch.set_weights([1000, 1])
        # What is known stays known: the only way here is from the block before.
        self._frame.follow(following)

    # --- statements ---

    def _room(self, count: Any) -> tuple[Any, Any]:
        """The position, and the one `count` bytes on, which is checked to be within the frame."""
        frame = self._frame
        before = frame.load(self._position, I64, 8)
        after = frame.builder.add(before, count, flags=("nuw",))
        enough = frame.builder.icmp_unsigned("<=", after, frame.length)
        self._require(enough, self._error("PacketTooShort"))
        return before, after

    def _extract(self, stmt: Extract) -> None:
        frame = self._frame
        before, after = self._room(i64(header_bytes(stmt.header)))
        extract_header(frame, stmt.header, frame.offset(frame.data, before))
        frame.write(stmt.header.valid, constant(1, stmt.header.valid.type))
        frame.builder.store(after, self._position, align=8)

    def _advance(self, stmt: Advance) -> None:
        frame = self._frame
        bits = fit(frame.builder, self._expressions.value(stmt.bits), 64)
        rest = frame.builder.and_(bits, i64(7))
        whole = frame.builder.icmp_unsigned("==", rest, i64(0))
        self._require(whole, self._error("ParserInvalidArgument"))
        _, after = self._room(frame.builder.lshr(bits, i64(3)))
        frame.builder.store(after, self._position, align=8)

    def _lookahead(self, expr: Lookahead) -> Any:
        frame = self._frame
        width = expr.type.width
        before, _ = self._room(i64((width + 7) // 8))
        return load_bits(frame, frame.offset(frame.data, before), width)

    def _verify(self, stmt: Verify) -> None:
        condition = self._expressions.value(stmt.condition)
        self._require(condition, self._error_block(stmt.error))

    # --- transitions ---

    def _transition(self, state: State) -> None:
        if isinstance(state.transition, Goto):
            self._frame.go(self._edge(state.name, state.transition.state))
        elif isinstance(state.transition, Select):
            self._select(state.name, state.transition)
        else:
            raise UnsupportedNodeError(state.transition, f"parser state {state.name}")

    def _select(self, name: str, select: Select) -> None:
        frame = self._frame
        selectors = [self._expressions.value(selector) for selector in select.selectors]
        for keysets, target in select.cases:
            conditions = [
                condition
                for selector, keyset in zip(selectors, keysets, strict=True)
                if (condition := self._matches(selector, keyset)) is not None
            ]
            if not conditions:
                frame.go(self._edge(name, target))
                return
            matched = conditions[0]
            for condition in conditions[1:]:
                matched = frame.builder.and_(matched, condition)
            following = frame.block("no_match")
            frame.builder.cbranch(matched, self._edge(name, target), following)
            frame.start(following)
        frame.go(self._error("NoMatch"))

    def _matches(self, selector: Any, keyset: Keyset) -> Any:
        """i1, or None when the keyset matches anything."""
        builder = self._frame.builder
        type_ = selector.type
        if isinstance(keyset, KeysetAny):
            return None
        if isinstance(keyset, KeysetRange):
            above = builder.icmp_unsigned(">=", selector, ll.Constant(type_, keyset.low))
            below = builder.icmp_unsigned("<=", selector, ll.Constant(type_, keyset.high))
            return builder.and_(above, below)
        if isinstance(keyset, KeysetValue):
            mask = (1 << type_.width) - 1 if keyset.mask is None else keyset.mask
            masked = builder.and_(selector, ll.Constant(type_, mask))
            return builder.icmp_unsigned("==", masked, ll.Constant(type_, keyset.value & mask))
        raise UnsupportedNodeError(keyset, "a select case")

    def _edge(self, source: str, target: str) -> Any:
        """The block that a transition goes to; one that closes a loop counts first."""
        if target in (ACCEPT, REJECT):
            return self._done
        if (source, target) not in self._back_edges:
            return self._blocks[target]
        frame = self._frame
        if self._steps is None:
            self._steps = frame.zeroed(I64, "steps")
        counting = frame.block(f"loop.{target}")
        builder = ll.IRBuilder(counting)
        steps = builder.add(builder.load(self._steps, typ=I64), i64(1))
        builder.store(steps, self._steps)
        within = builder.icmp_unsigned("<=", steps, i64(MAX_LOOP_STEPS))
        builder.cbranch(within, self._blocks[target], self._error("ParserTimeout"))
        return counting


def _targets(state: State) -> Iterator[str]:
    if isinstance(state.transition, Goto):
        yield state.transition.state
    else:
        for _, target in state.transition.cases:
            yield target


def _back_edges(program: Program) -> Iterator[tuple[str, str]]:
    """Edges that lead to a state on the path they came by (depth first from `start`)."""
    states = program.parser
    if not states:
        return
    on_path = {"start"}
    seen = {"start"}
    stack = [("start", _targets(states["start"]))]
    while stack:
        name, targets = stack[-1]
        target = next(targets, None)
        if target is None:
            stack.pop()
            on_path.discard(name)
        elif target in on_path:
            yield name, target
        elif target in states and target not in seen:
            seen.add(target)
            on_path.add(target)
            stack.append((target, _targets(states[target])))
