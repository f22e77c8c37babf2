"""Tables, and the keysets they share with select."""

from __future__ import annotations

from collections.abc import Sequence

from p4emu.frontend import ast
from p4emu.frontend.check_statements import Statements
from p4emu.frontend.diagnostics import similar
from p4emu.frontend.program import ActionCall, CheckedEntry, CheckedKey, CheckedTable
from p4emu.frontend.types import (
    BOOL,
    DONT_CARE,
    INT,
    BitsType,
    EnumType,
    ErrorType,
    NewType,
    SerializableEnumType,
    SetType,
    StructType,
    TupleType,
    Type,
    TypeVariable,
    VarbitType,
)

_MASKED = frozenset({"ternary", "lpm", "range", "optional"})


class TableChecks(Statements):
    """The layer of the checker for tables and keysets."""

    # --- keysets

    def keysets(self, keyset: ast.Expression, types: Sequence[Type]) -> list[ast.Expression] | None:
        """Check a keyset against the types it must match; its parts, one for each type."""
        if isinstance(keyset, ast.TupleKeyset) or (
            isinstance(keyset, ast.ListExpression) and len(types) > 1
        ):
            parts = list(keyset.elements)
        elif isinstance(keyset, ast.DontCare):
            parts = [keyset] * len(types)
        else:
            parts = [keyset]
        if isinstance(keyset, ast.PathExpression):
            # A value set over all keys at once.
            set_type = self.check(keyset)
            if isinstance(set_type, SetType) and _elements(set_type.element) == list(types):
                return [keyset]
        if len(parts) != len(types):
            self.diagnostics.error(
                keyset.source, f"{len(types)} keys need {len(types)} values, not {len(parts)}"
            )
            return None
        for part, type_ in zip(parts, types, strict=True):
            self._keyset(part, type_)
        return parts

    def _keyset(self, e: ast.Expression, wanted: Type) -> None:
        own = self.check(e)
        if isinstance(e, ast.DontCare) or wanted == DONT_CARE or own == DONT_CARE:
            return
        if isinstance(e, ast.MaskExpression | ast.RangeExpression):
            ends = (e.value, e.mask) if isinstance(e, ast.MaskExpression) else (e.low, e.high)
            base = _number(wanted)
            for end in ends:
                same = self.tables.types[end] == wanted
                if self.require(end, wanted if same else base, "the value"):
                    self._needs_constant(end)
            self.tables.types[e] = SetType(wanted)
            if isinstance(e, ast.RangeExpression):
                low, high = self.constant(e.low), self.constant(e.high)
                if isinstance(low, int) and isinstance(high, int) and low > high:
                    self.diagnostics.error(e.source, f"empty range: {low} is above {high}")
            return
        if isinstance(own, SetType):
            if own.element != wanted:
                self.diagnostics.error(e.source, f"this set holds {own.element}, not {wanted}")
            return
        base = wanted if self.convert(e, wanted) else _number(wanted)
        if self.require(e, base, "the value"):
            self._needs_constant(e)

    def _needs_constant(self, e: ast.Expression) -> None:
        if not self.known_at_compile_time(e):
            self.diagnostics.error(e.source, "the value must be known at compile time")

    # --- tables

    def table(self, d: ast.TableDeclaration) -> None:
        self._properties_once(d)
        keys = self._keys(d)
        actions = self._actions(d)
        by_name = {call.action.name: call for call in actions}
        default = None
        default_property = d.default_action
        if default_property is not None:
            default = self._call_of(default_property.action, by_name, d, {"tableonly"})
        entries = []
        entries_property = d.entries
        if entries_property is not None:
            types = [key.type for key in keys]
            if not keys:
                self.diagnostics.error(
                    entries_property.source, f"table '{d.name}' has entries but no key"
                )
            for entry in entries_property.entries:
                checked = self._entry(entry, keys, types, by_name, d)
                if checked is not None:
                    entries.append(checked)
        size = None
        for p in d.properties:
            if isinstance(p, ast.CustomProperty):
                if p.name == "size":
                    size = self.constant_int(p.value, "the size of a table")
                    if size is not None and size < 0:
                        self.diagnostics.error(p.source, "the size of a table cannot be negative")
                elif p.name in ("priority_delta", "support_timeout", "largest_priority_wins"):
                    self.constant_as(
                        p.value, INT if p.name == "priority_delta" else BOOL, f"'{p.name}'"
                    )
                else:
                    self.check(p.value)
        self.tables.tables[d] = CheckedTable(
            d,
            tuple(keys),
            tuple(actions),
            default,
            default_property is not None and default_property.const,
            tuple(entries),
            entries_property is not None and entries_property.const,
            size,
        )
        self.declare(d.name, d)

    def _properties_once(self, d: ast.TableDeclaration) -> None:
        seen: dict[str, ast.TableProperty] = {}
        for p in d.properties:
            name = p.name if isinstance(p, ast.CustomProperty) else type(p).__name__
            if name in seen:
                self.diagnostics.error(
                    p.source, "this property is there twice", f"first at {seen[name].source}"
                )
            seen.setdefault(name, p)
        if not any(isinstance(p, ast.ActionsProperty) for p in d.properties):
            self.diagnostics.error(
                d.source, f"table '{d.name}' has no actions", "add: actions = { ... }"
            )

    def _keys(self, d: ast.TableDeclaration) -> list[CheckedKey]:
        keys = []
        # Keys are computed where the table is applied.
        self.place = "control"
        for element in d.keys:
            type_ = self.check(element.expression)
            if element.match_kind not in self.match_kinds:
                self.diagnostics.error(
                    element.source,
                    f"'{element.match_kind}' is no match kind",
                    *similar(element.match_kind, self.match_kinds),
                )
            elif not _matchable(type_, element.match_kind):
                self.diagnostics.error(
                    element.expression.source,
                    f"a key of type {type_} cannot be matched '{element.match_kind}'",
                    *(("give the number a width",) if type_ == INT else ()),
                )
            keys.append(CheckedKey(element, type_, element.match_kind))
        self.place = ""
        return keys

    def _actions(self, d: ast.TableDeclaration) -> list[ActionCall]:
        actions: list[ActionCall] = []
        seen: set[str] = set()
        for ref in d.actions:
            action = self._action(ref)
            if action is None:
                continue
            if action.name in seen:
                self.diagnostics.error(ref.source, f"action '{action.name}' is listed twice")
                continue
            seen.add(action.name)
            bound = self.bind(
                self.signature(action),
                (),
                ref.arguments or (),
                ref.source,
                action.name,
                partial=True,
            )
            if bound is None:
                continue
            actions.append(ActionCall(action, bound.arguments))
        return actions

    def _action(self, ref: ast.ActionRef) -> ast.ActionDeclaration | None:
        found = self.lookup(ref.action)
        if not found:
            return None
        if not isinstance(found[0], ast.ActionDeclaration):
            self.diagnostics.error(ref.source, f"'{ref.action.name}' is no action")
            return None
        self.tables.declarations[ref.action] = found[0]
        return found[0]

    def _call_of(
        self,
        ref: ast.ActionRef,
        by_name: dict[str, ActionCall],
        d: ast.TableDeclaration,
        barred: set[str],
    ) -> ActionCall | None:
        """The action with all arguments, for a default action or an entry."""
        action = self._action(ref)
        if action is None:
            return None
        listed = by_name.get(action.name)
        if listed is None or listed.action is not action:
            self.diagnostics.error(
                ref.source,
                f"'{action.name}' is not in the actions of table '{d.name}'",
                *similar(action.name, by_name),
            )
            return None
        for listing in d.actions:
            if listing.action.name == action.name:
                for annotation in listing.annotations:
                    if annotation.name in barred:
                        self.diagnostics.error(
                            ref.source,
                            f"'{action.name}' is @{annotation.name} and cannot be used here",
                        )
        given = ref.arguments or ()
        directed = [a for a in listed.arguments if a.parameter.direction != ""]
        if len(given) == len(listed.arguments) - len(directed) and directed:
            # Written without the arguments that the list of actions already gives.
            values = [ast.Argument(ref.source, None, a.value) for a in directed if a.value]
            given = (*values, *given)
        bound = self.bind(self.signature(action), (), given, ref.source, action.name)
        if bound is None:
            return None
        for a in bound.arguments:
            if a.parameter.direction == "" and a.value is not None:
                self._needs_constant(a.value)
        return ActionCall(action, bound.arguments)

    def _entry(
        self,
        entry: ast.Entry,
        keys: Sequence[CheckedKey],
        types: Sequence[Type],
        by_name: dict[str, ActionCall],
        d: ast.TableDeclaration,
    ) -> CheckedEntry | None:
        if entry.priority is not None:
            self.constant_int(entry.priority, "a priority")
        parts = self.keysets(entry.keyset, types)
        call = self._call_of(entry.action, by_name, d, {"defaultonly"})
        if parts is None or call is None:
            return None
        for part, key in zip(parts, keys, strict=False):
            if key.match_kind == "exact" and not isinstance(part, ast.DontCare):
                if isinstance(part, ast.MaskExpression | ast.RangeExpression):
                    self.diagnostics.error(part.source, "an exact key needs one value")
            elif key.match_kind == "exact":
                self.diagnostics.error(part.source, "an exact key cannot match anything")
        return CheckedEntry(entry, tuple(parts), call)


def _elements(type_: Type) -> list[Type]:
    """The types of the keys that a value set over this type matches."""
    if isinstance(type_, StructType):
        return [f.type for f in type_.fields.values()]
    return list(type_.elements) if isinstance(type_, TupleType) else [type_]


def _number(type_: Type) -> Type:
    """What masks and ends of ranges over a type are: its bits."""
    while isinstance(type_, SerializableEnumType | NewType):
        type_ = type_.underlying
    return type_


def _matchable(type_: Type, kind: str) -> bool:
    if type_ == DONT_CARE or isinstance(type_, TypeVariable):
        return True
    base = _number(type_)
    if kind in _MASKED and kind != "optional":
        return isinstance(base, BitsType) or (kind == "ternary" and base == BOOL)
    return isinstance(base, BitsType | VarbitType | EnumType | ErrorType) or base == BOOL
