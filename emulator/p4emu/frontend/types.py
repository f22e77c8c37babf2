"""The types of P4_16 as the checker and the later stages compute with them.

A type is an immutable value; two types are the same if and only if they compare equal. Typedefs
are gone (an alias is the type it stands for); types that a declaration makes (structs, enums,
externs, ...) compare by that declaration and their type arguments. Types know nothing of syntax
except the declaration they come from.

Scalars: `BitsType`, `BoolType`, `IntType`, `VarbitType`, `StringType`, `ErrorType`, `EnumType`,
`SerializableEnumType`, `NewType`. Aggregates: `StructType` (structs, headers, header unions),
`StackType`, `TupleType`, `ListType`. Objects: `ExternType`, `ParserType`, `ControlType`,
`PackageType`, `TableType`. The rest exists only inside the checker or as types of callees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from p4emu.frontend import ast


@dataclass(frozen=True, slots=True)
class BitsType:
    """`bit<width>`, or `int<width>` when `signed`."""

    width: int
    signed: bool = False

    def __str__(self) -> str:
        return f"{'int' if self.signed else 'bit'}<{self.width}>"


@dataclass(frozen=True, slots=True)
class VarbitType:
    """`varbit<width>`: up to `width` bits."""

    width: int

    def __str__(self) -> str:
        return f"varbit<{self.width}>"


@dataclass(frozen=True, slots=True)
class BoolType:
    def __str__(self) -> str:
        return "bool"


@dataclass(frozen=True, slots=True)
class IntType:
    """Integers of arbitrary precision; only at compile time."""

    def __str__(self) -> str:
        return "int"


@dataclass(frozen=True, slots=True)
class StringType:
    def __str__(self) -> str:
        return "string"


@dataclass(frozen=True, slots=True)
class VoidType:
    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True, slots=True)
class ErrorType:
    """The one `error` type; its members are in `CheckedProgram.errors`."""

    def __str__(self) -> str:
        return "error"


@dataclass(frozen=True, slots=True)
class MatchKindType:
    def __str__(self) -> str:
        return "match_kind"


@dataclass(frozen=True, slots=True)
class DontCareType:
    """The type of `_` and of a type that is still unknown after an error."""

    def __str__(self) -> str:
        return "_"


@dataclass(frozen=True, slots=True)
class TypeVariable:
    """A type parameter inside its generic declaration."""

    name: str
    declaration: ast.TypeParameter

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct, header or union, with its type after substitution."""

    name: str
    type: Type
    declaration: ast.StructField


def _suffix(arguments: tuple[Type, ...]) -> str:
    return f"<{', '.join(map(str, arguments))}>" if arguments else ""


@dataclass(frozen=True, slots=True)
class StructType:
    """A struct, header or header union; `fields` by name, in order of declaration."""

    declaration: ast.StructDeclaration
    arguments: tuple[Type, ...] = ()
    fields: Mapping[str, Field] = field(default_factory=dict, compare=False, repr=False)

    @property
    def kind(self) -> Literal["struct", "header", "header_union"]:
        return self.declaration.kind

    @property
    def name(self) -> str:
        return self.declaration.name

    def __str__(self) -> str:
        return self.name + _suffix(self.arguments)


@dataclass(frozen=True, slots=True)
class StackType:
    """`element[size]`, element a header or header union."""

    element: Type
    size: int

    def __str__(self) -> str:
        return f"{self.element}[{self.size}]"


@dataclass(frozen=True, slots=True)
class TupleType:
    """`tuple<...>`; also the own type of a list expression."""

    elements: tuple[Type, ...]

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.elements))}>"


@dataclass(frozen=True, slots=True)
class StructExpressionType:
    """The own type of `{a = 1, b = 2}` before it is converted to a struct or header."""

    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return "{" + ", ".join(f"{name} = {type_}" for name, type_ in self.fields) + "}"


@dataclass(frozen=True, slots=True)
class InvalidHeaderType:
    """The own type of `{#}`."""

    def __str__(self) -> str:
        return "{#}"


@dataclass(frozen=True, slots=True)
class ListType:
    """`list<element>`; only at compile time."""

    element: Type

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class SetType:
    """The type of a keyset expression over `element`; a value set's type."""

    element: Type

    def __str__(self) -> str:
        return f"set<{self.element}>"


@dataclass(frozen=True, slots=True)
class EnumType:
    """An enum without values; members are numbered from 0 in order of `declaration.members`."""

    declaration: ast.EnumDeclaration

    @property
    def name(self) -> str:
        return self.declaration.name

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.declaration.members)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class SerializableEnumType:
    """An enum over `underlying`; `values` by member name, wrapped to the underlying type."""

    declaration: ast.EnumDeclaration
    underlying: Type
    values: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.declaration.name

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class NewType:
    """A type made by `type underlying name;`."""

    declaration: ast.NewtypeDeclaration
    underlying: Type

    @property
    def name(self) -> str:
        return self.declaration.name

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ParameterType:
    """A parameter with its type after substitution."""

    name: str
    direction: ast.Direction
    type: Type
    declaration: ast.Parameter

    def __str__(self) -> str:
        return f"{self.direction} {self.type} {self.name}".lstrip()


@dataclass(frozen=True, slots=True)
class ExternType:
    """The type of an extern object, e.g. `register<bit<32>>`."""

    declaration: ast.ExternDeclaration
    arguments: tuple[Type, ...] = ()

    @property
    def name(self) -> str:
        return self.declaration.name

    def __str__(self) -> str:
        return self.name + _suffix(self.arguments)


@dataclass(frozen=True, slots=True)
class ParserType:
    """A parser, or (declaration a ParserTypeDeclaration) the interface of parsers.

    `parameters` are those of apply.
    """

    declaration: ast.ParserDeclaration | ast.ParserTypeDeclaration
    arguments: tuple[Type, ...] = ()
    parameters: tuple[ParameterType, ...] = field(default=(), compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.declaration.name

    def __str__(self) -> str:
        return self.name + _suffix(self.arguments)


@dataclass(frozen=True, slots=True)
class ControlType:
    """A control, or (declaration a ControlTypeDeclaration) the interface of controls."""

    declaration: ast.ControlDeclaration | ast.ControlTypeDeclaration
    arguments: tuple[Type, ...] = ()
    parameters: tuple[ParameterType, ...] = field(default=(), compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.declaration.name

    def __str__(self) -> str:
        return self.name + _suffix(self.arguments)


@dataclass(frozen=True, slots=True)
class PackageType:
    declaration: ast.PackageDeclaration
    arguments: tuple[Type, ...] = ()
    parameters: tuple[ParameterType, ...] = field(default=(), compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.declaration.name

    def __str__(self) -> str:
        return self.name + _suffix(self.arguments)


@dataclass(frozen=True, slots=True)
class TableType:
    """A table as a value: it can be applied, and nothing else."""

    declaration: ast.TableDeclaration

    def __str__(self) -> str:
        return f"table {self.declaration.name}"


@dataclass(frozen=True, slots=True)
class ApplyResultType:
    """What `table.apply()` gives: members `hit`, `miss` (bool) and `action_run`."""

    declaration: ast.TableDeclaration

    def __str__(self) -> str:
        return f"result of {self.declaration.name}.apply()"


@dataclass(frozen=True, slots=True)
class ActionEnumType:
    """The type of `table.apply().action_run`: the actions of the table."""

    declaration: ast.TableDeclaration

    def __str__(self) -> str:
        return f"action_run of {self.declaration.name}"


@dataclass(frozen=True, slots=True)
class CallableType:
    """The type of a callee or a state's name: never of a value."""

    what: str

    def __str__(self) -> str:
        return self.what


Type: TypeAlias = (
    BitsType
    | VarbitType
    | BoolType
    | IntType
    | StringType
    | VoidType
    | ErrorType
    | MatchKindType
    | DontCareType
    | TypeVariable
    | StructType
    | StackType
    | TupleType
    | StructExpressionType
    | InvalidHeaderType
    | ListType
    | SetType
    | EnumType
    | SerializableEnumType
    | NewType
    | ExternType
    | ParserType
    | ControlType
    | PackageType
    | TableType
    | ApplyResultType
    | ActionEnumType
    | CallableType
)

BOOL = BoolType()
INT = IntType()
STRING = StringType()
VOID = VoidType()
ERROR = ErrorType()
MATCH_KIND = MatchKindType()
DONT_CARE = DontCareType()
INVALID_HEADER = InvalidHeaderType()
BIT32 = BitsType(32)
