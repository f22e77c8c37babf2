"""Arguments: overloads, type arguments, conversions, directions, l-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from p4emu.frontend import ast
from p4emu.frontend.check_context import Signature
from p4emu.frontend.check_expressions import Expressions
from p4emu.frontend.diagnostics import listing, similar
from p4emu.frontend.program import Arguments, BoundArgument
from p4emu.frontend.source import Source
from p4emu.frontend.types import (
    DONT_CARE,
    BitsType,
    ControlType,
    ExternType,
    IntType,
    PackageType,
    ParameterType,
    ParserType,
    StackType,
    TupleType,
    Type,
    TypeVariable,
)
from p4emu.frontend.unify import Inference, TypeArguments, substitute


@dataclass(frozen=True, slots=True)
class Bound:
    """A call matched with a signature."""

    type_arguments: tuple[Type, ...]
    arguments: Arguments
    result: Type


class ArgumentChecks(Expressions):
    """The layer of the checker that passes arguments to parameters."""

    # --- l-values

    def require_lvalue(self, e: ast.Expression, what: str) -> bool:
        """Report it if a checked expression cannot be assigned to."""
        reason = self._not_assignable(e)
        if reason is None:
            return True
        self.diagnostics.error(e.source, f"{what} {reason}")
        return False

    def _not_assignable(self, e: ast.Expression) -> str | None:
        if isinstance(e, ast.PathExpression):
            declaration = self.tables.declarations.get(e)
            if declaration is None or isinstance(declaration, ast.VariableDeclaration):
                return None
            if isinstance(declaration, ast.Parameter):
                if declaration.direction in ("out", "inout"):
                    return None
                direction = declaration.direction or "directionless"
                return f"cannot be assigned to: '{e.name}' is an {direction} parameter".replace(
                    "an directionless", "a directionless"
                )
            return f"cannot be assigned to: '{e.name}' is no variable"
        if isinstance(e, ast.MemberExpression):
            base = self.tables.types.get(e.base)
            if isinstance(base, StackType) and e.member in ("size", "lastIndex"):
                return f"cannot be assigned to: '{e.member}' only tells"
            if isinstance(e.base, ast.TypeNameExpression):
                return "cannot be assigned to: it is a constant"
            return self._not_assignable(e.base)
        if isinstance(e, ast.IndexExpression | ast.SliceExpression):
            return self._not_assignable(e.base)
        if self.tables.types.get(e) == DONT_CARE:
            return None
        return "cannot be assigned to: it is no variable"

    # --- binding arguments

    def _choose(
        self,
        candidates: Sequence[Any],
        arguments: Sequence[ast.Argument],
        mapping: TypeArguments,
        source: Source,
        name: str,
    ) -> Any:
        """The overload that takes these arguments: by number and names, then by types."""
        if len(candidates) == 1:
            return candidates[0]
        fitting = [c for c in candidates if _takes(c.parameters, arguments)]
        if len(fitting) > 1:
            types = [self.check(argument.value) for argument in arguments]
            fitting = [
                c
                for c in fitting
                if self._types_suit(self.substituted(self.signature(c), mapping), arguments, types)
            ]
        if fitting:
            return fitting[0]
        counts = sorted({len(c.parameters) for c in candidates})
        self.diagnostics.error(
            source,
            f"no '{name}' takes these {len(arguments)} arguments",
            f"it takes {listing([str(c) for c in counts])}",
        )
        return None

    def _types_suit(
        self, signature: Signature, arguments: Sequence[ast.Argument], types: Sequence[Type]
    ) -> bool:
        inference = Inference(signature.type_parameters)
        by_name = {p.name: p for p in signature.parameters}
        for i, (argument, type_) in enumerate(zip(arguments, types, strict=True)):
            parameter = by_name[argument.name] if argument.name else signature.parameters[i]
            if not inference.match(parameter.type, type_) and not (
                isinstance(type_, IntType) and isinstance(parameter.type, BitsType)
            ):
                return False
        return True

    def bind(
        self,
        signature: Signature,
        type_arguments: Sequence[ast.TypeRef],
        arguments: Sequence[ast.Argument],
        source: Source,
        name: str,
        *,
        partial: bool = False,
    ) -> Bound | None:
        """Match arguments with parameters, infer type arguments, convert and check the arguments.

        `partial` lets directionless parameters at the end go without arguments. None after a
        mistake, which is reported.
        """
        pairs = self._pair(signature.parameters, arguments, source, name, partial)
        if pairs is None:
            return None
        for argument in arguments:
            self.check(argument.value)
        mapping = self._infer(signature, type_arguments, pairs, source, name)
        if mapping is None:
            return None
        bound = []
        for parameter, given in pairs:
            type_ = substitute(parameter.type, mapping)
            concrete = ParameterType(
                parameter.name, parameter.direction, type_, parameter.declaration
            )
            if given is None:
                bound.append(BoundArgument(concrete, parameter.declaration.default))
                continue
            bound.append(BoundArgument(concrete, self._pass(concrete, given, name)))
        return Bound(
            tuple(mapping[p] for p in signature.type_parameters),
            tuple(bound),
            substitute(signature.result, mapping),
        )

    def _pair(
        self,
        parameters: Sequence[ParameterType],
        arguments: Sequence[ast.Argument],
        source: Source,
        name: str,
        partial: bool,
    ) -> list[tuple[ParameterType, ast.Expression | None]] | None:
        by_name = {p.name: p for p in parameters}
        given: dict[str, ast.Expression] = {}
        if len(arguments) > len(parameters):
            self._wrong_count(parameters, arguments, source, name)
            return None
        for i, argument in enumerate(arguments):
            if argument.name is None:
                given[parameters[i].name] = argument.value
            elif argument.name not in by_name:
                self.diagnostics.error(
                    argument.source,
                    f"'{name}' has no parameter '{argument.name}'",
                    *similar(argument.name, by_name),
                )
                return None
            elif argument.name in given:
                self.diagnostics.error(argument.source, f"'{argument.name}' is given twice")
                return None
            else:
                given[argument.name] = argument.value
        for p in parameters:
            if p.name in given or p.declaration.default is not None or _is_optional(p.declaration):
                continue
            if not (partial and p.direction == ""):
                self._wrong_count(parameters, arguments, source, name)
                return None
        return [(p, given.get(p.name)) for p in parameters]

    def _wrong_count(
        self,
        parameters: Sequence[ParameterType],
        arguments: Sequence[ast.Argument],
        source: Source,
        name: str,
    ) -> None:
        plural = "" if len(parameters) == 1 else "s"
        self.diagnostics.error(
            source,
            f"'{name}' takes {len(parameters)} argument{plural}, but {len(arguments)} "
            f"{'is' if len(arguments) == 1 else 'are'} given",
            *((f"parameters: {', '.join(map(str, parameters))}",) if parameters else ()),
        )

    def _infer(
        self,
        signature: Signature,
        type_arguments: Sequence[ast.TypeRef],
        pairs: Sequence[tuple[ParameterType, ast.Expression | None]],
        source: Source,
        name: str,
    ) -> dict[ast.TypeParameter, Type] | None:
        variables = signature.type_parameters
        inference = Inference(variables)
        if type_arguments:
            if len(type_arguments) != len(variables):
                self.diagnostics.error(
                    source,
                    f"'{name}' takes {len(variables)} type arguments, "
                    f"but {len(type_arguments)} are given",
                )
                return None
            for variable, ref in zip(variables, type_arguments, strict=True):
                type_ = self.type_of_ref(ref)
                if type_ != DONT_CARE:
                    inference.bindings[variable] = type_
        if not variables:
            return {}
        for parameter, given in pairs:
            if given is not None and not isinstance(given, ast.DontCare):
                inference.match(parameter.type, self.type_of(given))
        for variable in variables:
            found = inference.bindings.get(variable)
            if found is None:
                self.diagnostics.error(
                    source,
                    f"type argument '{variable.name}' of '{name}' does not follow from the"
                    " arguments",
                    f"write it: {name.rpartition('.')[2]}<...>(...)",
                )
                return None
            if _has_int(found) and not type_arguments:
                self._widthless(variable, pairs)
                return None
        return {variable: inference.bindings[variable] for variable in variables}

    def _widthless(
        self,
        variable: ast.TypeParameter,
        pairs: Sequence[tuple[ParameterType, ast.Expression | None]],
    ) -> None:
        """Point to the numbers whose width nothing tells."""
        for parameter, given in pairs:
            if given is None or parameter.type != TypeVariable(variable.name, variable):
                continue
            parts = given.elements if isinstance(given, ast.ListExpression) else (given,)
            for part in parts:
                if _has_int(self.type_of(part)):
                    self.diagnostics.error(
                        part.source,
                        "the width of this number is not known here",
                        "give it one, as in 8w0",
                    )

    def _pass(
        self, parameter: ParameterType, given: ast.Expression, name: str
    ) -> ast.Expression | None:
        """Check one argument against its parameter; its expression, or None for `_`."""
        if isinstance(given, ast.DontCare):
            if parameter.direction != "out":
                self.diagnostics.error(
                    given.source, f"'{parameter.name}' of '{name}' needs a value: it is not out"
                )
            return None
        what = f"argument '{parameter.name}' of '{name}'"
        if parameter.direction in ("out", "inout"):
            own = self.tables.types[given]
            if (
                self.require_lvalue(given, f"{what} is {parameter.direction}: what is given")
                and own != parameter.type
                and DONT_CARE not in (own, parameter.type)
            ):
                self.diagnostics.error(given.source, f"{what} must be {parameter.type}, not {own}")
            return given
        if isinstance(parameter.type, ParserType | ControlType | PackageType | ExternType):
            self._pass_object(parameter, given, what)
            return given
        self.require(given, parameter.type, what)
        return given

    def _pass_object(self, parameter: ParameterType, given: ast.Expression, what: str) -> None:
        own = self.tables.types[given]
        if own == DONT_CARE or Inference(()).match(parameter.type, own):
            return
        hints: tuple[str, ...] = ()
        if isinstance(own, ParserType | ControlType) and isinstance(
            parameter.type, ParserType | ControlType
        ):
            wanted = ", ".join(map(str, parameter.type.parameters))
            hints = (
                f"wanted: ({wanted})",
                f"given:  ({', '.join(map(str, own.parameters))})",
            )
        self.diagnostics.error(given.source, f"{what} must be {parameter.type}, not {own}", *hints)

    # --- compile time

    def known_at_compile_time(self, e: ast.Expression) -> bool:
        """A constant, or made of constants and constructor parameters alone."""
        if self.tables.constants.get(e) is not None or self.tables.types.get(e) == DONT_CARE:
            return True
        if isinstance(e, ast.PathExpression):
            declaration = self.tables.declarations.get(e)
            return isinstance(declaration, ast.Instantiation | ast.ConstantDeclaration) or (
                isinstance(declaration, ast.Parameter) and declaration.direction == ""
            )
        if isinstance(e, ast.BinaryExpression):
            return self.known_at_compile_time(e.left) and self.known_at_compile_time(e.right)
        if isinstance(e, ast.UnaryExpression | ast.CastExpression):
            return self.known_at_compile_time(e.operand)
        if isinstance(e, ast.ConditionalExpression):
            return all(map(self.known_at_compile_time, (e.condition, e.then, e.otherwise)))
        if isinstance(e, ast.ListExpression):
            return all(map(self.known_at_compile_time, e.elements))
        if isinstance(e, ast.StructExpression):
            return all(self.known_at_compile_time(f.value) for f in e.fields)
        if isinstance(e, ast.MemberExpression | ast.SliceExpression | ast.IndexExpression):
            return self.known_at_compile_time(e.base)
        return isinstance(e, ast.ConstructorCallExpression)


def _takes(parameters: Sequence[ast.Parameter], arguments: Sequence[ast.Argument]) -> bool:
    """Whether these arguments suit the parameters in number and names."""
    if len(arguments) > len(parameters):
        return False
    given = {a.name or parameters[i].name for i, a in enumerate(arguments)}
    names = {p.name for p in parameters}
    return given <= names and all(
        p.name in given or p.default is not None or _is_optional(p) for p in parameters
    )


def _is_optional(parameter: ast.Parameter) -> bool:
    return any(a.name == "optional" for a in parameter.annotations)


def _has_int(type_: Type) -> bool:
    if isinstance(type_, TupleType):
        return any(map(_has_int, type_.elements))
    return isinstance(type_, IntType)
