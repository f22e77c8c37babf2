"""Names, aliases and ids of control plane objects, and P4 annotations and types as P4Info has them.

The rules are those of p4c, so that a controller that knows a program by its ids works with either:
an id is the type's prefix byte and 24 bits of a hash of the full name, or what @id says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from p4.config.v1 import p4types_pb2

from p4emu.frontend import ast
from p4emu.frontend.program import CheckedProgram
from p4emu.frontend.types import (
    BitsType,
    BoolType,
    EnumType,
    ErrorType,
    NewType,
    SerializableEnumType,
    StackType,
    StructType,
    TupleType,
    Type,
    VarbitType,
)


def one_at_a_time(key: bytes) -> int:
    """Bob Jenkins's one-at-a-time hash, 32 bits."""
    value = 0
    for byte in key:
        value = (value + byte) & 0xFFFFFFFF
        value = (value + (value << 10)) & 0xFFFFFFFF
        value ^= value >> 6
    value = (value + (value << 3)) & 0xFFFFFFFF
    value ^= value >> 11
    return (value + (value << 15)) & 0xFFFFFFFF


class Symbols:
    """All named objects of a program; add them all, then ask for ids and aliases."""

    def __init__(self) -> None:
        self._fixed: dict[tuple[int, str], int] = {}
        self._names: dict[tuple[int, str], None] = {}
        self._ids: dict[tuple[int, str], int] | None = None
        self._suffixes: dict[tuple[str, ...], int] = {}
        self._counted: set[str] = set()

    def add(self, prefix: int, name: str, annotations: ast.Annotations = ()) -> None:
        """An object of the type that `prefix` (`P4Ids.Prefix`) stands for."""
        if (prefix, name) in self._names:
            return
        self._names[prefix, name] = None
        fixed = annotation_int(annotations, "id")
        if fixed is not None:
            self._fixed[prefix, name] = fixed | prefix << 24
        if name not in self._counted:
            self._counted.add(name)
            parts = tuple(reversed(name.split(".")))
            for length in range(1, len(parts) + 1):
                suffix = parts[:length]
                self._suffixes[suffix] = self._suffixes.get(suffix, 0) + 1

    def id(self, prefix: int, name: str) -> int:
        if self._ids is None:
            self._ids = dict(self._fixed)
            taken = set(self._fixed.values())
            # Sorted, because which of two colliding names moves on must not depend on the program.
            for kind, other in sorted(self._names):
                if (kind, other) in self._fixed:
                    continue
                value = one_at_a_time(other.encode())
                while (kind << 24 | value & 0xFFFFFF) in taken:
                    value += 1
                self._ids[kind, other] = kind << 24 | value & 0xFFFFFF
                taken.add(self._ids[kind, other])
        return self._ids[prefix, name]

    def alias(self, name: str) -> str:
        """The shortest suffix, in whole components, that no other object's name has."""
        parts = tuple(reversed(name.split(".")))
        for length in range(1, len(parts)):
            if self._suffixes[parts[:length]] < 2:
                return ".".join(reversed(parts[:length]))
        return name


# --- annotations


def find(annotations: ast.Annotations, name: str) -> ast.Annotation | None:
    """The annotation of this name, if there is one."""
    return next((a for a in annotations if a.name == name), None)


def annotation_int(annotations: ast.Annotations, name: str) -> int | None:
    """The number in `@name(number)`, if there is that."""
    annotation = find(annotations, name)
    if annotation is None or len(annotation.tokens) != 1:
        return None
    text = annotation.tokens[0].text.replace("_", "").partition("w")
    try:
        return int(text[2] or text[0], 0)
    except ValueError:
        return None


def full_name(path: str, name: str, annotations: ast.Annotations) -> str:
    """`path.name`, the name replaced by @name; all of it if @name begins with a dot."""
    annotation = find(annotations, "name")
    if annotation is not None and annotation.string is not None:
        name = annotation.string
        if name.startswith("."):
            return name[1:]
    return f"{path}.{name}" if path else name


def annotate(
    message: Any, annotations: ast.Annotations, skip: Callable[[str], bool] = lambda name: False
) -> None:
    """Put annotations and documentation into a message that has fields for them."""
    for a in annotations:
        if a.structured:
            structured = message.structured_annotations.add(name=a.name)
            for expression in a.expressions:
                _literal(expression, structured.expression_list.expressions.add())
            for pair in a.pairs:
                _literal(pair.value, structured.kv_pair_list.kv_pairs.add(key=pair.name).value)
        elif a.name in ("brief", "description"):
            if "doc" in message.DESCRIPTOR.fields_by_name and a.string is not None:
                setattr(message.doc, a.name, a.string)
        elif a.name not in ("name", "id") and not skip(a.name):
            message.annotations.append(_text(a))


def _text(a: ast.Annotation) -> str:
    if not a.tokens:
        return f"@{a.name}"
    texts = [_quoted(t.text) if t.kind == "STRING_LITERAL" else t.text for t in a.tokens]
    return f"@{a.name}({' '.join(texts)})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _literal(expression: ast.Expression, message: Any) -> None:
    if isinstance(expression, ast.IntLiteral):
        message.int64_value = expression.value
    elif isinstance(expression, ast.BoolLiteral):
        message.bool_value = expression.value
    elif isinstance(expression, ast.StringLiteral):
        message.string_value = expression.value


# --- types


def translation(type_: NewType) -> tuple[str, int | None] | None:
    """The URI and the controller's width (None: a string) of @p4runtime_translation."""
    annotation = find(type_.declaration.annotations, "p4runtime_translation")
    if annotation is None or not annotation.tokens:
        return None
    numbers = [t.text for t in annotation.tokens[1:] if t.kind == "INTEGER"]
    return annotation.tokens[0].text, int(numbers[0], 0) if numbers else None


def width(type_: Type) -> int:
    """Bits of a value as the control plane sees it; 0 for strings and errors."""
    if isinstance(type_, NewType):
        translated = translation(type_)
        if translated is not None:
            return translated[1] or 0
        return width(type_.underlying)
    if isinstance(type_, SerializableEnumType):
        return width(type_.underlying)
    if isinstance(type_, BitsType | VarbitType):
        return type_.width
    return 1 if isinstance(type_, BoolType) else 0


def to_bytes(value: int, bits: int) -> bytes:
    """A value padded to its type's width, as p4c writes them into P4Info."""
    return (value & ((1 << bits) - 1)).to_bytes(max(1, (bits + 7) // 8), "big")


class TypeInfo:
    """Fills the `type_info` of a P4Info with the named types that are used."""

    def __init__(self, checked: CheckedProgram, message: p4types_pb2.P4TypeInfo) -> None:
        self._checked = checked
        self._message = message

    def name(self, type_: Type) -> str | None:
        """The name a field of this type refers to it by, if it has one; declares the type."""
        if isinstance(type_, NewType | SerializableEnumType | EnumType):
            self.spec(type_)
        return type_.name if isinstance(type_, NewType | EnumType) else None

    def spec(self, type_: Type) -> p4types_pb2.P4DataTypeSpec:
        """The P4DataTypeSpec of a type; named types in it are declared."""
        spec = p4types_pb2.P4DataTypeSpec()
        if isinstance(type_, BitsType):
            if type_.signed:
                spec.bitstring.int.bitwidth = type_.width
            else:
                spec.bitstring.bit.bitwidth = type_.width
        elif isinstance(type_, VarbitType):
            spec.bitstring.varbit.max_bitwidth = type_.width
        elif isinstance(type_, BoolType):
            spec.bool.SetInParent()
        elif isinstance(type_, TupleType):
            spec.tuple.SetInParent()
            spec.tuple.members.extend(self.spec(element) for element in type_.elements)
        elif isinstance(type_, StructType):
            getattr(spec, type_.kind).name = type_.name
            self._struct(type_)
        elif isinstance(type_, StackType) and isinstance(type_.element, StructType):
            kind = type_.element.kind
            stack = getattr(spec, f"{kind}_stack")
            getattr(stack, kind).name = type_.element.name
            stack.size = type_.size
            self._struct(type_.element)
        elif isinstance(type_, EnumType):
            spec.enum.name = type_.name
            if type_.name not in self._message.enums:
                members = self._message.enums[type_.name].members
                for member in type_.members:
                    members.add(name=member)
        elif isinstance(type_, SerializableEnumType):
            spec.serializable_enum.name = type_.name
            self._serializable_enum(type_)
        elif isinstance(type_, NewType):
            spec.new_type.name = type_.name
            self._new_type(type_)
        elif isinstance(type_, ErrorType):
            spec.error.SetInParent()
            if not self._message.HasField("error"):
                self._message.error.members.extend(self._checked.errors)
        return spec

    def _struct(self, type_: StructType) -> None:
        if type_.kind == "struct":
            if type_.name not in self._message.structs:
                members = [(name, self.spec(field.type)) for name, field in type_.fields.items()]
                struct = self._message.structs[type_.name]
                for name, spec in members:
                    struct.members.add(name=name).type_spec.CopyFrom(spec)
        elif type_.kind == "header":
            if type_.name not in self._message.headers:
                header = self._message.headers[type_.name]
                for name, scalar in flattened(type_):
                    header.members.add(name=name).type_spec.CopyFrom(self.spec(scalar).bitstring)
        elif type_.name not in self._message.header_unions:
            union = self._message.header_unions[type_.name]
            for name, field in type_.fields.items():
                union.members.add(name=name).header.CopyFrom(self.spec(field.type).header)

    def _serializable_enum(self, type_: SerializableEnumType) -> None:
        if type_.name in self._message.serializable_enums:
            return
        bits = width(type_.underlying)
        enum = self._message.serializable_enums[type_.name]
        enum.underlying_type.bitwidth = bits
        for member in type_.declaration.members:
            enum.members.add(
                name=member.name, value=to_bytes(type_.values.get(member.name, 0), bits)
            )

    def _new_type(self, type_: NewType) -> None:
        if type_.name in self._message.new_types:
            return
        base: Type = type_
        while isinstance(base, NewType):
            base = base.underlying
        spec = self._message.new_types[type_.name]
        translated = translation(type_)
        if translated is None:
            spec.original_type.CopyFrom(self.spec(base))
        else:
            spec.translated_type.uri = translated[0]
            if translated[1] is None:
                spec.translated_type.sdn_string.SetInParent()
            else:
                spec.translated_type.sdn_bitwidth = translated[1]
        annotate(spec, type_.declaration.annotations, lambda name: name == "p4runtime_translation")


def flattened(type_: StructType) -> Iterable[tuple[str, Type]]:
    """The scalar fields of a header, those of structs in it with a dotted name."""
    for name, field in type_.fields.items():
        if isinstance(field.type, StructType):
            for inner, scalar in flattened(field.type):
                yield f"{name}.{inner}", scalar
        else:
            yield name, field.type
