"""Statements: assignments, control flow and local declarations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p4emu.frontend import ast
from p4emu.frontend.check_calls import Calls
from p4emu.frontend.diagnostics import similar
from p4emu.frontend.types import (
    BOOL,
    DONT_CARE,
    VOID,
    ActionEnumType,
    ApplyResultType,
    CallableType,
    ControlType,
    ExternType,
    IntType,
    ListType,
    PackageType,
    ParserType,
    StackType,
    TupleType,
    Type,
    VoidType,
)

_NOT_STORABLE = (
    IntType,
    VoidType,
    ExternType,
    ParserType,
    ControlType,
    PackageType,
    CallableType,
    ApplyResultType,
)


class Statements(Calls):
    """The layer of the checker for statements. `result` is what the body around must return."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.result: Type | None = None
        self.loops = 0

    def statements(self, body: tuple[ast.Statement, ...]) -> None:
        for statement in body:
            self.statement(statement)

    def block(self, block: ast.BlockStatement) -> None:
        self.open_scope()
        self.statements(block.statements)
        self.close_scope()

    def statement(self, s: ast.Statement) -> None:
        _METHODS[type(s)](self, s)

    def _scoped(self, s: ast.Statement) -> None:
        self.open_scope()
        self.statement(s)
        self.close_scope()

    # --- simple statements

    def _assignment(self, s: ast.AssignmentStatement) -> None:
        target = self.check(s.target)
        self.require_lvalue(s.target, "this")
        if s.operator is None:
            if target == DONT_CARE:
                self.check(s.value)
            else:
                self.check_as(s.value, target, "the value assigned")
            return
        # `a op= b` is `a = a op b`; the sum is a node of its own only here, to be checked as such.
        self.check(ast.BinaryExpression(s.source, s.operator, s.target, s.value))
        own = self.tables.types[s.value]
        if s.operator not in ("<<", ">>") and target != DONT_CARE and own != DONT_CARE:
            self.require(s.value, target, f"the value of '{s.operator}='")

    def _call_statement(self, s: ast.CallStatement) -> None:
        self.check(s.call)

    def _exit(self, s: ast.ExitStatement) -> None:
        if self.place in ("parser", "function"):
            self.diagnostics.error(s.source, f"a {self.place} cannot exit")

    def _return(self, s: ast.ReturnStatement) -> None:
        if self.place == "parser":
            self.diagnostics.error(s.source, "a parser state cannot return; use transition")
        if s.value is None:
            if self.result not in (None, VOID):
                self.diagnostics.error(s.source, f"this function must return {self.result}")
            return
        if self.result is None or self.result == VOID:
            self.check(s.value)
            self.diagnostics.error(s.source, "there is nothing to return a value to")
            return
        self.check_as(s.value, self.result, "the value returned")

    def _break(self, s: ast.BreakStatement | ast.ContinueStatement) -> None:
        if not self.loops:
            word = "break" if isinstance(s, ast.BreakStatement) else "continue"
            self.diagnostics.error(s.source, f"'{word}' outside of a loop")

    def _empty(self, s: ast.EmptyStatement) -> None:
        pass

    # --- control flow

    def _if(self, s: ast.IfStatement) -> None:
        # Chains of else-if are walked, not recursed into: they get long.
        while True:
            self.check_as(s.condition, BOOL, "the condition")
            self._scoped(s.then)
            if s.otherwise is None:
                return
            if not isinstance(s.otherwise, ast.IfStatement):
                self._scoped(s.otherwise)
                return
            s = s.otherwise

    def _switch(self, s: ast.SwitchStatement) -> None:
        if self.place == "parser":
            self.diagnostics.error(s.source, "a parser state cannot switch; use select")
        type_ = self.check(s.selector)
        seen: dict[Any, ast.SwitchCase] = {}
        for case in s.cases:
            key: Any
            if isinstance(case.label, ast.DontCare):
                key = "default"
                if case is not s.cases[-1]:
                    self.diagnostics.error(case.source, "'default' must be the last case")
            elif isinstance(type_, ActionEnumType):
                key = self._action_label(case.label, type_)
            else:
                if isinstance(type_, IntType):
                    self.check(case.label)
                else:
                    self.check_as(case.label, type_, "the case")
                key = self.constant(case.label)
                if key is None and self.tables.types[case.label] != DONT_CARE:
                    self.diagnostics.error(
                        case.label.source, "a case must be known at compile time"
                    )
            if key is not None and key in seen:
                self.diagnostics.error(
                    case.source, "this case is there twice", f"first at {seen[key].source}"
                )
            seen.setdefault(key, case)
            if case.body is not None:
                self.block(case.body)

    def _action_label(self, label: ast.Expression, type_: ActionEnumType) -> Any:
        table = self.tables.tables.get(type_.declaration)
        if not isinstance(label, ast.PathExpression):
            self.diagnostics.error(label.source, "a case must be the name of an action")
            return None
        if table is None:
            return None
        names = {call.action.name: call.action for call in table.actions}
        action = names.get(label.name)
        if action is None:
            self.diagnostics.error(
                label.source,
                f"'{label.name}' is no action of table {type_.declaration.name}",
                *similar(label.name, names),
            )
            return None
        self.tables.declarations[label] = action
        self.tables.types[label] = type_
        return label.name

    def _for(self, s: ast.ForStatement) -> None:
        self.open_scope()
        self.statements(s.init)
        self.check_as(s.condition, BOOL, "the condition")
        self.statements(s.update)
        self._loop_body(s.body)
        self.close_scope()

    def _for_in(self, s: ast.ForInStatement) -> None:
        self.open_scope()
        type_ = self.type_of_ref(s.variable.type)
        self._storable(type_, s.variable)
        self.declare(s.variable.name, s.variable)
        self.tables.declared[s.variable] = type_
        if isinstance(s.collection, ast.RangeExpression):
            for end in (s.collection.low, s.collection.high):
                self.check_as(end, type_, "the end of the range")
            self.tables.types[s.collection] = type_
        else:
            collection = self.check(s.collection)
            element: Type | None = None
            if isinstance(collection, ListType | StackType):
                element = collection.element
            elif isinstance(collection, TupleType) and isinstance(s.collection, ast.ListExpression):
                for item in s.collection.elements:
                    self.require(item, type_, "the element")
                element = type_
            if element != type_ and collection != DONT_CARE:
                self.diagnostics.error(
                    s.collection.source, f"{collection} does not give values of {type_}"
                )
        self._loop_body(s.body)
        self.close_scope()

    def _loop_body(self, body: ast.Statement) -> None:
        self.loops += 1
        self._scoped(body)
        self.loops -= 1

    # --- local declarations

    def _storable(self, type_: Type, declaration: ast.VariableDeclaration) -> None:
        if isinstance(type_, _NOT_STORABLE):
            hints = ("give it a width, as in bit<32>",) if isinstance(type_, IntType) else ()
            if isinstance(type_, ParserType | ControlType | ExternType | PackageType):
                hints = (f"an instance is made with arguments: {type_}(...) name;",)
            self.diagnostics.error(
                declaration.source, f"a variable cannot be of type {type_}", *hints
            )

    def variable(self, d: ast.VariableDeclaration) -> None:
        type_ = self.type_of_ref(d.type)
        self._storable(type_, d)
        if d.value is not None:
            self.check_as(d.value, type_, f"the value of '{d.name}'")
        self.tables.declared[d] = type_
        self.declare(d.name, d)

    def constant_declaration(self, d: ast.ConstantDeclaration) -> None:
        type_ = self.type_of_ref(d.type)
        if self.check_as(d.value, type_, f"the value of '{d.name}'") and not (
            self.known_at_compile_time(d.value)
        ):
            self.diagnostics.error(
                d.value.source, f"the value of '{d.name}' must be known at compile time"
            )
        self.tables.declared[d] = type_
        self.declare(d.name, d)

    def instantiation(self, d: ast.Instantiation) -> None:
        construction = self.construct(d.type, d.arguments, d.source)
        if construction is not None:
            self.tables.constructions[d] = construction
        self.declare(d.name, d)
        self.open_scope()
        for member in d.members:
            if isinstance(member, ast.Instantiation):
                self.instantiation(member)
            else:
                self.function(member)
        self.close_scope()

    # --- bodies

    def function(self, d: ast.FunctionDeclaration) -> None:
        signature = self.signature(d)
        self.declare(d.name, d, overloads=True)
        self.open_scope()
        for type_parameter in d.type_parameters:
            self.declare_type(type_parameter.name, type_parameter)
        self.parameters(d.parameters)
        outer = self.result, self.place, self.loops
        self.result, self.place, self.loops = signature.result, "function", 0
        self.statements(d.body.statements)
        if signature.result != VOID and not _always_leaves(d.body):
            self.diagnostics.error(d.source, f"'{d.name}' does not return a value on every path")
        self.result, self.place, self.loops = outer
        self.close_scope()

    def action(self, d: ast.ActionDeclaration) -> None:
        self.signature(d)
        seen_directionless = None
        for p in d.parameters:
            if isinstance(self.tables.declared[p], ExternType):
                self.diagnostics.error(p.source, "an action cannot have an extern as parameter")
            elif p.direction == "":
                seen_directionless = p
            elif seen_directionless is not None:
                self.diagnostics.error(
                    p.source, "parameters without a direction must come last in an action"
                )
        self.open_scope()
        self.parameters(d.parameters)
        outer = self.result, self.place, self.loops
        self.result, self.place, self.loops = None, "action", 0
        self.statements(d.body.statements)
        self.result, self.place, self.loops = outer
        self.close_scope()
        self.declare(d.name, d)

    def parameters(self, parameters: tuple[ast.Parameter, ...]) -> None:
        """Declare parameters whose types are known, and check their defaults."""
        for p in parameters:
            if p.default is not None:
                self.check_as(p.default, self.tables.declared[p], f"the default of '{p.name}'")
            self.declare(p.name, p)


def _always_leaves(s: ast.Statement) -> bool:
    """Whether a statement returns on every path."""
    if isinstance(s, ast.ReturnStatement | ast.ExitStatement):
        return True
    if isinstance(s, ast.BlockStatement):
        return any(map(_always_leaves, s.statements))
    if isinstance(s, ast.IfStatement):
        return s.otherwise is not None and _always_leaves(s.then) and _always_leaves(s.otherwise)
    if isinstance(s, ast.SwitchStatement):
        bodies = [case.body for case in s.cases if case.body is not None]
        has_default = any(isinstance(case.label, ast.DontCare) for case in s.cases)
        return has_default and all(map(_always_leaves, bodies))
    return False


_METHODS: dict[type, Callable[[Statements, Any], None]] = {
    ast.AssignmentStatement: Statements._assignment,
    ast.CallStatement: Statements._call_statement,
    ast.BlockStatement: Statements.block,
    ast.IfStatement: Statements._if,
    ast.SwitchStatement: Statements._switch,
    ast.ForStatement: Statements._for,
    ast.ForInStatement: Statements._for_in,
    ast.BreakStatement: Statements._break,
    ast.ContinueStatement: Statements._break,
    ast.ReturnStatement: Statements._return,
    ast.ExitStatement: Statements._exit,
    ast.EmptyStatement: Statements._empty,
    ast.ConstantDeclaration: Statements.constant_declaration,
    ast.VariableDeclaration: Statements.variable,
    ast.Instantiation: Statements.instantiation,
}
