"""Lowers tables: keys, actions specialised for the table, defaults and entries.

A table is lowered once for each instance of its control, in the frame of the (first) apply: its
actions are code of that place. The control plane's view of it (names, match kinds, parameter
widths) is in the `ir.Table`.
"""

from __future__ import annotations

from typing import cast

from p4emu.frontend import ast
from p4emu.frontend.program import (
    ActionCall,
    Arguments,
    BoundArgument,
    CheckedEntry,
    CheckedKey,
    CheckedTable,
)
from p4emu.ir import nodes as ir
from p4emu.lower import externs, fold, shapes
from p4emu.lower.arguments import Passing
from p4emu.lower.errors import error, unsupported
from p4emu.lower.names import control_plane_name, key_name
from p4emu.lower.scope import DirectCounterObject, Frame, LoweredTable
from p4emu.lower.statements import Statements

DEFAULT_SIZE = 1024
"""Entries of a table that names no size, as in BMv2."""

_MATCH_KINDS = ("exact", "lpm", "ternary", "range", "optional")
_KNOWN_PROPERTIES = ("size", "counters", "largest_priority_wins", "priority_delta")
NO_ACTION = "NoAction"


def lower_table(
    lowering: Statements, declaration: ast.TableDeclaration, frame: Frame
) -> LoweredTable:
    """The table of the instance that `frame` is an activation of; `lowering.frame` is not used."""
    caller, lowering.frame = lowering.frame, frame
    try:
        return _TableLowering(lowering, declaration, frame).lower()
    finally:
        lowering.frame = caller


class _TableLowering:
    def __init__(
        self, lowering: Statements, declaration: ast.TableDeclaration, frame: Frame
    ) -> None:
        self._lowering = lowering
        self._declaration = declaration
        self._frame = frame
        assert frame.instance is not None
        self._path = frame.instance.path
        self._checked: CheckedTable = lowering.checked.table(declaration)
        self._indices: dict[ast.ActionDeclaration, int] = {}

    def lower(self) -> LoweredTable:
        declaration, checked = self._declaration, self._checked
        self._refuse_unknown_properties()
        with self._lowering.nested() as prelude:
            keys = tuple(self._key(key) for key in checked.keys)
        actions = [self._action(call) for call in checked.actions]
        default = self._default(actions)
        name = control_plane_name(self._path, declaration.name, declaration.annotations)
        self._lowering.allocator.claim(name, declaration.source)
        size = DEFAULT_SIZE if checked.size is None else checked.size
        source = declaration.source
        table = ir.Table(
            name=name,
            keys=keys,
            actions=tuple(actions),
            default=default,
            size=size,
            source=ir.Source(source.file, source.line, source.column),
            const_default=checked.const_default,
            const_entries=checked.const_entries,
        )
        table.entries = self._entries(table)
        table.counter = self._counter(name)
        self._lowering.program.tables.append(table)
        return LoweredTable(table, tuple(prelude), self._indices)

    def _refuse_unknown_properties(self) -> None:
        for property_ in self._declaration.properties:
            if not isinstance(property_, ast.CustomProperty):
                continue
            if property_.name not in _KNOWN_PROPERTIES:
                raise unsupported(property_.source, f"table property `{property_.name}`")

    # --- keys ---

    def _key(self, key: CheckedKey) -> ir.Key:
        lowering, element = self._lowering, key.element
        if key.match_kind not in _MATCH_KINDS:
            raise unsupported(element.source, f"match kind `{key.match_kind}`")
        shapes.require_scalar(lowering.substituted(key.type), element.source, "a table key")
        value = lowering.expr(element.expression)
        if value.type == ir.BOOL:
            value = fold.cast(value, ir.Bits(1))
        elif isinstance(value.type, ir.Bits) and value.type.signed:
            value = fold.cast(value, ir.Bits(value.type.width))
        name = key_name(lowering.checked, element)
        return ir.Key(name, value, cast(ir.MatchKind, key.match_kind))

    # --- actions ---

    def _action(self, call: ActionCall) -> ir.Action:
        """An action of the table: its directionless parameters come from the control plane."""
        lowering, action, activation = self._lowering, call.action, self._frame
        arguments = _without_control_plane(call.arguments)
        self._indices[action] = len(self._indices)
        frame = Frame(activation, activation.instance, exit=activation.exit, activation=activation)
        params = []
        for parameter, bound in zip(action.parameters, arguments, strict=True):
            if bound.parameter.direction == "":
                type_ = lowering.substituted(bound.parameter.type)
                scalar = shapes.require_scalar(type_, parameter.source, "an action parameter")
                name = control_plane_name("", parameter.name, parameter.annotations)
                var = lowering.local(name, scalar)
                frame.bindings[parameter] = var
                params.append(var)
        with lowering.nested() as body:
            copy_outs = lowering.bind(frame, action.parameters, arguments, Passing.COPIED)
            lowering.inline(frame, action.body.statements, action.name, copy_outs)
        return ir.Action(self._action_name(action), tuple(params), tuple(body))

    def _action_name(self, action: ast.ActionDeclaration) -> str:
        """Actions of the control have its path; those outside of controls (NoAction) have none."""
        assert self._frame.instance is not None
        is_local = any(d is action for d in self._frame.instance.declaration.locals)
        path = self._path if is_local else ""
        return control_plane_name(path, action.name, action.annotations)

    def _default(self, actions: list[ir.Action]) -> ir.ActionCall:
        default = self._checked.default
        if default is not None:
            if default.action not in self._indices:
                actions.append(self._action(default))
            return self._call(default, actions)
        for index, action in enumerate(actions):
            if action.name == NO_ACTION:
                return ir.ActionCall(index)
        actions.append(ir.Action(NO_ACTION, (), ()))
        return ir.ActionCall(len(actions) - 1)

    def _call(
        self, call: ActionCall, actions: list[ir.Action] | tuple[ir.Action, ...]
    ) -> ir.ActionCall:
        """An action with its constant arguments; those with a direction are in the action."""
        index = self._indices[call.action]
        args = tuple(
            self._constant(bound.value, param.type)
            for bound, param in zip(
                (b for b in call.arguments if b.parameter.direction == ""),
                actions[index].params,
                strict=True,
            )
        )
        return ir.ActionCall(index, args)

    def _constant(self, expression: ast.Expression | None, type_: ir.Type) -> int:
        if expression is None:
            raise error(self._declaration.source, "an action needs all of its arguments here")
        value = self._lowering.compile_time(expression, "the argument of an action here")
        return fold.wrap(value.value, type_)

    # --- counters ---

    def _counter(self, table: str) -> ir.Counter | None:
        property_ = self._declaration.custom("counters")
        if property_ is None:
            return None
        found = self._lowering.resolve(property_.value)
        if not isinstance(found, DirectCounterObject):
            raise error(property_.value.source, "`counters` must name a direct_counter")
        return externs.direct_counter(self._lowering, found, table)

    # --- entries ---

    def _entries(self, table: ir.Table) -> tuple[ir.Entry, ...]:
        entries = self._checked.entries
        priorities = self._priorities()
        return tuple(
            ir.Entry(
                tuple(
                    self._match(keyset, key)
                    for keyset, key in zip(entry.keysets, table.keys, strict=True)
                ),
                self._call(entry.action, table.actions),
                priority,
            )
            for entry, priority in zip(entries, priorities, strict=True)
        )

    def _priorities(self) -> list[int]:
        """Larger wins. Entries without a priority of their own follow the entry before them."""
        entries = self._checked.entries
        annotated = [_annotated_priority(entry.entry) for entry in entries]
        if any(priority is not None for priority in annotated):
            # BMv2's annotation, of which the smallest wins; the others have their position.
            numbers = [number if p is None else p for number, p in enumerate(annotated, start=1)]
            return [max(numbers) + 1 - priority for priority in numbers]
        if not any(entry.entry.priority is not None for entry in entries):
            return list(range(len(entries), 0, -1))
        largest_wins = self._property("largest_priority_wins", 1) != 0
        delta = self._property("priority_delta", 1)
        written: list[int] = []
        for entry in entries:
            written.append(self._priority(entry, written, largest_wins, delta))
        if largest_wins:
            return written
        # The control plane's convention is the opposite: mirror them.
        return [max(written) + 1 - priority for priority in written]

    def _priority(
        self, entry: CheckedEntry, before: list[int], largest_wins: bool, delta: int
    ) -> int:
        node = entry.entry.priority
        if node is not None:
            return self._lowering.compile_time(node, "a priority").value
        if not before:
            return 1 + delta * (len(self._checked.entries) - 1) if largest_wins else 1
        return before[-1] - delta if largest_wins else before[-1] + delta

    def _property(self, name: str, default: int) -> int:
        property_ = self._declaration.custom(name)
        if property_ is None:
            return default
        return self._lowering.compile_time(property_.value, f"`{name}`").value

    def _match(self, keyset: ast.Expression, key: ir.Key) -> ir.KeyMatch:
        """One field of an entry, as the key's match kind has it."""
        assert isinstance(key.expr.type, ir.Bits)
        width = key.expr.type.width
        ones = (1 << width) - 1
        if isinstance(keyset, ast.DontCare):
            if key.kind == "exact":
                raise error(keyset.source, "an exact key needs a value, not `_`")
            return ir.KeyMatch(0, ones if key.kind == "range" else 0)
        if isinstance(keyset, ast.MaskExpression):
            value = self._pattern(keyset.value, width)
            mask = self._pattern(keyset.mask, width)
            if key.kind == "lpm" and not _is_prefix(mask, width):
                raise error(keyset.mask.source, "the mask of an lpm key must be a prefix")
            if key.kind not in ("lpm", "ternary"):
                raise error(keyset.source, f"a mask cannot be matched by an {key.kind} key")
            return ir.KeyMatch(value & mask, mask)
        if isinstance(keyset, ast.RangeExpression):
            if key.kind != "range":
                raise error(keyset.source, f"a range cannot be matched by an {key.kind} key")
            low, high = self._pattern(keyset.low, width), self._pattern(keyset.high, width)
            return ir.KeyMatch(low, high)
        value = self._pattern(keyset, width)
        return ir.KeyMatch(value, value if key.kind == "range" else ones)

    def _pattern(self, expression: ast.Expression, width: int) -> int:
        value = self._lowering.compile_time(expression, "the key of an entry")
        return fold.pattern(value.value, width)


def _without_control_plane(arguments: Arguments) -> Arguments:
    """The arguments that belong to the action as the table has it, not to one call of it."""
    return tuple(
        BoundArgument(bound.parameter, None if bound.parameter.direction == "" else bound.value)
        for bound in arguments
    )


def _annotated_priority(entry: ast.Entry) -> int | None:
    """The number in `@priority(number)`."""
    for annotation in (*entry.annotations, *entry.action.annotations):
        if annotation.name == "priority":
            if len(annotation.tokens) != 1 or not annotation.tokens[0].text.isdecimal():
                raise error(annotation.source, "@priority takes one decimal number")
            return int(annotation.tokens[0].text)
    return None


def _is_prefix(mask: int, width: int) -> bool:
    """Whether the mask is ones followed by zeros."""
    zeros = ((1 << width) - 1) ^ mask
    return zeros & (zeros + 1) == 0
