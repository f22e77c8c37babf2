"""`table.apply()`: key, lookup in the run time, direct counter, the actions' bodies.

The run time owns entries and matching; compiled code sees one `ActionEntry` (`abi.hpp`).
Entry point: `emit_apply`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir as ll

from p4emu.ir.nodes import Action, Apply, Stmt
from p4emu.jit import abi
from p4emu.jit.expressions import ExpressionEmitter
from p4emu.jit.frame import I32, I64, PTR, Frame, int_type
from p4emu.jit.image import ActionSpec
from p4emu.jit.wire import fit, i64, pack_values


def emit_apply(
    frame: Frame,
    expressions: ExpressionEmitter,
    stmt: Apply,
    body: Callable[[Sequence[Stmt]], None],
) -> None:
    """Apply a table here; `body` emits the statements of an action."""
    table = stmt.table
    builder = frame.builder
    spec = frame.layout.image.tables[frame.layout.tables[table]]
    key = frame.buffer(spec.key_bytes, f"{table.name}.key")
    values = []
    for field in table.keys:
        value = expressions.value(field.expr)
        values.append(fit(builder, value, (value.type.width + 7) // 8 * 8))
    if values:
        pack_values(frame, values, key)
    entry = builder.call(frame.runtime(abi.TABLE_LOOKUP), [frame.table_argument(table), key])
    action = frame.load(frame.offset(entry, abi.ENTRY_ACTION), I32, 4)
    if stmt.hit is not None or table.counter is not None:
        hit = frame.load(frame.offset(entry, abi.ENTRY_HIT), I32, 4)
        if stmt.hit is not None:
            frame.write(stmt.hit, builder.icmp_unsigned("!=", hit, ll.Constant(I32, 0)))
    if stmt.action is not None:
        frame.write(stmt.action, action)
    if table.counter is not None:
        _count_entry(frame, entry)
    _dispatch(frame, entry, action, list(zip(table.actions, spec.actions, strict=True)), body)


def _count_entry(frame: Frame, entry: Any) -> None:
    cell = frame.load(frame.offset(entry, abi.ENTRY_COUNTER), PTR, 8)
    count, end = frame.block("count"), frame.block("counted")
    present = frame.builder.icmp_unsigned("!=", cell, ll.Constant(PTR, None))
    frame.builder.cbranch(present, count, end)
    frame.start(count)
    bump(frame, cell)
    frame.go(end)
    frame.start(end)


def bump(frame: Frame, cell: Any) -> None:
    """Count this packet in a {packets, bytes} cell."""
    builder = frame.builder
    for offset, amount in ((abi.COUNTER_PACKETS, i64(1)), (abi.COUNTER_BYTES, frame.length)):
        pointer = frame.offset(cell, offset)
        builder.store(builder.add(frame.load(pointer, I64, 8), amount), pointer, align=8)


def _dispatch(
    frame: Frame,
    entry: Any,
    action: Any,
    actions: list[tuple[Action, ActionSpec]],
    body: Callable[[Sequence[Stmt]], None],
) -> None:
    end = frame.block("applied")
    switch = frame.builder.switch(action, end)
    for number, (node, spec) in enumerate(actions):
        if not node.body:
            continue
        case = frame.block(node.name)
        switch.add_case(ll.Constant(I32, number), case)
        frame.start(case)
        for param, place in zip(node.params, spec.params, strict=True):
            pointer = frame.offset(entry, abi.ENTRY_DATA + place.offset)
            raw = frame.load(pointer, int_type(place.storage * 8), min(place.storage, 8))
            frame.write(param, fit(frame.builder, raw, place.width))
        body(node.body)
        frame.go(end)
    frame.start(end)
