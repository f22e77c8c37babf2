"""The checker: a syntax tree in, a `CheckedProgram` or diagnostics out.

This file has the layer for top-level declarations, parsers and controls, and `check_program`, which
runs them all. Declarations are checked in the order of the text, as the language demands that a
name is declared before it is used; only parser states may refer to later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from p4emu.frontend import ast
from p4emu.frontend.check_tables import TableChecks
from p4emu.frontend.diagnostics import Diagnostics, similar
from p4emu.frontend.program import CheckedProgram
from p4emu.frontend.types import (
    DONT_CARE,
    ControlType,
    EnumType,
    NewType,
    PackageType,
    ParserType,
    SetType,
    Type,
    VoidType,
)


class Checker(TableChecks):
    """The whole checker."""

    def program(self, program: ast.Program) -> None:
        for declaration in program.declarations:
            if isinstance(declaration, ast.Instantiation):
                self._top_instantiation(declaration)
            else:
                _METHODS[type(declaration)](self, declaration)

    # --- types

    def _type_declaration(self, d: Any) -> None:
        if isinstance(d, ast.TypedefDeclaration) and isinstance(
            d.type, ast.StructDeclaration | ast.EnumDeclaration
        ):
            self._type_declaration(d.type)
        self.declared_type(d)
        self.declare_type(d.name, d)

    def _error_declaration(self, d: ast.ErrorDeclaration) -> None:
        self._members(d.members, self.errors)

    def _match_kind_declaration(self, d: ast.MatchKindDeclaration) -> None:
        self._members(d.members, self.match_kinds)

    def _members(self, members: Iterable[ast.EnumMember], known: dict[str, ast.EnumMember]) -> None:
        for member in members:
            first = known.get(member.name)
            if first is not None:
                self.diagnostics.error(
                    member.source,
                    f"'{member.name}' is declared again",
                    f"first declared at {first.source}",
                )
            known.setdefault(member.name, member)

    def _extern(self, d: ast.ExternDeclaration) -> None:
        self.declare_type(d.name, d)
        self.declared_type(d)
        self.open_scope()
        for parameter in d.type_parameters:
            self.declare_type(parameter.name, parameter)
        for method in d.methods:
            self.signature(method)
            if method.return_type is None and method.name != d.name:
                self.diagnostics.error(
                    method.source,
                    f"a constructor has the name of its extern: '{d.name}', not '{method.name}'",
                )
        self.close_scope()

    def _extern_function(self, d: ast.MethodPrototype) -> None:
        self.signature(d)
        self.declare(d.name, d, overloads=True)

    # --- parsers and controls

    def _open_body(self, d: ast.ParserDeclaration | ast.ControlDeclaration) -> None:
        """Declare the type, then open the scope of the body with its parameters."""
        if d.type_parameters:
            self.diagnostics.error(
                d.type_parameters[0].source,
                "only the declaration of an interface can have type parameters",
            )
        self.declared_type(d)
        self.parameter_types(d.constructor_parameters)
        self.declare_type(d.name, d)
        self.open_scope()
        self.parameters(d.parameters)
        for p in d.constructor_parameters:
            if p.direction:
                self.diagnostics.error(p.source, "constructor parameters have no direction")
        self.parameters(d.constructor_parameters)
        self.open_blocks.append(d)

    def _close_body(self) -> None:
        self.open_blocks.pop()
        self.place = ""
        self.close_scope()

    def _top_instantiation(self, d: ast.Instantiation) -> None:
        self.instantiation(d)
        made = self.tables.constructions.get(d)
        if made is not None and isinstance(made.type, ParserType | ControlType):
            self.diagnostics.error(
                d.source,
                f"{made.type} cannot be instantiated at the top level",
                "declare the instance in the control or parser that applies it",
            )

    def _control(self, d: ast.ControlDeclaration) -> None:
        self._open_body(d)
        for local in d.locals:
            _METHODS[type(local)](self, local)
        self.place, self.result = "control", None
        self.block(d.body)
        self._close_body()

    def _parser(self, d: ast.ParserDeclaration) -> None:
        self._open_body(d)
        for local in d.locals:
            _METHODS[type(local)](self, local)
        states: dict[str, Any] = {"accept": None, "reject": None}
        for state in d.states:
            if state.name in states:
                first = states[state.name]
                self.diagnostics.error(
                    state.source,
                    f"state '{state.name}' is declared again"
                    if first
                    else f"'{state.name}' is a state that every parser has already",
                    *((f"first declared at {first.source}",) if first else ()),
                )
            states[state.name] = state
        if "start" not in states:
            self.diagnostics.error(d.source, f"parser '{d.name}' has no state 'start'")
        self.place, self.result = "parser", None
        for state in d.states:
            self.open_scope()
            self.statements(state.statements)
            self._transition(state.transition, states)
            self.close_scope()
        self._close_body()

    def _transition(
        self, t: ast.DirectTransition | ast.SelectTransition | None, states: dict[str, Any]
    ) -> None:
        if t is None:
            return
        if isinstance(t, ast.DirectTransition):
            self._state(t.state, t, states)
            return
        types: list[Type] = []
        for selector in t.selectors:
            type_ = self.check(selector)
            if isinstance(type_, VoidType | ControlType | ParserType | PackageType):
                self.diagnostics.error(selector.source, f"cannot select on {type_}")
                type_ = DONT_CARE
            types.append(type_)
        if not t.selectors:
            self.diagnostics.error(t.source, "select needs at least one expression")
        for case in t.cases:
            self.keysets(case.keyset, types)
            self._state(case.state, case, states)

    def _state(
        self, name: str, at: ast.DirectTransition | ast.SelectCase, states: dict[str, Any]
    ) -> None:
        if name not in states:
            self.diagnostics.error(at.source, f"there is no state '{name}'", *similar(name, states))

    def _value_set(self, d: ast.ValueSetDeclaration) -> None:
        element = self.type_of_ref(d.type)
        self.check(d.size)
        if not self.known_at_compile_time(d.size):
            self.diagnostics.error(d.size.source, "the size must be known at compile time")
        if isinstance(element, VoidType | EnumType | NewType | SetType):
            self.diagnostics.error(d.type.source, f"a value set cannot hold {element}")
        self.declare(d.name, d)


_METHODS: dict[type, Callable[[Checker, Any], None]] = {
    ast.ConstantDeclaration: Checker.constant_declaration,
    ast.VariableDeclaration: Checker.variable,
    ast.Instantiation: Checker.instantiation,
    ast.ActionDeclaration: Checker.action,
    ast.FunctionDeclaration: Checker.function,
    ast.MethodPrototype: Checker._extern_function,
    ast.ExternDeclaration: Checker._extern,
    ast.StructDeclaration: Checker._type_declaration,
    ast.EnumDeclaration: Checker._type_declaration,
    ast.TypedefDeclaration: Checker._type_declaration,
    ast.NewtypeDeclaration: Checker._type_declaration,
    ast.ParserTypeDeclaration: Checker._type_declaration,
    ast.ControlTypeDeclaration: Checker._type_declaration,
    ast.PackageDeclaration: Checker._type_declaration,
    ast.ErrorDeclaration: Checker._error_declaration,
    ast.MatchKindDeclaration: Checker._match_kind_declaration,
    ast.ControlDeclaration: Checker._control,
    ast.ParserDeclaration: Checker._parser,
    ast.TableDeclaration: Checker.table,
    ast.ValueSetDeclaration: Checker._value_set,
}


def check_program(program: ast.Program, path: str, diagnostics: Diagnostics) -> CheckedProgram:
    """Check a syntax tree; raises CompileError with everything that is wrong with it."""
    checker = Checker(diagnostics)
    try:
        checker.program(program)
    except RecursionError:
        diagnostics.fatal(program.source, "the program is nested too deeply")
    diagnostics.check()
    mains = checker.globals.names.get("main", [])
    main = mains[0] if mains and isinstance(mains[0], ast.Instantiation) else None
    return CheckedProgram(
        path=path,
        program=program,
        main=main,
        errors=tuple(checker.errors),
        match_kinds=tuple(checker.match_kinds),
        tables=checker.tables,
        warnings=tuple(diagnostics),
    )
