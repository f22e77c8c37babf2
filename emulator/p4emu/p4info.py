"""P4Info: what the control plane of a checked program consists of.

`p4info` makes the message that p4c makes for the v1model architecture: the same objects with the
same names, aliases and ids. Like p4c it sees the program after inlining: an object of a control
instance is named after the instance, the control it is in, and so on up to the top one; tables that
are never applied and actions that nothing uses are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from p4.config.v1 import p4info_pb2

from p4emu.frontend import ast
from p4emu.frontend.diagnostics import Diagnostics
from p4emu.frontend.program import (
    ActionCall,
    BlockApply,
    CheckedProgram,
    CheckedTable,
    Construction,
    ExternFunctionCall,
    TableApply,
)
from p4emu.frontend.source import Source
from p4emu.frontend.types import (
    BitsType,
    BoolType,
    ControlType,
    ExternType,
    NewType,
    ParserType,
    SerializableEnumType,
    StructType,
)
from p4emu.p4info_symbols import (
    Symbols,
    TypeInfo,
    annotate,
    annotation_int,
    find,
    flattened,
    full_name,
    to_bytes,
    width,
)

PREFIX = p4info_pb2.P4Ids
DEFAULT_TABLE_SIZE = 1024
"""Size of a v1model table that has none."""

_MATCH_TYPES = {
    "exact": p4info_pb2.MatchField.EXACT,
    "lpm": p4info_pb2.MatchField.LPM,
    "ternary": p4info_pb2.MatchField.TERNARY,
    "range": p4info_pb2.MatchField.RANGE,
    "optional": p4info_pb2.MatchField.OPTIONAL,
}


@dataclass(frozen=True, slots=True)
class _Block:
    """A parser or control instance: its declaration, its path, and its constructor arguments."""

    declaration: ast.ParserDeclaration | ast.ControlDeclaration
    path: str
    arguments: dict[ast.Parameter, ast.Expression]
    outer: _Block | None = None


@dataclass(slots=True)
class _Objects:
    """What was found, in the order of the text, each with its full name."""

    tables: list[tuple[str, ast.TableDeclaration, _Block]] = field(default_factory=list)
    actions: dict[str, tuple[ast.ActionDeclaration, bool]] = field(default_factory=dict)
    externs: list[tuple[str, ast.Instantiation, _Block | None]] = field(default_factory=list)
    value_sets: list[tuple[str, ast.ValueSetDeclaration, _Block]] = field(default_factory=list)
    digests: dict[str, Any] = field(default_factory=dict)
    headers: list[ast.StructDeclaration] = field(default_factory=list)


def p4info(checked: CheckedProgram) -> p4info_pb2.P4Info:
    """The P4Info of a checked v1model program; empty but for types if it has no `main`.

    Raises
    ------
    CompileError
        A size is too large for a P4Info.
    """
    return _Generator(checked).run()


class _Generator:
    def __init__(self, checked: CheckedProgram) -> None:
        self._checked = checked
        self._info = p4info_pb2.P4Info()
        self._types = TypeInfo(checked, self._info.type_info)
        self._symbols = Symbols()
        self._objects = _Objects()
        calls = checked.tables.calls
        self._applied = {c.table for c in calls.values() if isinstance(c, TableApply)}

    def run(self) -> p4info_pb2.P4Info:
        checked = self._checked
        if checked.main is not None:
            for block in self._top_blocks(checked.main):
                self._collect(block)
        for d in checked.program.declarations:
            if isinstance(d, ast.Instantiation) and isinstance(
                checked.construction(d).type, ExternType
            ):
                self._objects.externs.append((full_name("", d.name, d.annotations), d, None))
            if isinstance(d, ast.StructDeclaration) and find(d.annotations, "controller_header"):
                self._objects.headers.append(d)
                self._symbols.add(PREFIX.CONTROLLER_HEADER, d.name, d.annotations)
        self._add_symbols()
        if checked.main is not None:
            self._package(checked.main)
        objects = self._objects
        for table in objects.tables:
            self._table(*table)
        for name, (action, bound) in objects.actions.items():
            self._action(name, action, bound)
        for extern in objects.externs:
            self._extern(*extern)
        for header in objects.headers:
            self._controller_header(header)
        for value_set in objects.value_sets:
            self._value_set(*value_set)
        if objects.tables or objects.externs or self._info.HasField("type_info"):
            # p4c always has the message where types could occur, even if none does.
            self._info.type_info.SetInParent()
        for name, type_ in objects.digests.items():
            digest = self._info.digests.add()
            self._preamble(digest, PREFIX.DIGEST, name, ())
            digest.type_spec.CopyFrom(self._types.spec(type_))
        return self._info

    # --- finding the objects

    def _top_blocks(self, main: ast.Instantiation) -> Iterator[_Block]:
        for argument in self._checked.construction(main).arguments:
            node: Any = argument.value
            if isinstance(node, ast.PathExpression):
                node = self._checked.declaration(node)
            if isinstance(node, ast.ConstructorCallExpression | ast.Instantiation):
                made = self._checked.construction(node)
                if isinstance(made.type, ParserType | ControlType):
                    yield self._block(made, made.type.name, None)

    def _block(self, made: Construction, path: str, outer: _Block | None) -> _Block:
        declaration: Any = made.type.declaration  # type: ignore[union-attr]
        arguments = {a.parameter.declaration: a.value for a in made.arguments if a.value}
        return _Block(declaration, path, arguments, outer)

    def _collect(self, block: _Block) -> None:
        objects = self._objects
        for local in block.declaration.locals:
            if isinstance(local, ast.ValueSetDeclaration):
                name = full_name(block.path, local.name, local.annotations)
                objects.value_sets.append((name, local, block))
            elif isinstance(local, ast.TableDeclaration):
                if local in self._applied:
                    name = full_name(block.path, local.name, local.annotations)
                    objects.tables.append((name, local, block))
            elif isinstance(local, ast.Instantiation):
                made = self._checked.construction(local)
                name = full_name(block.path, local.name, local.annotations)
                if isinstance(made.type, ExternType):
                    objects.externs.append((name, local, block))
                elif isinstance(made.type, ParserType | ControlType):
                    self._collect(self._block(made, name, block))
        if isinstance(block.declaration, ast.ControlDeclaration):
            self._collect_uses(block)

    def _collect_uses(self, block: _Block) -> None:
        """Actions that tables or the body use, digests, and controls applied by their type."""
        checked = self._checked
        declaration = block.declaration
        assert isinstance(declaration, ast.ControlDeclaration)
        for local in declaration.locals:
            if isinstance(local, ast.TableDeclaration) and local in self._applied:
                table = checked.table(local)
                for call in (*table.actions, *([table.default] if table.default else ())):
                    self._use(block, call.action, direct=False)
                if table.default is None:
                    for d in checked.program.declarations:
                        if isinstance(d, ast.ActionDeclaration) and d.name == "NoAction":
                            self._use(block, d, direct=False)
        for node in _walk(declaration.body):
            if not isinstance(node, ast.CallExpression):
                continue
            called = checked.call(node)
            if isinstance(called, ActionCall):
                self._use(block, called.action, direct=True)
            elif isinstance(called, ExternFunctionCall):
                self._extern_function(called)
            elif isinstance(called, BlockApply) and called.instance is None:
                inner: Any = called.type.declaration
                self._collect(_Block(inner, f"{block.path}.{inner.name}", {}, block))
        for action in declaration.locals:
            if isinstance(action, ast.ActionDeclaration):
                for node in _walk(action.body):
                    if isinstance(node, ast.CallExpression):
                        called = checked.call(node)
                        if isinstance(called, ExternFunctionCall):
                            self._extern_function(called)

    def _extern_function(self, call: ExternFunctionCall) -> None:
        # p4c has the message from its first look at a call on, whatever is called.
        self._info.type_info.SetInParent()
        if call.function.name == "digest":
            type_ = call.type_arguments[0]
            name = getattr(type_, "name", None) or f"digest_{len(self._objects.digests)}"
            self._objects.digests.setdefault(name, type_)

    def _use(self, block: _Block, action: ast.ActionDeclaration, *, direct: bool) -> None:
        name = self._action_name(block, action)
        known = self._objects.actions.get(name)
        if find(action.annotations, "hidden"):
            return
        # An action that is only called has all its parameters bound: the control plane sees none.
        bound = direct and (known is None or known[1])
        self._objects.actions[name] = (action, bound)

    def _action_name(self, block: _Block, action: ast.ActionDeclaration) -> str:
        local = action in block.declaration.locals
        return full_name(block.path if local else "", action.name, action.annotations)

    def _add_symbols(self) -> None:
        symbols, objects = self._symbols, self._objects
        for name, (action, _) in objects.actions.items():
            symbols.add(PREFIX.ACTION, name, action.annotations)
        for name, table, _ in objects.tables:
            symbols.add(PREFIX.TABLE, name, table.annotations)
            implementation = table.custom("implementation")
            if implementation is not None and isinstance(
                implementation.value, ast.ConstructorCallExpression
            ):
                own = full_name("", "implementation", implementation.annotations)
                symbols.add(PREFIX.ACTION_PROFILE, own, implementation.annotations)
        for name, instance, _ in objects.externs:
            kind = _EXTERNS.get(self._extern_name(instance))
            if kind is not None:
                symbols.add(kind, name, instance.annotations)
        for name, value_set, _ in objects.value_sets:
            symbols.add(PREFIX.VALUE_SET, name, value_set.annotations)
        for name in objects.digests:
            symbols.add(PREFIX.DIGEST, name)

    def _extern_name(self, instance: ast.Instantiation) -> str:
        type_ = self._checked.construction(instance).type
        return type_.name if isinstance(type_, ExternType) else ""

    # --- messages

    def _preamble(
        self, message: Any, prefix: int, name: str, annotations: ast.Annotations, *skip: str
    ) -> None:
        preamble = message.preamble
        preamble.id = self._symbols.id(prefix, name)
        preamble.name = name
        preamble.alias = self._symbols.alias(name)
        annotate(preamble, annotations, lambda other: other in skip)

    def _package(self, main: ast.Instantiation) -> None:
        package = self._info.pkg_info
        made = self._checked.construction(main).type
        package.arch = "v1model" if str(made).startswith("V1Switch") else str(made)
        for name, value in _pairs(find(main.annotations, "pkginfo")):
            if isinstance(value, str) and name in _PACKAGE_FIELDS:
                setattr(package, name, value)
        for name, value in _pairs(find(main.annotations, "platform_property")):
            if isinstance(value, int) and name in _PLATFORM_FIELDS:
                setattr(package.platform_properties, name, value)
        rest = tuple(a for a in main.annotations if a.name not in ("pkginfo", "platform_property"))
        annotate(package, rest)

    def _table(self, name: str, d: ast.TableDeclaration, block: _Block) -> None:
        if find(d.annotations, "hidden"):
            return
        table = self._checked.table(d)
        message = self._info.tables.add()
        self._preamble(message, PREFIX.TABLE, name, d.annotations)
        message.size = self._checked_size(table.size or DEFAULT_TABLE_SIZE, d.source, 64)
        self._default(message, table, block)
        ids = _field_ids([key.element.annotations for key in table.keys])
        for key, identity in zip(table.keys, ids, strict=True):
            if key.match_kind == "selector":
                continue
            match = message.match_fields.add(
                id=identity, name=_key_name(self._checked, key.element)
            )
            annotate(match, key.element.annotations)
            match.bitwidth = width(key.type)
            if key.match_kind in _MATCH_TYPES:
                match.match_type = _MATCH_TYPES[key.match_kind]
            else:
                match.other_match_type = key.match_kind
            type_name = self._types.name(key.type)
            if type_name is not None and isinstance(key.type, NewType):
                match.type_name.name = type_name
        message.is_const_table = table.const_entries
        message.has_initial_entries = bool(table.entries)
        implementation = d.custom("implementation")
        if implementation is not None:
            self._implementation(message, name, implementation, block)
        for prop in ("counters", "meters"):
            attached = d.custom(prop)
            if attached is not None and isinstance(attached.value, ast.PathExpression):
                instance = self._checked.declaration(attached.value)
                if isinstance(instance, ast.Instantiation):
                    self._direct_resource(message, instance, block)
        timeout = d.custom("support_timeout")
        if timeout is not None and self._checked.constant(timeout.value):
            message.idle_timeout_behavior = p4info_pb2.Table.NOTIFY_CONTROL

    def _default(self, message: Any, table: CheckedTable, block: _Block) -> None:
        refs = {ref.action.name: ref for ref in table.declaration.actions}
        for call in table.actions:
            annotations = refs[call.action.name].annotations if call.action.name in refs else ()
            ref = message.action_refs.add(
                id=self._symbols.id(PREFIX.ACTION, self._action_name(block, call.action))
            )
            annotate(ref, annotations)
            if find(annotations, "tableonly"):
                ref.scope = p4info_pb2.ActionRef.TABLE_ONLY
            elif find(annotations, "defaultonly"):
                ref.scope = p4info_pb2.ActionRef.DEFAULT_ONLY
        default = table.default
        if default is None:
            identity = self._symbols.id(PREFIX.ACTION, "NoAction")
            if all(ref.id != identity for ref in message.action_refs):
                message.action_refs.add(
                    id=identity,
                    scope=p4info_pb2.ActionRef.DEFAULT_ONLY,
                    annotations=["@defaultonly"],
                )
            message.initial_default_action.action_id = identity
            return
        identity = self._symbols.id(PREFIX.ACTION, self._action_name(block, default.action))
        message.initial_default_action.action_id = identity
        if table.const_default:
            message.const_default_action_id = identity
        supplied = [a for a in default.arguments if a.parameter.direction == ""]
        ids = _field_ids([a.parameter.declaration.annotations for a in supplied])
        for argument, parameter_id in zip(supplied, ids, strict=True):
            value = self._value(argument.value, block)
            if value is not None:
                message.initial_default_action.arguments.add(
                    param_id=parameter_id, value=to_bytes(value, width(argument.parameter.type))
                )

    def _value(self, expression: ast.Expression | None, block: _Block | None) -> int | None:
        """The integer an expression is, constructor parameters of the block taken into account."""
        if expression is None:
            return None
        value = self._checked.constant(expression)
        if isinstance(value, int):
            return int(value)
        if isinstance(expression, ast.CastExpression):
            return self._value(expression.operand, block)
        if isinstance(expression, ast.PathExpression) and block is not None:
            declaration = self._checked.declaration(expression)
            if isinstance(declaration, ast.Parameter) and declaration in block.arguments:
                return self._value(block.arguments[declaration], block.outer)
        return None

    def _size(self, expression: ast.Expression | None, block: _Block | None, bits: int) -> int:
        """A size that an `int<bits>` of P4Info holds; CompileError."""
        if expression is None:
            return 0
        return self._checked_size(self._value(expression, block) or 0, expression.source, bits)

    def _checked_size(self, size: int, source: Source, bits: int) -> int:
        largest = (1 << (bits - 1)) - 1
        if not 0 <= size <= largest:
            Diagnostics({}).fatal(source, f"a size must be at most {largest}, not {size}")
        return size

    def _action(self, name: str, d: ast.ActionDeclaration, bound: bool) -> None:
        message = self._info.actions.add()
        self._preamble(message, PREFIX.ACTION, name, d.annotations)
        parameters = [p for p in d.parameters if p.direction == "" and not bound]
        ids = _field_ids([p.annotations for p in parameters])
        for p, identity in zip(parameters, ids, strict=True):
            type_ = self._checked.declared_type(p)
            param = message.params.add(id=identity, name=full_name("", p.name, p.annotations))
            annotate(param, p.annotations)
            if isinstance(type_, BitsType | BoolType | NewType | SerializableEnumType):
                param.bitwidth = width(type_)
            type_name = self._types.name(type_)
            if type_name is not None:
                param.type_name.name = type_name

    def _implementation(
        self, message: Any, table: str, prop: ast.CustomProperty, block: _Block
    ) -> None:
        if isinstance(prop.value, ast.ConstructorCallExpression):
            name = full_name("", "implementation", prop.annotations)
            self._profile(name, self._checked.construction(prop.value), prop.annotations, block)
        elif isinstance(prop.value, ast.PathExpression):
            instance = self._checked.declaration(prop.value)
            assert isinstance(instance, ast.Instantiation)
            name = self._instance_name(block, instance)
        else:
            return
        message.implementation_id = self._symbols.id(PREFIX.ACTION_PROFILE, name)

    def _profile(
        self, name: str, made: Construction, annotations: ast.Annotations, block: _Block | None
    ) -> None:
        message = self._info.action_profiles.add()
        skip = ("max_group_size", "selector_size_semantics", "max_member_weight")
        self._preamble(message, PREFIX.ACTION_PROFILE, name, annotations, *skip)
        message.with_selector = isinstance(made.type, ExternType) and (
            made.type.name == "action_selector"
        )
        for argument in made.arguments:
            if argument.parameter.name == "size":
                message.size = self._size(argument.value, block, 64)
        if message.with_selector:
            message.max_group_size = annotation_int(annotations, "max_group_size") or 0
            semantics = find(annotations, "selector_size_semantics")
            kind = (semantics.string or "").lower() if semantics else ""
            if kind in ("sum_of_weights", "sum_of_members"):
                getattr(message, kind).SetInParent()
            weight = annotation_int(annotations, "max_member_weight")
            if kind == "sum_of_members" and weight is not None:
                message.sum_of_members.max_member_weight = weight
        for other, table, where in self._objects.tables:
            prop = table.custom("implementation")
            if prop is not None and self._implementation_name(prop, where) == name:
                message.table_ids.append(self._symbols.id(PREFIX.TABLE, other))

    def _implementation_name(self, prop: ast.CustomProperty, block: _Block) -> str:
        if isinstance(prop.value, ast.PathExpression):
            instance = self._checked.declaration(prop.value)
            if isinstance(instance, ast.Instantiation):
                return self._instance_name(block, instance)
        return full_name("", "implementation", prop.annotations)

    def _instance_name(self, block: _Block, instance: ast.Instantiation) -> str:
        local = instance in block.declaration.locals
        return full_name(block.path if local else "", instance.name, instance.annotations)

    def _direct_resource(self, table: Any, instance: ast.Instantiation, block: _Block) -> None:
        made = self._checked.construction(instance)
        name = self._instance_name(block, instance)
        if self._extern_name(instance) == "direct_counter":
            message: Any = self._info.direct_counters.add()
            prefix = PREFIX.DIRECT_COUNTER
        else:
            message = self._info.direct_meters.add()
            prefix = PREFIX.DIRECT_METER
        self._preamble(message, prefix, name, instance.annotations)
        self._unit(message, made)
        message.direct_table_id = table.preamble.id
        table.direct_resource_ids.append(message.preamble.id)

    def _unit(self, message: Any, made: Construction) -> None:
        for argument in made.arguments:
            if argument.parameter.name == "type" and argument.value is not None:
                value = self._checked.constant(argument.value)
                unit = getattr(value, "name", "")
                if isinstance(message, p4info_pb2.Counter | p4info_pb2.DirectCounter):
                    unit = {"packets_and_bytes": "both"}.get(unit, unit)
                message.spec.unit = message.spec.Unit.Value(unit.upper())

    def _extern(self, name: str, instance: ast.Instantiation, block: _Block | None) -> None:
        made = self._checked.construction(instance)
        assert isinstance(made.type, ExternType)
        kind = made.type.name
        if kind in ("action_profile", "action_selector"):
            self._profile(name, made, instance.annotations, block)
            return
        collection: Any = {
            "counter": self._info.counters,
            "meter": self._info.meters,
            "register": self._info.registers,
        }.get(kind)
        if collection is None:
            return
        message = collection.add()
        self._preamble(message, _EXTERNS[kind], name, instance.annotations)
        message.size = self._size(made.arguments[0].value, block, 32 if kind == "register" else 64)
        index = len(made.type.arguments) - 1
        if kind == "register":
            message.type_spec.CopyFrom(self._types.spec(made.type.arguments[0]))
            index = 1 if len(made.type.arguments) > 1 else -1
        else:
            self._unit(message, made)
        if index >= 0 and isinstance(made.type.arguments[index], NewType):
            type_name = self._types.name(made.type.arguments[index])
            message.index_type_name.name = type_name or ""

    def _controller_header(self, d: ast.StructDeclaration) -> None:
        annotation = find(d.annotations, "controller_header")
        assert annotation is not None
        type_ = _struct_type(self._checked, d)
        message = self._info.controller_packet_metadata.add()
        preamble = message.preamble
        preamble.id = self._symbols.id(PREFIX.CONTROLLER_HEADER, d.name)
        preamble.name = preamble.alias = annotation.string or d.name
        annotate(preamble, d.annotations)
        fields = list(flattened(type_)) if type_ else []
        declared = {f.name: f.annotations for f in d.fields}
        annotations = [declared.get(name, ()) for name, _ in fields]
        ids = _field_ids(annotations)
        for (name, scalar), own, identity in zip(fields, annotations, ids, strict=True):
            if find(own, "hidden"):
                continue
            metadata = message.metadata.add(id=identity, name=full_name("", name, own))
            annotate(metadata, own)
            metadata.bitwidth = width(scalar)
            type_name = self._types.name(scalar)
            if type_name is not None:
                metadata.type_name.name = type_name

    def _value_set(self, name: str, d: ast.ValueSetDeclaration, block: _Block) -> None:
        message = self._info.value_sets.add()
        self._preamble(message, PREFIX.VALUE_SET, name, d.annotations)
        message.size = self._size(d.size, block, 32)
        type_ = self._checked.type_of_ref(d.type)
        if isinstance(type_, BitsType):
            message.match.add(id=1, bitwidth=type_.width, match_type=p4info_pb2.MatchField.EXACT)
        elif isinstance(type_, StructType):
            fields = list(type_.fields.values())
            ids = _field_ids([f.declaration.annotations for f in fields])
            for f, identity in zip(fields, ids, strict=True):
                annotations = f.declaration.annotations
                match = message.match.add(id=identity, name=f.name, bitwidth=width(f.type))
                kind = find(annotations, "match")
                text = kind.tokens[0].text if kind and kind.tokens else "exact"
                match.match_type = _MATCH_TYPES.get(text, p4info_pb2.MatchField.EXACT)
                annotate(match, annotations, lambda other: other == "match")
        elif isinstance(type_, SerializableEnumType):
            for i, member in enumerate(type_.declaration.members):
                message.match.add(
                    id=i + 1,
                    name=member.name,
                    bitwidth=width(type_),
                    match_type=p4info_pb2.MatchField.EXACT,
                )


_EXTERNS = {
    "counter": PREFIX.COUNTER,
    "direct_counter": PREFIX.DIRECT_COUNTER,
    "meter": PREFIX.METER,
    "direct_meter": PREFIX.DIRECT_METER,
    "register": PREFIX.REGISTER,
    "action_profile": PREFIX.ACTION_PROFILE,
    "action_selector": PREFIX.ACTION_PROFILE,
}
_PACKAGE_FIELDS = frozenset({"name", "version", "organization", "contact", "url", "arch"})
_PLATFORM_FIELDS = frozenset(
    {
        "multicast_group_table_size",
        "multicast_group_table_total_replicas",
        "multicast_group_table_max_replicas_per_entry",
    }
)


_DIGITS = {16: "#x", 8: "#o", 2: "#b"}


def _field_ids(annotations: list[ast.Annotations]) -> list[int]:
    """Ids of the parts of an object: what @id says, else counted from 1 around those."""
    fixed = [annotation_int(a, "id") for a in annotations]
    taken = {identity for identity in fixed if identity is not None}
    result = []
    index = 1
    for identity in fixed:
        if identity is None:
            while index in taken:
                index += 1
            taken.add(index)
            identity = index
        else:
            index += 1
        result.append(identity)
    return result


def _pairs(annotation: ast.Annotation | None) -> Iterator[tuple[str, int | str]]:
    """What `@a(x=1, y="z")` or `@a[x=1, y="z"]` says."""
    if annotation is None:
        return
    for pair in annotation.pairs:
        if isinstance(pair.value, ast.IntLiteral | ast.StringLiteral):
            yield pair.name, pair.value.value
    tokens = annotation.tokens
    for name, equals, value in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if equals.text == "=" and value.kind == "STRING_LITERAL":
            yield name.text, value.text
        elif equals.text == "=" and value.kind == "INTEGER" and value.text.isdecimal():
            yield name.text, int(value.text)


def _key_name(checked: CheckedProgram, element: ast.KeyElement) -> str:
    annotation = find(element.annotations, "name")
    if annotation is not None and annotation.string is not None:
        return annotation.string
    return _expression_name(checked, element.expression)


def _expression_name(checked: CheckedProgram, e: ast.Expression) -> str:
    """A key's name without @name: its text, with @name of fields, and $valid$ for isValid()."""
    if isinstance(e, ast.PathExpression):
        return e.name
    if isinstance(e, ast.MemberExpression):
        base = checked.own_type(e.base)
        member = e.member
        if isinstance(base, StructType) and member in base.fields:
            annotation = find(base.fields[member].declaration.annotations, "name")
            if annotation is not None and annotation.string is not None:
                member = annotation.string
            if member.startswith("."):
                return member[1:]
        return f"{_expression_name(checked, e.base)}.{member}"
    if isinstance(e, ast.IndexExpression):
        index = _expression_name(checked, e.index)
        return f"{_expression_name(checked, e.base)}[{index}]"
    if isinstance(e, ast.SliceExpression):
        high, low = _expression_name(checked, e.high), _expression_name(checked, e.low)
        return f"{_expression_name(checked, e.base)}[{high}:{low}]"
    if isinstance(e, ast.BinaryExpression) and e.operator == "&":
        return f"{_expression_name(checked, e.left)} & {_expression_name(checked, e.right)}"
    if (
        isinstance(e, ast.CallExpression)
        and isinstance(e.callee, ast.MemberExpression)
        and e.callee.member == "isValid"
    ):
        return f"{_expression_name(checked, e.callee.base)}.$valid$"
    if isinstance(e, ast.IntLiteral) and e.base in _DIGITS:
        return format(e.value, _DIGITS[e.base])
    value = checked.constant(e)
    return str(value) if value is not None else "key"


def _struct_type(checked: CheckedProgram, d: ast.StructDeclaration) -> StructType | None:
    """The type of a header declaration."""
    for type_ in checked.tables.references.values():
        if isinstance(type_, StructType) and type_.declaration is d:
            return type_
    return None


def _walk(node: Any) -> Iterator[Any]:
    """All AST nodes below a node, without recursion."""
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, tuple):
            pending.extend(reversed(current))
        elif hasattr(current, "__slots__") and hasattr(current, "source"):
            yield current
            pending.extend(getattr(current, name) for name in reversed(current.__slots__))
