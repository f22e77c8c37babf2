"""IR statements to LLVM instructions; parser-only statements are in `parser`, tables in `tables`.

Entry point: `StatementEmitter.body`. Structured control flow becomes basic blocks; what follows a
`Leave` in its body is unreachable and not emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir as ll

from p4emu.ir.nodes import (
    Apply,
    Assign,
    AssignSlice,
    Binary,
    Block,
    Count,
    Emit,
    Expr,
    Hash,
    If,
    Leave,
    Lookahead,
    RegisterRead,
    RegisterWrite,
    SetValid,
    Stmt,
    Switch,
)
from p4emu.ir.walk import children
from p4emu.jit import abi
from p4emu.jit.errors import CodegenError, UnsupportedNodeError
from p4emu.jit.expressions import ExpressionEmitter, constant
from p4emu.jit.frame import I1, I64, Frame
from p4emu.jit.hashes import emit_hash
from p4emu.jit.layout import header_bytes, width_of
from p4emu.jit.tables import bump, emit_apply
from p4emu.jit.wire import emit_header, fit, i64, shift_left


class StatementEmitter:
    """Emits statement lists at the frame's current place.

    `emitted` is where the deparser keeps the number of bytes written (a pointer to an i64), `out`
    where they go; elsewhere there is no `Emit`.
    """

    def __init__(
        self,
        frame: Frame,
        expressions: ExpressionEmitter,
        out: Any = None,
        emitted: Any = None,
        extra: dict[type, Callable[[Any], None]] | None = None,
    ) -> None:
        self._frame = frame
        self._expressions = expressions
        self._out = out
        self._emitted = emitted
        self._emitters: dict[type, Callable[[Any], None]] = {
            Assign: self._assign,
            AssignSlice: self._assign_slice,
            If: self._if,
            Switch: self._switch,
            Block: self._block,
            Leave: self._leave,
            SetValid: self._set_valid,
            Apply: lambda stmt: emit_apply(frame, expressions, stmt, self.body),
            RegisterRead: self._register_read,
            RegisterWrite: self._register_write,
            Count: self._count,
            Hash: lambda stmt: emit_hash(frame, expressions, stmt),
        }
        if out is not None:
            self._emitters[Emit] = self._emit
        self._emitters.update(extra or {})

    def body(self, stmts: Sequence[Stmt]) -> None:
        """Emit statements up to the first that leaves."""
        for stmt in stmts:
            emit = self._emitters.get(type(stmt))
            if emit is None:
                raise UnsupportedNodeError(stmt, "a statement list")
            emit(stmt)
            if self._frame.terminated:
                return

    # --- variables ---

    def _assign(self, stmt: Assign) -> None:
        self._frame.write(stmt.target, self._expressions.value(stmt.value))

    def _assign_slice(self, stmt: AssignSlice) -> None:
        builder = self._frame.builder
        value = self._expressions.value(stmt.value)
        old = self._frame.read(stmt.target)
        width = width_of(stmt.target.type)
        hole = ((1 << width) - 1) ^ (((1 << (stmt.hi - stmt.lo + 1)) - 1) << stmt.lo)
        kept = builder.and_(old, ll.Constant(old.type, hole))
        placed = shift_left(builder, fit(builder, value, width), stmt.lo)
        self._frame.write(stmt.target, builder.or_(kept, placed))

    def _set_valid(self, stmt: SetValid) -> None:
        self._frame.write(stmt.header.valid, constant(int(stmt.valid), stmt.header.valid.type))

    # --- control flow ---

    def _if(self, stmt: If) -> None:
        frame = self._frame
        condition = self._expressions.value(stmt.condition)
        if is_selectable(stmt):
            # A branch an assignment would cut straight-line code to pieces: lanes that are not in
            # one basic block are not vectorised, and folding hundreds of branches takes seconds.
            for body, chosen in ((stmt.then, True), (stmt.otherwise, False)):
                for assign in body:
                    assert isinstance(assign, Assign)
                    value = self._expressions.value(assign.value)
                    frame.write(
                        assign.target,
                        self._choose(condition, chosen, value, frame.read(assign.target)),
                    )
            return
        then, end = frame.block("then"), frame.block("endif")
        otherwise = frame.block("else") if stmt.otherwise else end
        frame.builder.cbranch(condition, then, otherwise)
        for block, body in ((then, stmt.then), (otherwise, stmt.otherwise)):
            if block is not end:
                frame.start(block)
                self.body(body)
                frame.go(end)
        frame.start(end)

    def _choose(self, condition: Any, chosen: bool, value: Any, old: Any) -> Any:
        """`value` where `condition` is `chosen`, else `old`."""
        builder = self._frame.builder
        if chosen and old.type == I1 and isinstance(value, ll.Constant) and value.constant:
            # A flag that is raised here and there. LLVM takes quadratic time over a chain of such
            # selects and linear time over the same chain of ors.
            return builder.or_(condition, old)
        sides = (value, old) if chosen else (old, value)
        return builder.select(condition, *sides)

    def _switch(self, stmt: Switch) -> None:
        frame = self._frame
        selector = self._expressions.value(stmt.selector)
        default, end = frame.block("default"), frame.block("endswitch")
        switch = frame.builder.switch(selector, default)
        for values, body in stmt.cases:
            case = frame.block("case")
            for value in values:
                switch.add_case(constant(value, stmt.selector.type), case)
            frame.start(case)
            self.body(body)
            frame.go(end)
        frame.start(default)
        self.body(stmt.default)
        frame.go(end)
        frame.start(end)

    def _block(self, stmt: Block) -> None:
        frame = self._frame
        end = frame.block(stmt.label)
        outer = frame.labels.get(stmt.label)
        frame.labels[stmt.label] = end
        self.body(stmt.body)
        if outer is None:
            del frame.labels[stmt.label]
        else:
            frame.labels[stmt.label] = outer
        frame.go(end)
        frame.start(end)

    def _leave(self, stmt: Leave) -> None:
        end = self._frame.labels.get(stmt.label)
        if end is None:
            raise CodegenError(f"Leave({stmt.label!r}) has no enclosing Block of that label")
        self._frame.go(end)

    # --- packet out ---

    def _emit(self, stmt: Emit) -> None:
        frame = self._frame
        valid = frame.read(stmt.header.valid)
        emit, end = frame.block("emit"), frame.block("emitted")
        frame.builder.cbranch(valid, emit, end)
        frame.start(emit)
        before = frame.load(self._emitted, I64, 8)
        emit_header(frame, stmt.header, frame.offset(self._out, before))
        after = frame.builder.add(before, i64(header_bytes(stmt.header)), flags=("nuw",))
        frame.builder.store(after, self._emitted, align=8)
        frame.go(end)
        frame.start(end)

    # --- registers and counters ---

    def _register_read(self, stmt: RegisterRead) -> None:
        frame = self._frame
        index = self._expressions.value(stmt.index)
        cell, in_range, storage = frame.register_cell(stmt.register, index)
        loaded = frame.load(cell, storage, min(storage.width // 8, 8))
        value = frame.builder.select(in_range, loaded, ll.Constant(storage, 0))
        width = width_of(stmt.register.type)
        frame.write(stmt.target, fit(frame.builder, value, width))

    def _register_write(self, stmt: RegisterWrite) -> None:
        frame = self._frame
        index = self._expressions.value(stmt.index)
        value = self._expressions.value(stmt.value)
        cell, _, storage = frame.register_cell(stmt.register, index)
        stored = fit(frame.builder, value, storage.width)
        frame.builder.store(stored, cell, align=min(storage.width // 8, 8))

    def _count(self, stmt: Count) -> None:
        frame = self._frame
        if stmt.index is None:
            return  # a direct counter counts in every lookup that hits, as in BMv2
        index = self._expressions.value(stmt.index)
        size = stmt.counter.size
        if index.type.width < size.bit_length():
            index = fit(frame.builder, index, size.bit_length())
        in_range = frame.builder.icmp_unsigned("<", index, ll.Constant(index.type, size))
        count, end = frame.block("count"), frame.block("counted")
        frame.builder.cbranch(in_range, count, end)
        frame.start(count)
        base = frame.argument_array(abi.STATE_COUNTERS, frame.layout.counters[stmt.counter])
        offset = frame.builder.mul(fit(frame.builder, index, 64), i64(abi.COUNTER_CELL_BYTES))
        bump(frame, frame.offset(base, offset))
        frame.go(end)
        frame.start(end)


# An `If` becomes selects when that costs about as much as a branch.
_SELECTABLE_ASSIGNMENTS = 2
_SELECTABLE_NODES = 8
_SELECTABLE_WIDTH = 64


def is_selectable(stmt: If) -> bool:
    """Whether both sides are a few assignments of cheap scalars, which can always be computed."""
    body = (*stmt.then, *stmt.otherwise)
    return len(body) <= _SELECTABLE_ASSIGNMENTS and all(
        isinstance(inner, Assign)
        and width_of(inner.target.type) <= _SELECTABLE_WIDTH
        and _is_cheap(inner.value)
        for inner in body
    )


def _is_cheap(expr: Expr) -> bool:
    """Few nodes, none of which can fail (lookahead) or is slow (division)."""
    nodes, stack = 0, [expr]
    while stack:
        node = stack.pop()
        nodes += 1
        if (
            nodes > _SELECTABLE_NODES
            or isinstance(node, Lookahead)
            or (isinstance(node, Binary) and node.op in ("/", "%"))
            or width_of(node.type) > _SELECTABLE_WIDTH
        ):
            return False
        stack += children(node)
    return True
