"""From front-end types to IR: scalar types, storage for aggregates, constants, default values.

The IR has only `Bits` and `Bool`. Enums without values and `error` become `bit<32>`, serializable
enums and `type` newtypes become what they stand for, and aggregates become trees of places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from p4emu.frontend.program import Constant, EnumValue
from p4emu.frontend.source import Source
from p4emu.frontend.types import (
    BitsType,
    BoolType,
    EnumType,
    ErrorType,
    IntType,
    ListType,
    NewType,
    SerializableEnumType,
    StackType,
    StructType,
    TupleType,
    Type,
    TypeVariable,
)
from p4emu.ir import nodes as ir
from p4emu.lower import fold
from p4emu.lower.errors import error, unsupported
from p4emu.lower.values import (
    BoolBit,
    HeaderPlace,
    Place,
    Record,
    StackPlace,
    StructPlace,
    UnionPlace,
    Value,
)

ENUM_BITS = ir.Bits(32)
Storage = Literal["packet", "local"]


def scalar_type(type_: Type) -> ir.Type | None:
    """The IR type of a scalar, None for anything else."""
    if isinstance(type_, BitsType):
        return ir.Bits(type_.width, type_.signed)
    if isinstance(type_, BoolType):
        return ir.BOOL
    if isinstance(type_, (SerializableEnumType, NewType)):
        return scalar_type(type_.underlying)
    if isinstance(type_, (EnumType, ErrorType)):
        return ENUM_BITS
    return None


def require_scalar(type_: Type, source: Source, what: str) -> ir.Type:
    """`scalar_type`, or a CompileError that says that `what` cannot be of this type yet."""
    scalar = scalar_type(type_)
    if scalar is None:
        raise unsupported(source, f"{what} of type {type_}")
    return scalar


def substitute(type_: Type, types: Mapping[TypeVariable, Type]) -> Type:
    """The type with type variables replaced by the arguments of the activation."""
    if isinstance(type_, TypeVariable):
        return types.get(type_, type_)
    if isinstance(type_, TupleType):
        return TupleType(tuple(substitute(element, types) for element in type_.elements))
    if isinstance(type_, StackType):
        return StackType(substitute(type_.element, types), type_.size)
    if isinstance(type_, StructType) and type_.arguments:
        fields = {
            name: replace(field, type=substitute(field.type, types))
            for name, field in type_.fields.items()
        }
        arguments = tuple(substitute(argument, types) for argument in type_.arguments)
        return StructType(type_.declaration, arguments, fields)
    return type_


def has_elements(type_: Type) -> bool:
    """Whether `element_types` can be asked for the parts of the type."""
    return isinstance(type_, (StructType, TupleType, StackType))


def element_types(type_: Type) -> list[tuple[str, Type]]:
    """Names and types of the parts of an aggregate; those without names are "0", "1", ..."""
    if isinstance(type_, StructType):
        return [(name, field.type) for name, field in type_.fields.items()]
    if isinstance(type_, TupleType):
        return [(str(number), element) for number, element in enumerate(type_.elements)]
    if isinstance(type_, StackType):
        return [(str(number), type_.element) for number in range(type_.size)]
    raise AssertionError(f"{type_} has no elements")


def is_header(type_: Type) -> bool:
    return isinstance(type_, StructType) and type_.kind == "header"


def has_headers(type_: Type) -> bool:
    """Whether a variable of the type contains validity, which starts as false."""
    if isinstance(type_, StructType):
        return type_.kind != "struct" or any(has_headers(f.type) for f in type_.fields.values())
    return isinstance(type_, StackType)


class Allocator:
    """Makes variables for values of any type, and enters them in the program.

    Headers are packet variables even where their declaration is local: validity and extraction
    need an `ir.Header`, and there are few of them.
    """

    def __init__(self, program: ir.Program) -> None:
        self._program = program
        self._header_names: dict[str, int] = {}
        self._claimed: dict[str, Source] = {}

    def claim(self, name: str, source: Source) -> None:
        """Takes the control-plane name of a table or extern object, which only one may have."""
        first = self._claimed.get(name)
        if first is not None:
            raise error(
                source,
                f"two objects have the control-plane name `{name}`",
                f"the other one is at {first}",
                'give one of them another name with @name("...")',
            )
        self._claimed[name] = source

    def place(self, type_: Type, name: str, storage: Storage, source: Source) -> Place:
        """A new place. `name` is dotted, for people; `source` is for messages."""
        scalar = scalar_type(type_)
        if scalar is not None:
            var = ir.Var(name, scalar, storage)
            if storage == "packet":
                self._program.packet_vars.append(var)
            return var
        if isinstance(type_, StructType):
            if type_.kind == "header":
                return self._header(type_, name, source)
            if type_.kind == "header_union":
                return self._union(type_, name, source)
        if isinstance(type_, (StructType, TupleType)):
            return StructPlace(
                {
                    field: self.place(inner, f"{name}.{field}", storage, source)
                    for field, inner in element_types(type_)
                }
            )
        if isinstance(type_, StackType):
            elements = []
            for number in range(type_.size):
                element = self.place(type_.element, f"{name}[{number}]", storage, source)
                assert isinstance(element, (HeaderPlace, UnionPlace))
                elements.append(element)
            next_index = ir.Var(f"{name}.$next", ENUM_BITS, "packet")
            self._program.packet_vars.append(next_index)
            return StackPlace(tuple(elements), next_index)
        raise unsupported(source, f"a variable of type {type_} ({name})")

    def _header(self, type_: StructType, name: str, source: Source) -> HeaderPlace:
        count = self._header_names[name] = self._header_names.get(name, 0) + 1
        unique = name if count == 1 else f"{name}~{count}"
        wire: list[ir.Var] = []
        fields = self._header_fields(type_, unique, wire)
        valid = ir.Var(f"{unique}.$valid", ir.BOOL, "packet")
        width = sum(var.type.width for var in wire if isinstance(var.type, ir.Bits))
        if width % 8:
            raise unsupported(
                type_.declaration.source,
                f"header {type_} of {width} bits, which are not whole bytes,",
            )
        header = ir.Header(unique, tuple(wire), valid)
        self._program.headers.append(header)
        return HeaderPlace(header, fields)

    def _header_fields(self, type_: StructType, name: str, wire: list[ir.Var]) -> dict[str, Place]:
        """The places of a header's fields, whose variables are appended in wire order."""
        fields: dict[str, Place] = {}
        for field in type_.fields.values():
            scalar = scalar_type(field.type)
            if scalar is not None:
                bits = scalar if isinstance(scalar, ir.Bits) else ir.Bits(1)
                var = ir.Var(f"{name}.{field.name}", bits, "packet")
                wire.append(var)
                fields[field.name] = var if isinstance(scalar, ir.Bits) else BoolBit(var)
            elif isinstance(field.type, StructType) and field.type.kind == "struct":
                inner = self._header_fields(field.type, f"{name}.{field.name}", wire)
                fields[field.name] = StructPlace(inner)
            else:
                raise unsupported(field.declaration.source, f"a header field of type {field.type}")
        return fields

    def _union(self, type_: StructType, name: str, source: Source) -> UnionPlace:
        members: dict[str, HeaderPlace] = {}
        for field in type_.fields.values():
            member = self.place(field.type, f"{name}.{field.name}", "packet", source)
            assert isinstance(member, HeaderPlace)
            members[field.name] = member
        for member in members.values():
            others = (other.header for other in members.values() if other is not member)
            member.siblings = tuple(others)
        return UnionPlace(members)


def default_value(type_: Type, source: Source) -> Value:
    """What `...` stands for: zero, false, the first member, invalid; element by element."""
    scalar = scalar_type(type_)
    if scalar is not None:
        return ir.Const(0, scalar)
    if is_header(type_):
        return Record({}, fold.FALSE)
    if isinstance(type_, (StructType, TupleType, StackType)):
        return Record({name: default_value(t, source) for name, t in element_types(type_)})
    raise unsupported(source, f"a default value of type {type_}")


def constant_value(constant: Constant, type_: Type, errors: Sequence[str], source: Source) -> Value:
    """A compile-time constant of the front end as a value of `type_`."""
    if isinstance(constant, EnumValue):
        if isinstance(constant.type, EnumType):
            return ir.Const(constant.type.members.index(constant.name), ENUM_BITS)
        if isinstance(constant.type, ErrorType):
            return ir.Const(errors.index(constant.name), ENUM_BITS)
        raise unsupported(source, f"{constant} as a value")
    if isinstance(constant, tuple):
        if isinstance(type_, ListType):
            raise unsupported(source, f"a value of type {type_}")
        parts = zip(constant, element_types(type_), strict=True)
        return Record({name: constant_value(c, t, errors, source) for c, (name, t) in parts})
    if isinstance(constant, str):
        raise unsupported(source, "a string as a value")
    if isinstance(type_, IntType):
        # Not converted: a shift distance or the operand of a fold; give it the width it needs.
        return fold.constant(constant, ir.Bits(max(constant.bit_length() + 1, 1), constant < 0))
    scalar = require_scalar(type_, source, "a constant")
    return fold.constant(int(constant), scalar)


def convert(value: Value, type_: Type, source: Source) -> Value:
    """A value as one of `type_`: an implicit conversion or a cast.

    Lists become records with the field names of `type_`, structure expressions are put in its
    order. What they leave out (after `...`) must have been filled in with `fill`.
    """
    scalar = scalar_type(type_)
    if scalar is not None and not isinstance(value, Record):
        return fold.cast(value, scalar)
    if not isinstance(value, Record) or not has_elements(type_):
        raise unsupported(source, f"a conversion to {type_} here")
    if value.valid is not None and not value.fields:
        return value  # an invalid header
    names = [name for name, _ in element_types(type_)]
    if value.fields.keys() <= set(names):
        fields = {name: value.fields[name] for name in names if name in value.fields}
    else:
        fields = dict(zip(names, value.fields.values(), strict=False))
    valid = fold.TRUE if value.valid is None and is_header(type_) else value.valid
    return Record(fields, valid)


def fill(value: Record, type_: Type, source: Source) -> Record:
    """Adds the default values that `...` stands for at the end of a list or structure."""
    wanted = element_types(type_)
    if not value.fields.keys() <= {name for name, _ in wanted}:
        names = (name for name, _ in wanted)
        value = Record(dict(zip(names, value.fields.values(), strict=False)), value.valid)
    fields = {
        name: value.fields[name] if name in value.fields else default_value(inner, source)
        for name, inner in wanted
    }
    return Record(fields, value.valid)
