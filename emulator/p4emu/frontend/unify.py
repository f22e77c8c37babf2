"""Substitution of type parameters and inference of type arguments.

`Inference` finds what the type parameters of a generic callee stand for by matching parameter types
with argument types; `substitute` puts the result in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from p4emu.frontend import ast
from p4emu.frontend.types import (
    INT,
    ControlType,
    DontCareType,
    ExternType,
    Field,
    ListType,
    PackageType,
    ParameterType,
    ParserType,
    SetType,
    StackType,
    StructType,
    TupleType,
    Type,
    TypeVariable,
)

TypeArguments = Mapping[ast.TypeParameter, Type]


def substitute(type_: Type, mapping: TypeArguments) -> Type:
    """`type_` with type variables replaced; variables that are not in `mapping` stay."""
    if not mapping:
        return type_
    if isinstance(type_, TypeVariable):
        return mapping.get(type_.declaration, type_)
    if isinstance(type_, StructType):
        if not type_.arguments:
            return type_
        fields = {
            name: Field(name, substitute(f.type, mapping), f.declaration)
            for name, f in type_.fields.items()
        }
        return StructType(type_.declaration, _all(type_.arguments, mapping), fields)
    if isinstance(type_, StackType):
        return StackType(substitute(type_.element, mapping), type_.size)
    if isinstance(type_, TupleType):
        return TupleType(_all(type_.elements, mapping))
    if isinstance(type_, ListType):
        return ListType(substitute(type_.element, mapping))
    if isinstance(type_, SetType):
        return SetType(substitute(type_.element, mapping))
    if isinstance(type_, ExternType):
        return ExternType(type_.declaration, _all(type_.arguments, mapping))
    if isinstance(type_, ParserType):
        return ParserType(
            type_.declaration,
            _all(type_.arguments, mapping),
            substitute_parameters(type_.parameters, mapping),
        )
    if isinstance(type_, ControlType):
        return ControlType(
            type_.declaration,
            _all(type_.arguments, mapping),
            substitute_parameters(type_.parameters, mapping),
        )
    if isinstance(type_, PackageType):
        return PackageType(
            type_.declaration,
            _all(type_.arguments, mapping),
            substitute_parameters(type_.parameters, mapping),
        )
    return type_


def _all(types: Iterable[Type], mapping: TypeArguments) -> tuple[Type, ...]:
    return tuple(substitute(type_, mapping) for type_ in types)


def substitute_parameters(
    parameters: Iterable[ParameterType], mapping: TypeArguments
) -> tuple[ParameterType, ...]:
    """Parameters with their types substituted."""
    return tuple(
        ParameterType(p.name, p.direction, substitute(p.type, mapping), p.declaration)
        for p in parameters
    )


class Inference:
    """What the type parameters in `variables` stand for, as far as known (`bindings`)."""

    def __init__(self, variables: Iterable[ast.TypeParameter]) -> None:
        self._variables = frozenset(variables)
        self.bindings: dict[ast.TypeParameter, Type] = {}

    def match(self, parameter: Type, argument: Type) -> bool:
        """Bind variables so that `parameter` becomes `argument`; False if that cannot be.

        What an implicit conversion could still repair is not refused here.
        """
        if isinstance(parameter, TypeVariable) and parameter.declaration in self._variables:
            bound = self.bindings.get(parameter.declaration)
            if bound is None or bound == INT or isinstance(bound, DontCareType):
                self.bindings[parameter.declaration] = argument
                return True
            return bound == argument or argument == INT or isinstance(argument, DontCareType)
        if isinstance(argument, DontCareType) or isinstance(parameter, DontCareType):
            return True
        if isinstance(parameter, StructType) and isinstance(argument, StructType):
            return parameter.declaration is argument.declaration and self._match_all(
                parameter.arguments, argument.arguments
            )
        if isinstance(parameter, ExternType) and isinstance(argument, ExternType):
            return parameter.declaration is argument.declaration and self._match_all(
                parameter.arguments, argument.arguments
            )
        if isinstance(parameter, StackType) and isinstance(argument, StackType):
            return parameter.size == argument.size and self.match(
                parameter.element, argument.element
            )
        if isinstance(parameter, TupleType) and isinstance(argument, TupleType):
            return self._match_all(parameter.elements, argument.elements)
        if isinstance(parameter, ListType) and isinstance(argument, ListType):
            return self.match(parameter.element, argument.element)
        if isinstance(parameter, SetType) and isinstance(argument, SetType):
            return self.match(parameter.element, argument.element)
        if isinstance(parameter, PackageType) and isinstance(argument, PackageType):
            return parameter.declaration is argument.declaration and self._match_all(
                parameter.arguments, argument.arguments
            )
        if (isinstance(parameter, ParserType) and isinstance(argument, ParserType)) or (
            isinstance(parameter, ControlType) and isinstance(argument, ControlType)
        ):
            return self._match_blocks(parameter.parameters, argument.parameters)
        return parameter == argument

    def _match_all(self, parameters: tuple[Type, ...], arguments: tuple[Type, ...]) -> bool:
        return len(parameters) == len(arguments) and all(
            self.match(p, a) for p, a in zip(parameters, arguments, strict=True)
        )

    def _match_blocks(
        self, wanted: tuple[ParameterType, ...], given: tuple[ParameterType, ...]
    ) -> bool:
        return len(wanted) == len(given) and all(
            w.direction == g.direction and self.match(w.type, g.type)
            for w, g in zip(wanted, given, strict=True)
        )
