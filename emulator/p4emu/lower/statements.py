"""Lowers the statements of controls, actions, functions and parser states."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from p4emu.frontend import ast
from p4emu.frontend.program import (
    ActionCall,
    BlockApply,
    BuiltinCall,
    ExternFunctionCall,
    ExternMethodCall,
    FunctionCall,
    TableApply,
)
from p4emu.frontend.source import Source
from p4emu.frontend.types import ActionEnumType
from p4emu.ir.nodes import BOOL, Apply, Assign, Bits, Const, Expr, Read, Stmt, Switch
from p4emu.lower import externs, fold, shapes
from p4emu.lower.calls import Calls
from p4emu.lower.errors import unsupported
from p4emu.lower.expressions import PLACES
from p4emu.lower.scope import LoweredTable
from p4emu.lower.values import (
    Place,
    Record,
    StackPlace,
    Value,
    load,
    load_valid,
)

_Cases = list[tuple[tuple[int, ...], tuple[Stmt, ...]]]


class Statements(Calls):
    """`Calls` that lowers statements, and what can be called."""

    # --- what later layers add ---

    def table(self, declaration: ast.TableDeclaration, source: Source) -> LoweredTable:
        """The table of the current activation."""
        raise NotImplementedError

    def packet_in(self, call: ExternMethodCall, source: Source) -> Value | None:
        """A method of packet_in; parsers only."""
        raise unsupported(source, f"`{call.method.name}` of a packet outside of a parser")

    def verify(self, condition: ast.Expression, code: ast.Expression, source: Source) -> None:
        """The extern function `verify`; parsers only."""
        raise unsupported(source, "`verify` outside of a parser")

    # --- statements ---

    def statements(self, statements: Iterable[ast.Statement]) -> None:
        for statement in statements:
            self.statement(statement)
            if isinstance(statement, (ast.ReturnStatement, ast.ExitStatement)):
                break  # nothing behind it is reached

    def statement(self, statement: ast.Statement) -> None:
        """Emits one statement."""
        handler = _STATEMENTS.get(type(statement))
        if handler is None:
            name = _UNSUPPORTED.get(type(statement), "this kind of statement")
            raise unsupported(statement.source, name)
        handler(self, statement)

    def _assignment(self, statement: ast.AssignmentStatement) -> None:
        target = self.place(statement.target)
        if statement.operator is None:
            self.store(target, self.value(statement.value))
            return
        before = load(target)
        mark = len(self.out)
        operand = self.expr(statement.value)
        if len(self.out) != mark:
            before = self.save_before(mark, before)
        assert not isinstance(before, Record)
        self.store(target, self.apply_operator(statement.operator, before, operand))

    def _call_statement(self, statement: ast.CallStatement) -> None:
        self.call(statement.call)

    def _block(self, statement: ast.BlockStatement) -> None:
        self.statements(statement.statements)

    def _if(self, statement: ast.IfStatement) -> None:
        condition = self.expr(statement.condition)
        if isinstance(condition, Const):
            taken = statement.then if condition.value else statement.otherwise
            if taken is not None:
                self.statement(taken)
            return
        with self.nested() as then:
            self.statement(statement.then)
        with self.nested() as otherwise:
            if statement.otherwise is not None:
                self.statement(statement.otherwise)
        self.emit_if(condition, then, otherwise)

    def _variable(self, statement: ast.VariableDeclaration) -> None:
        type_ = self.substituted(self.checked.declared_type(statement))
        fixed = self._fixed_places()
        place = None if fixed is None else fixed.get(statement)
        if place is None:
            place = self.allocator.place(type_, statement.name, "local", statement.source)
            if fixed is not None:
                fixed[statement] = place
        value = None if statement.value is None else self.value(statement.value)
        self.frame.bindings[statement] = place
        if value is not None:
            self.store(place, value)
        elif shapes.has_headers(type_):
            self.invalidate(place)

    def _fixed_places(self) -> dict[Any, Place] | None:
        """Where the variables of an instance live that is applied at several places."""
        frame = self.frame
        instance = frame.instance
        if instance is None or not instance.shared or frame.activation is not frame:
            return None
        return instance.fixed

    def _constant(self, statement: ast.ConstantDeclaration) -> None:
        """Known to the front end, or computed from constructor parameters where it is used."""

    def _return(self, statement: ast.ReturnStatement) -> None:
        if statement.value is not None:
            assert self.frame.result is not None
            self.store(self.frame.result, self.value(statement.value))
        assert self.frame.return_label is not None
        self.emit_leave(self.frame.return_label)

    def _exit(self, statement: ast.ExitStatement) -> None:
        if self.frame.exit is None:
            raise unsupported(statement.source, "`exit` here")
        self.emit_exit(self.frame.exit)

    def _empty(self, statement: ast.EmptyStatement) -> None:
        """Nothing to do."""

    # --- switch ---

    def _switch(self, statement: ast.SwitchStatement) -> None:
        type_ = self.checked.own_type(statement.selector)
        if isinstance(type_, ActionEnumType):
            assert isinstance(statement.selector, ast.MemberExpression)
            apply = statement.selector.base
            assert isinstance(apply, ast.CallExpression)
            lowered = self._apply_call(apply)
            action = self.local("action_run", Bits(32))
            self._apply(lowered, Apply(lowered.table, action=action))
            self._cases(statement, Read(action), lambda label: self._action_index(label, lowered))
            return
        selector = self.expr(statement.selector)
        if selector.type == BOOL:
            selector = fold.cast(selector, Bits(1))
        what = "the label of a switch case"
        self._cases(statement, selector, lambda label: self.compile_time(label, what).value)

    def _cases(
        self,
        statement: ast.SwitchStatement,
        selector: Expr,
        number: Callable[[ast.Expression], int],
    ) -> None:
        cases: _Cases = []
        default: tuple[Stmt, ...] = ()
        labels: list[int] = []
        is_default = False
        for case in statement.cases:
            if isinstance(case.label, ast.DontCare):
                is_default = True
            else:
                labels.append(number(case.label))
            if case.body is None:
                continue  # shares the body of the next case
            with self.nested() as body:
                self.statement(case.body)
            if labels:
                cases.append((tuple(labels), tuple(body)))
            if is_default:
                default = tuple(body)
            labels, is_default = [], False
        self.emit(Switch(selector, tuple(cases), default))

    def _action_index(self, label: ast.Expression, lowered: LoweredTable) -> int:
        assert isinstance(label, ast.PathExpression)
        action = self.checked.declaration(label)
        assert isinstance(action, ast.ActionDeclaration)
        return lowered.indices[action]

    # --- calls ---

    def call(self, call: ast.CallExpression) -> Value | Place | None:
        target = self.checked.call(call)
        if isinstance(target, BlockApply):
            self.call_control(target, call)
            return None
        if isinstance(target, ActionCall):
            self.call_action(target)
            return None
        if isinstance(target, ExternMethodCall):
            return externs.call_method(self, target, call.source)
        if isinstance(target, ExternFunctionCall):
            return externs.call_function(self, target, call.source)
        if isinstance(target, BuiltinCall):
            return self._builtin(target, call.source)
        if isinstance(target, FunctionCall):
            return self.call_function(target, call.source)
        assert isinstance(target, TableApply)
        lowered = self._apply_call(call)
        self._apply(lowered, Apply(lowered.table))
        return None

    def table_result(self, call: ast.CallExpression, member: str, source: Source) -> Expr:
        if member not in ("hit", "miss"):
            raise unsupported(source, f"`{member}` outside of a switch")
        lowered = self._apply_call(call)
        hit = self.local("hit", BOOL)
        self._apply(lowered, Apply(lowered.table, hit=hit))
        return Read(hit) if member == "hit" else fold.unary("!", Read(hit))

    def _apply_call(self, call: ast.CallExpression) -> LoweredTable:
        target = self.checked.call(call)
        assert isinstance(target, TableApply)
        return self.table(target.table, call.source)

    def _apply(self, lowered: LoweredTable, apply: Apply) -> None:
        for stmt in (*lowered.prelude, apply):
            self.emit(stmt)

    def _builtin(self, call: BuiltinCall, source: Source) -> Value | None:
        receiver = self.operand(call.receiver)
        if call.name == "isValid":
            if isinstance(receiver, PLACES):
                return load_valid(receiver)
            if isinstance(receiver, Record) and receiver.valid is not None:
                return receiver.valid
        elif call.name in ("setValid", "setInvalid") and isinstance(receiver, PLACES):
            self.set_valid(receiver, fold.TRUE if call.name == "setValid" else fold.FALSE)
            return None
        elif isinstance(receiver, StackPlace) and call.count is not None:
            count = self.compile_time(call.count, f"the argument of {call.name}").value
            self._shift(receiver, count if call.name == "push_front" else -count)
            return None
        raise unsupported(source, f"`{call.name}` here")

    def _shift(self, stack: StackPlace, by: int) -> None:
        """Moves the elements of a stack to higher (or lower) indices; what comes in is invalid."""
        size = len(stack.elements)
        order = range(size - 1, -1, -1) if by > 0 else range(size)
        for target in order:
            if 0 <= target - by < size:
                self.store(stack.elements[target], load(stack.elements[target - by]))
            else:
                self.invalidate(stack.elements[target])
        self._shift_next(stack, by)

    def _shift_next(self, stack: StackPlace, by: int) -> None:
        """nextIndex moves along, between 0 and the size of the stack."""
        size, next_ = len(stack.elements), Read(stack.next_index)
        type_ = stack.next_index.type
        step = fold.constant(min(abs(by), size), type_)
        if by > 0:
            moved = fold.binary("+", next_, step)
            limit = fold.constant(size, type_)
            moved = fold.mux(fold.binary(">", moved, limit), limit, moved)
        else:
            moved = fold.binary("|-|", next_, step)
        self.emit(Assign(stack.next_index, moved))


_STATEMENTS: dict[type, Callable[[Statements, Any], None]] = {
    ast.AssignmentStatement: Statements._assignment,
    ast.CallStatement: Statements._call_statement,
    ast.BlockStatement: Statements._block,
    ast.IfStatement: Statements._if,
    ast.SwitchStatement: Statements._switch,
    ast.VariableDeclaration: Statements._variable,
    ast.ConstantDeclaration: Statements._constant,
    ast.ReturnStatement: Statements._return,
    ast.ExitStatement: Statements._exit,
    ast.EmptyStatement: Statements._empty,
}
_UNSUPPORTED = {
    ast.ForStatement: "a `for` loop",
    ast.ForInStatement: "a `for` loop",
    ast.BreakStatement: "`break`",
    ast.ContinueStatement: "`continue`",
    ast.Instantiation: "an instantiation inside a block of statements",
}
