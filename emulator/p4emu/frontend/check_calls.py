"""Calls and constructions: which declaration is meant, with which type arguments, and whether the
arguments suit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from p4emu.frontend import ast
from p4emu.frontend.check_arguments import ArgumentChecks, Bound
from p4emu.frontend.check_context import Signature
from p4emu.frontend.diagnostics import listing, similar
from p4emu.frontend.program import (
    ActionCall,
    Arguments,
    BlockApply,
    BuiltinCall,
    Construction,
    ExternFunctionCall,
    ExternMethodCall,
    FunctionCall,
    TableApply,
)
from p4emu.frontend.source import Source
from p4emu.frontend.types import (
    BOOL,
    DONT_CARE,
    INT,
    VOID,
    ApplyResultType,
    BitsType,
    ControlType,
    ExternType,
    PackageType,
    ParameterType,
    ParserType,
    StackType,
    StructType,
    TableType,
    Type,
    TypeVariable,
    VarbitType,
)
from p4emu.frontend.unify import substitute

_SIZES = frozenset({"minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes"})


class Calls(ArgumentChecks):
    """The layer of the checker for calls and constructions."""

    # --- calls

    def _call(self, e: ast.CallExpression) -> Type:
        callee = e.callee
        if isinstance(callee, ast.PathExpression):
            return self._named_call(e, callee)
        if isinstance(callee, ast.MemberExpression):
            return self._method_call(e, callee)
        type_ = self.check(callee)
        if type_ != DONT_CARE:
            self.diagnostics.error(e.source, f"{type_} cannot be called")
        return self._give_up(e.arguments)

    def _give_up(self, arguments: Sequence[ast.Argument]) -> Type:
        """After a mistake in the callee: look for mistakes in the arguments at least."""
        for argument in arguments:
            self.check(argument.value)
        return DONT_CARE

    def _named_call(self, e: ast.CallExpression, callee: ast.PathExpression) -> Type:
        found = self.lookup(callee)
        if not found:
            return self._give_up(e.arguments)
        self.tables.declarations[callee] = found[0]
        self.tables.types[callee] = DONT_CARE
        functions = [
            d for d in found if isinstance(d, ast.FunctionDeclaration | ast.MethodPrototype)
        ]
        if functions:
            chosen = self._choose(functions, e.arguments, {}, e.source, callee.name)
            if chosen is None:
                return self._give_up(e.arguments)
            self.tables.declarations[callee] = chosen
            bound = self.bind(
                self.signature(chosen), e.type_arguments, e.arguments, e.source, callee.name
            )
            if bound is None:
                return self._give_up(e.arguments)
            self._deprecated(chosen, e.source)
            if isinstance(chosen, ast.FunctionDeclaration):
                self.tables.calls[e] = FunctionCall(
                    chosen, bound.type_arguments, bound.arguments, bound.result
                )
            else:
                self.tables.calls[e] = ExternFunctionCall(
                    chosen, bound.type_arguments, bound.arguments, bound.result
                )
                self._static_assert(e, chosen, bound)
                if chosen.name == "verify" and self.place != "parser":
                    self.diagnostics.error(e.source, "'verify' exists only in parsers")
            return bound.result
        declaration = found[0]
        if isinstance(declaration, ast.ActionDeclaration):
            if self.place in ("parser", "function"):
                self.diagnostics.error(e.source, f"a {self.place} cannot call an action")
            bound = self.bind(self.signature(declaration), (), e.arguments, e.source, callee.name)
            if bound is None:
                return self._give_up(e.arguments)
            self.tables.calls[e] = ActionCall(declaration, bound.arguments)
            return VOID
        hint = "apply it: add '.apply'" if isinstance(declaration, ast.TableDeclaration) else ""
        self.diagnostics.error(
            e.source, f"'{callee.name}' cannot be called", *((hint,) if hint else ())
        )
        return self._give_up(e.arguments)

    def _static_assert(
        self, e: ast.CallExpression, function: ast.MethodPrototype, bound: Bound
    ) -> None:
        if function.name != "static_assert":
            return
        values = [None if a.value is None else self.constant(a.value) for a in bound.arguments]
        if values[0] is False:
            message = values[1] if len(values) > 1 else None
            self.diagnostics.error(e.source, f"{message or 'static assertion failed'}")
        elif values[0] is None:
            self.diagnostics.error(e.source, "the assertion must be known at compile time")
        self.tables.constants[e] = True

    def _deprecated(self, declaration: Any, source: Source) -> None:
        for annotation in declaration.annotations:
            if annotation.name == "deprecated":
                self.diagnostics.warning(
                    source,
                    f"'{declaration.name}' is deprecated",
                    *((annotation.string,) if annotation.string else ()),
                )

    def _method_call(self, e: ast.CallExpression, callee: ast.MemberExpression) -> Type:
        self.tables.types[callee] = DONT_CARE
        receiver = callee.base
        if isinstance(receiver, ast.TypeNameExpression):
            base = self.type_of_ref(receiver.type)
            self.tables.types[receiver] = base
            if isinstance(base, ParserType | ControlType) and callee.member == "apply":
                return self._apply(e, None, base)
        elif isinstance(receiver, ast.ThisExpression):
            return self._give_up(e.arguments)
        else:
            base = self.check(receiver)
        if base == DONT_CARE:
            return self._give_up(e.arguments)
        name = callee.member
        if isinstance(base, ExternType):
            return self._extern_method(e, callee, base)
        if isinstance(base, ParserType | ControlType) and name == "apply":
            return self._apply(e, receiver, base)
        if isinstance(base, TableType) and name == "apply":
            if e.arguments:
                self.diagnostics.error(e.source, "a table's apply has no arguments")
            if self.place != "control":
                self.diagnostics.error(
                    e.source, "tables can be applied only in the apply block of a control"
                )
            self.tables.calls[e] = TableApply(base.declaration)
            return ApplyResultType(base.declaration)
        return self._builtin(e, callee, receiver, base)

    def _extern_method(
        self, e: ast.CallExpression, callee: ast.MemberExpression, base: ExternType
    ) -> Type:
        methods = [
            m
            for m in base.declaration.methods
            if m.name == callee.member and m.return_type is not None
        ]
        if not methods:
            known = {m.name for m in base.declaration.methods if m.return_type is not None}
            self.diagnostics.error(
                callee.source,
                f"{base} has no method '{callee.member}'",
                *(similar(callee.member, known) or (f"it has {listing(sorted(known), 'and')}",)),
            )
            return self._give_up(e.arguments)
        mapping = dict(zip(base.declaration.type_parameters, base.arguments, strict=False))
        name = f"{base.name}.{callee.member}"
        chosen = self._choose(methods, e.arguments, mapping, callee.source, name)
        if chosen is None:
            return self._give_up(e.arguments)
        signature = self.substituted(self.signature(chosen), mapping)
        bound = self.bind(signature, e.type_arguments, e.arguments, callee.source, name)
        if bound is None:
            return self._give_up(e.arguments)
        self.tables.calls[e] = ExternMethodCall(
            callee.base, base, chosen, bound.type_arguments, bound.arguments, bound.result
        )
        if base.name == "packet_in" and callee.member == "extract":
            self._extract(bound, len(e.arguments))
        return bound.result

    def _extract(self, bound: Bound, count: int) -> None:
        """What core.p4 says of extract in words: headers only, and varbit only with a length."""
        value = bound.arguments[0].value
        if value is None or isinstance(value, ast.DontCare):
            return
        type_ = self.type_of(value)
        if isinstance(type_, StructType) and type_.kind == "header":
            varbits = sum(isinstance(f.type, VarbitType) for f in type_.fields.values())
            if varbits and count == 1:
                self.diagnostics.error(
                    value.source,
                    f"{type_} has a varbit field: extract needs its length as second argument",
                )
            elif count == 2 and varbits != 1:
                self.diagnostics.error(
                    value.source, f"{type_} must have one varbit field, it has {varbits}"
                )
        elif type_ != DONT_CARE:
            self.diagnostics.error(value.source, f"only headers can be extracted, not {type_}")

    def _apply(
        self,
        e: ast.CallExpression,
        instance: ast.Expression | None,
        base: ParserType | ControlType,
    ) -> Type:
        wanted = "control" if isinstance(base, ControlType) else "parser"
        if self.place != wanted:
            body = "the apply block of a control" if wanted == "control" else "parser states"
            self.diagnostics.error(e.source, f"{base} can be applied only in {body}")
        if instance is None:
            self._not_in_itself(base, e.source)
        signature = Signature((), base.parameters, VOID)
        bound = self.bind(signature, (), e.arguments, e.source, f"{base.name}.apply")
        if bound is None:
            return self._give_up(e.arguments)
        self.tables.calls[e] = BlockApply(instance, base, bound.arguments)
        return VOID

    def _builtin(
        self,
        e: ast.CallExpression,
        callee: ast.MemberExpression,
        receiver: ast.Expression,
        base: Type,
    ) -> Type:
        name: Any = callee.member
        value = not isinstance(receiver, ast.TypeNameExpression)
        if name in _SIZES:
            size = size_in_bits(base, name.startswith("max"))
            if size is not None and not e.arguments:
                self.tables.calls[e] = BuiltinCall(name, receiver, None, INT)
                self.tables.constants[e] = (size + 7) // 8 if name.endswith("Bytes") else size
                return INT
        header = isinstance(base, StructType) and base.kind == "header"
        union = isinstance(base, StructType) and base.kind == "header_union"
        if value and ((name == "isValid" and (header or union)) or (name in _VALIDITY and header)):
            if e.arguments:
                self.diagnostics.error(e.source, f"{name} has no arguments")
            if name != "isValid":
                self.require_lvalue(receiver, f"{name} changes the header, which")
            result: Type = BOOL if name == "isValid" else VOID
            self.tables.calls[e] = BuiltinCall(name, receiver, None, result)
            return result
        if value and name in ("push_front", "pop_front") and isinstance(base, StackType):
            if len(e.arguments) != 1:
                self.diagnostics.error(e.source, f"{name} has one argument, the count")
                return VOID
            count = e.arguments[0].value
            self.constant_int(count, "the count")
            self.require_lvalue(receiver, f"{name} changes the stack, which")
            self.tables.calls[e] = BuiltinCall(name, receiver, count, VOID)
            return VOID
        self.diagnostics.error(callee.source, f"{base} has no method '{name}'")
        return self._give_up(e.arguments)

    # --- constructions

    def _constructor_call(self, e: ast.ConstructorCallExpression) -> Type:
        construction = self.construct(e.type, e.arguments, e.source)
        if construction is None:
            return DONT_CARE
        self.tables.constructions[e] = construction
        return construction.type

    def construct(
        self, ref: ast.TypeRef, arguments: Sequence[ast.Argument], source: Source
    ) -> Construction | None:
        """What `ref(arguments)` makes; None after a mistake."""
        type_ = self.type_of_ref(ref)
        if type_ == DONT_CARE:
            self._give_up(arguments)
            return None
        if not isinstance(type_, ExternType | ParserType | ControlType | PackageType):
            self.diagnostics.error(source, f"{type_} has no constructor")
            self._give_up(arguments)
            return None
        declaration: Any = type_.declaration
        self._not_in_itself(type_, source)
        variables: tuple[ast.TypeParameter, ...] = declaration.type_parameters
        # Those that are given, here or by a typedef; the others follow from the arguments.
        mapping: dict[ast.TypeParameter, Type] = {
            v: t
            for v, t in zip(variables, type_.arguments, strict=True)
            if t not in (DONT_CARE, TypeVariable(v.name, v))
        }
        constructor = None
        if isinstance(type_, ExternType):
            constructors = [m for m in declaration.methods if m.return_type is None]
            if not constructors:
                self.diagnostics.error(source, f"{type_} has no constructor")
                return None
            constructor = self._choose(constructors, arguments, mapping, source, type_.name)
            if constructor is None:
                self._give_up(arguments)
                return None
            parameters = self.signature(constructor).parameters
        elif isinstance(type_, PackageType):
            parameters = self._generic(type_).parameters
        elif isinstance(declaration, ast.ParserDeclaration | ast.ControlDeclaration):
            parameters = self.constructor_parameters(declaration)
        else:
            self.diagnostics.error(
                source, f"{type_} is only an interface: there is nothing to instantiate"
            )
            return None
        free = tuple(v for v in variables if v not in mapping)
        signature = self.substituted(Signature(free, parameters, VOID), mapping)
        bound = self.bind(signature, (), arguments, source, type_.name)
        if bound is None:
            return None
        mapping |= zip(free, bound.type_arguments, strict=True)
        made = substitute(self._generic(type_), mapping)
        self.tables.references[ref] = made
        assert isinstance(made, ExternType | ParserType | ControlType | PackageType)
        self._compile_time(bound.arguments)
        return Construction(made, bound.arguments, constructor)

    def _not_in_itself(self, type_: Type, source: Source) -> None:
        if getattr(type_, "declaration", None) in self.open_blocks:
            self.diagnostics.error(source, f"{type_} cannot contain itself")

    def _generic(self, type_: ExternType | ParserType | ControlType | PackageType) -> Any:
        return self.declared_type(type_.declaration)

    def constructor_parameters(
        self, declaration: ast.ParserDeclaration | ast.ControlDeclaration
    ) -> tuple[ParameterType, ...]:
        """The constructor parameters of a parser or control that is declared completely."""
        return tuple(
            ParameterType(p.name, p.direction, self.tables.declared.get(p, DONT_CARE), p)
            for p in declaration.constructor_parameters
        )

    def _compile_time(self, arguments: Arguments) -> None:
        """Constructor arguments must be known when the object is made."""
        for argument in arguments:
            value = argument.value
            if value is None or isinstance(
                argument.parameter.type, ExternType | ParserType | ControlType | PackageType
            ):
                continue
            if not self.known_at_compile_time(value):
                self.diagnostics.error(
                    value.source,
                    f"'{argument.parameter.name}' must be known at compile time",
                )


_VALIDITY = frozenset({"isValid", "setValid", "setInvalid"})


def size_in_bits(type_: Type, largest: bool) -> int | None:
    """Bits of a value on the wire; of varbits and unions the smallest or the largest number."""
    if isinstance(type_, BitsType):
        return type_.width
    if type_ == BOOL:
        return 1
    if isinstance(type_, VarbitType):
        return type_.width if largest else 0
    if isinstance(type_, StackType):
        element = size_in_bits(type_.element, largest)
        return None if element is None else element * type_.size
    if isinstance(type_, StructType):
        sizes = [size_in_bits(f.type, largest) for f in type_.fields.values()]
        known = [size for size in sizes if size is not None]
        if len(known) < len(sizes):
            return None
        if type_.kind == "header_union":
            return max(known, default=0) if largest else min(known, default=0)
        return sum(known)
    underlying = getattr(type_, "underlying", None)
    return None if underlying is None else size_in_bits(underlying, largest)
