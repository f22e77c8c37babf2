"""What all parts of the checker share: the side tables, scopes, and the resolution of types.

The checker is one class cut into layers by subject, each a file: context (here), conversions,
expressions, arguments, calls, statements, tables, declarations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from p4emu.frontend import ast
from p4emu.frontend.build_expressions import MAX_WIDTH
from p4emu.frontend.diagnostics import Diagnostics, similar
from p4emu.frontend.program import SideTables
from p4emu.frontend.source import Source
from p4emu.frontend.types import (
    BOOL,
    DONT_CARE,
    ERROR,
    INT,
    MATCH_KIND,
    STRING,
    VOID,
    BitsType,
    BoolType,
    ControlType,
    EnumType,
    ErrorType,
    ExternType,
    Field,
    IntType,
    ListType,
    NewType,
    PackageType,
    ParameterType,
    ParserType,
    SerializableEnumType,
    StackType,
    StructType,
    TupleType,
    Type,
    TypeVariable,
    VarbitType,
)
from p4emu.frontend.unify import TypeArguments, substitute, substitute_parameters

MAX_STACK_SIZE = 4096
"""Elements of a header stack."""

_SIMPLE: dict[str, Type] = {
    "bool": BOOL,
    "error": ERROR,
    "int": INT,
    "match_kind": MATCH_KIND,
    "string": STRING,
    "void": VOID,
    "_": DONT_CARE,
}


@dataclass(frozen=True, slots=True)
class Signature:
    """What a callee or constructor takes and gives, in terms of its type parameters."""

    type_parameters: tuple[ast.TypeParameter, ...]
    parameters: tuple[ParameterType, ...]
    result: Type


class Scope:
    """Names declared in one block, and the enclosing scope.

    A name may have several declarations if they are functions that differ in parameters.
    """

    __slots__ = ("names", "parent", "types")

    def __init__(self, parent: Scope | None) -> None:
        self.parent = parent
        self.names: dict[str, list[Any]] = {}
        self.types: dict[str, Any] = {}


class Context:
    """State of one run of the checker."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics
        self.tables = SideTables()
        self.errors: dict[str, ast.EnumMember] = {}
        self.match_kinds: dict[str, ast.EnumMember] = {}
        self.globals = Scope(None)
        self.scope = self.globals
        # What body is being checked: "parser", "control", "action", "function", or "" for none.
        self.place = ""
        # The parsers and controls whose bodies are being checked: they cannot contain themselves.
        self.open_blocks: list[Any] = []
        self._types: dict[Any, Type] = {}
        self._signatures: dict[Any, Signature] = {}

    # --- scopes

    def open_scope(self) -> None:
        self.scope = Scope(self.scope)

    def close_scope(self) -> None:
        assert self.scope.parent is not None
        self.scope = self.scope.parent

    def declare(self, name: str, declaration: Any, *, overloads: bool = False) -> None:
        """Make a name known that is no type; complains if this scope has it already."""
        known = self.scope.names.setdefault(name, [])
        clash = self.scope.types.get(name)
        if known and not (overloads and all(_is_function(d) for d in known)):
            clash = known[0]
        if clash is not None:
            self._redeclared(name, declaration.source, clash.source)
            return
        known.append(declaration)

    def declare_type(self, name: str, declaration: Any) -> None:
        clash = self.scope.types.get(name) or next(iter(self.scope.names.get(name, ())), None)
        if clash is not None:
            self._redeclared(name, declaration.source, clash.source)
        self.scope.types[name] = declaration

    def _redeclared(self, name: str, source: Source, first: Source) -> None:
        self.diagnostics.error(source, f"'{name}' is declared again", f"first declared at {first}")

    def lookup(self, path: ast.PathExpression) -> list[Any]:
        """The declarations of a name, innermost scope only; reports when there are none."""
        scope: Scope | None = self.globals if path.absolute else self.scope
        while scope is not None:
            found = scope.names.get(path.name)
            if found:
                return found
            scope = scope.parent
        self.diagnostics.error(
            path.source,
            f"'{path.name}' is not declared",
            *similar(path.name, self._names_in_scope()),
        )
        return []

    def _names_in_scope(self) -> set[str]:
        names: set[str] = set()
        scope: Scope | None = self.scope
        while scope is not None:
            names.update(scope.names)
            scope = scope.parent
        return names

    # --- types

    def type_of_ref(self, ref: ast.TypeRef) -> Type:
        """The type that a reference names, DONT_CARE after a mistake."""
        known = self.tables.references.get(ref)
        if known is None:
            known = self.tables.references[ref] = self._resolve(ref)
        return known

    def _resolve(self, ref: ast.TypeRef) -> Type:
        if isinstance(ref, ast.NamedTypeRef):
            return self._named(ref, None)
        if isinstance(ref, ast.BitTypeRef):
            width = 1 if ref.width is None else self.width(ref.width)
            return BitsType(width, ref.signed) if width else DONT_CARE
        if isinstance(ref, ast.SimpleTypeRef):
            return _SIMPLE[ref.name]
        if isinstance(ref, ast.SpecializedTypeRef):
            arguments = tuple(self.type_of_ref(argument) for argument in ref.arguments)
            type_ = self._named(ref.base, arguments)
            self.tables.references[ref.base] = type_
            return type_
        if isinstance(ref, ast.StackTypeRef):
            return self._stack(ref)
        if isinstance(ref, ast.TupleTypeRef):
            return TupleType(tuple(self.type_of_ref(element) for element in ref.elements))
        if isinstance(ref, ast.ListTypeRef):
            return ListType(self.type_of_ref(ref.element))
        width = self.width(ref.width, minimum=0)
        return VarbitType(width)

    def width(self, expression: ast.Expression, minimum: int = 1) -> int:
        """The value of a width; 0 after a mistake."""
        value = self.constant_int(expression, "a width")
        if value is None:
            return 0
        if not minimum <= value <= MAX_WIDTH:
            self.diagnostics.error(
                expression.source, f"a width must be {minimum} to {MAX_WIDTH} bits, not {value}"
            )
            return 0
        return value

    def constant_int(self, expression: ast.Expression, what: str) -> int | None:
        """The value of an expression that must be an integer known at compile time."""
        raise NotImplementedError

    def _stack(self, ref: ast.StackTypeRef) -> Type:
        element = self.type_of_ref(ref.element)
        size = self.constant_int(ref.size, "the size of a header stack")
        if size is None or element == DONT_CARE:
            return DONT_CARE
        if not isinstance(element, StructType) or element.kind == "struct":
            self.diagnostics.error(
                ref.source, f"only headers and header unions can be stacked, not {element}"
            )
            return DONT_CARE
        if not 1 <= size <= MAX_STACK_SIZE:
            self.diagnostics.error(
                ref.size.source, f"a header stack has 1 to {MAX_STACK_SIZE} elements, not {size}"
            )
            return DONT_CARE
        return StackType(element, size)

    def _named(self, ref: ast.NamedTypeRef, arguments: tuple[Type, ...] | None) -> Type:
        scope: Scope | None = self.globals if ref.absolute else self.scope
        while scope is not None:
            declaration = scope.types.get(ref.name)
            if declaration is not None:
                return self._instance(declaration, arguments, ref)
            scope = scope.parent
        known: set[str] = set()
        scope = self.scope
        while scope is not None:
            known.update(scope.types)
            scope = scope.parent
        self.diagnostics.error(
            ref.source, f"'{ref.name}' is not the name of a type", *similar(ref.name, known)
        )
        return DONT_CARE

    def _instance(
        self, declaration: Any, arguments: tuple[Type, ...] | None, ref: ast.NamedTypeRef
    ) -> Type:
        generic = self.declared_type(declaration)
        parameters: tuple[ast.TypeParameter, ...] = getattr(declaration, "type_parameters", ())
        if arguments is None:
            return generic
        if len(arguments) != len(parameters):
            takes = f"takes {len(parameters)}" if parameters else "has no"
            self.diagnostics.error(
                ref.source,
                f"'{ref.name}' {takes} type parameters, but {len(arguments)} are given",
            )
            return DONT_CARE
        return substitute(generic, dict(zip(parameters, arguments, strict=True)))

    def declared_type(self, declaration: Any) -> Type:
        """The type a declaration makes, its own type parameters as variables."""
        known = self._types.get(declaration)
        if known is None:
            known = self._types[declaration] = self._make(declaration)
        return known

    def _make(self, d: Any) -> Type:
        if isinstance(d, ast.TypeParameter):
            return TypeVariable(d.name, d)
        variables: tuple[Type, ...] = tuple(
            TypeVariable(p.name, p) for p in getattr(d, "type_parameters", ())
        )
        if isinstance(d, ast.StructDeclaration):
            return self._struct(d, variables)
        if isinstance(d, ast.EnumDeclaration):
            return self._enum(d)
        if isinstance(d, ast.TypedefDeclaration):
            if isinstance(d.type, ast.StructDeclaration | ast.EnumDeclaration):
                return self.declared_type(d.type)
            return self.type_of_ref(d.type)
        if isinstance(d, ast.NewtypeDeclaration):
            underlying = self.type_of_ref(d.type)
            if not isinstance(
                underlying,
                BitsType | BoolType | VarbitType | ErrorType | NewType | SerializableEnumType,
            ):
                if underlying != DONT_CARE:
                    self.diagnostics.error(
                        d.source, f"'type' makes new types of scalars, not of {underlying}"
                    )
                return DONT_CARE
            return NewType(d, underlying)
        if isinstance(d, ast.ExternDeclaration):
            return ExternType(d, variables)
        self.open_scope()
        for parameter in d.type_parameters:
            self.declare_type(parameter.name, parameter)
        parameters = self.parameter_types(d.parameters)
        self.close_scope()
        if isinstance(d, ast.ParserDeclaration | ast.ParserTypeDeclaration):
            return ParserType(d, variables, parameters)
        if isinstance(d, ast.ControlDeclaration | ast.ControlTypeDeclaration):
            return ControlType(d, variables, parameters)
        return PackageType(d, variables, parameters)

    def _struct(self, d: ast.StructDeclaration, variables: tuple[Type, ...]) -> Type:
        self.open_scope()
        for parameter in d.type_parameters:
            self.declare_type(parameter.name, parameter)
        fields: dict[str, Field] = {}
        for f in d.fields:
            type_ = self.type_of_ref(f.type)
            if f.name in fields:
                self._redeclared(f.name, f.source, fields[f.name].declaration.source)
            elif not _can_be_field(d.kind, type_):
                self.diagnostics.error(f.source, f"a {d.kind} cannot have a field of type {type_}")
                type_ = DONT_CARE
            fields[f.name] = Field(f.name, type_, f)
        self.close_scope()
        return StructType(d, variables, fields)

    def _enum(self, d: ast.EnumDeclaration) -> Type:
        seen: dict[str, ast.EnumMember] = {}
        for member in d.members:
            if member.name in seen:
                self._redeclared(member.name, member.source, seen[member.name].source)
            seen[member.name] = member
        if d.underlying is None:
            return EnumType(d)
        underlying = self.type_of_ref(d.underlying)
        if not isinstance(underlying, BitsType):
            if underlying != DONT_CARE:
                self.diagnostics.error(
                    d.underlying.source,
                    f"the values of an enum are bit<W> or int<W>, not {underlying}",
                )
            return DONT_CARE
        values: dict[str, int] = {}
        for member in d.members:
            if member.value is not None:
                value = self.constant_as(member.value, underlying, f"the value of '{member.name}'")
                if isinstance(value, int):
                    values[member.name] = value
        return SerializableEnumType(d, underlying, values)

    def constant_as(self, expression: ast.Expression, type_: Type, what: str) -> Any:
        """The value of an expression that must be of this type and known at compile time."""
        raise NotImplementedError

    # --- signatures

    def parameter_types(self, parameters: tuple[ast.Parameter, ...]) -> tuple[ParameterType, ...]:
        """Parameters with their types, in the scope that is open."""
        result: list[ParameterType] = []
        seen: dict[str, ast.Parameter] = {}
        for p in parameters:
            type_ = self.type_of_ref(p.type)
            if p.name in seen:
                self._redeclared(p.name, p.source, seen[p.name].source)
            seen[p.name] = p
            if p.default is not None and p.direction in ("out", "inout"):
                self.diagnostics.error(
                    p.source, f"'{p.name}' is {p.direction} and cannot have a default"
                )
            self.tables.declared[p] = type_
            result.append(ParameterType(p.name, p.direction, type_, p))
        return tuple(result)

    def signature(self, d: Any) -> Signature:
        """Of a function, action, extern function or method, or of what is constructed.

        For a method it is in terms of the extern's type parameters as well, which the caller
        substitutes.
        """
        known = self._signatures.get(d)
        if known is None:
            self.open_scope()
            for parameter in getattr(d, "type_parameters", ()):
                self.declare_type(parameter.name, parameter)
            parameters = self.parameter_types(d.parameters)
            result = getattr(d, "return_type", None)
            known = self._signatures[d] = Signature(
                getattr(d, "type_parameters", ()),
                parameters,
                VOID if result is None else self.type_of_ref(result),
            )
            self.close_scope()
        return known

    def substituted(self, signature: Signature, mapping: TypeArguments) -> Signature:
        """The signature of a method of an extern with type arguments."""
        if not mapping:
            return signature
        return Signature(
            signature.type_parameters,
            substitute_parameters(signature.parameters, mapping),
            substitute(signature.result, mapping),
        )


def _is_function(declaration: Any) -> bool:
    return isinstance(declaration, ast.FunctionDeclaration | ast.MethodPrototype)


def _can_be_field(kind: str, type_: Type) -> bool:
    if type_ == DONT_CARE or isinstance(type_, TypeVariable):
        return True
    if isinstance(type_, NewType):
        return _can_be_field(kind, type_.underlying)
    if kind == "header":
        return isinstance(type_, BitsType | VarbitType | BoolType | SerializableEnumType) or (
            isinstance(type_, StructType)
            and type_.kind == "struct"
            and all(_can_be_field(kind, f.type) for f in type_.fields.values())
        )
    if kind == "header_union":
        return isinstance(type_, StructType) and type_.kind == "header"
    return not isinstance(
        type_, IntType | ExternType | ParserType | ControlType | PackageType
    ) and type_ not in (VOID, MATCH_KIND, STRING)
