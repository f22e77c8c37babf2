"""Prints an IR program as text, for people: `p4emu ir`, error messages and tests.

Not a serialisation: there is no reader for this form. One statement a line, bodies indented by two
spaces, P4 operators, literals with their width (`8w0x2a`, `32s-1`). Binary expressions are always
parenthesised. Variables that share a name are told apart by a suffix (`tmp`, `tmp~2`).

Main entry points: `dump` for a program, `format_expr` and `format_stmt` for one node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from p4emu.ir.nodes import (
    ActionCall,
    Advance,
    Apply,
    Assign,
    AssignSlice,
    Binary,
    Block,
    Bool,
    Cast,
    Concat,
    Const,
    Count,
    Emit,
    Expr,
    Extract,
    Goto,
    Hash,
    If,
    Keyset,
    KeysetAny,
    KeysetRange,
    Leave,
    Lookahead,
    Mux,
    Program,
    Read,
    RegisterRead,
    RegisterWrite,
    SetValid,
    Slice,
    State,
    Stmt,
    Switch,
    Table,
    Type,
    Unary,
    Var,
    Verify,
)
from p4emu.ir.walk import local_vars

_INDENT = "  "


def dump(program: Program) -> str:
    """The whole program as text, ending in a newline."""
    return "\n".join(_Printer().program(program)) + "\n"


def format_type(type_: Type) -> str:
    """`bit<8>`, `int<8>` or `bool`."""
    if isinstance(type_, Bool):
        return "bool"
    return f"{'int' if type_.signed else 'bit'}<{type_.width}>"


def format_expr(expr: Expr) -> str:
    """One expression; variables by their plain names."""
    return _Printer().expr(expr)


def format_stmt(stmt: Stmt) -> str:
    """The first line of one statement, without its nested bodies."""
    return next(_Printer().stmt(stmt))


def format_const(value: int, type_: Type) -> str:
    """A literal: `true`, `8w0x2a`, `16s-3`."""
    if isinstance(type_, Bool):
        return "true" if value else "false"
    if type_.signed:
        return f"{type_.width}s{value}"
    return f"{type_.width}w{value}" if value < 10 else f"{type_.width}w{value:#x}"


class _Printer:
    """Formats nodes; remembers the names given to variables so that each stays distinct."""

    def __init__(self) -> None:
        self._names: dict[Var, str] = {}
        self._uses: dict[str, int] = {}

    def name(self, var: Var) -> str:
        known = self._names.get(var)
        if known is None:
            count = self._uses[var.name] = self._uses.get(var.name, 0) + 1
            known = var.name if count == 1 else f"{var.name}~{count}"
            self._names[var] = known
        return known

    def typed(self, var: Var) -> str:
        return f"{format_type(var.type)} {self.name(var)}"

    # --- expressions ---

    def expr(self, expr: Expr) -> str:
        if isinstance(expr, Read):
            return self.name(expr.var)
        if isinstance(expr, Const):
            return format_const(expr.value, expr.type)
        if isinstance(expr, Binary):
            return f"({self.expr(expr.left)} {expr.op} {self.expr(expr.right)})"
        if isinstance(expr, Unary):
            return f"{expr.op}{self.expr(expr.operand)}"
        if isinstance(expr, Cast):
            return f"({format_type(expr.type)}){self.expr(expr.operand)}"
        if isinstance(expr, Slice):
            return f"{self.expr(expr.operand)}[{expr.hi}:{expr.lo}]"
        if isinstance(expr, Concat):
            return f"({self.expr(expr.left)} ++ {self.expr(expr.right)})"
        if isinstance(expr, Mux):
            parts = (expr.condition, expr.then, expr.otherwise)
            condition, then, otherwise = map(self.expr, parts)
            return f"({condition} ? {then} : {otherwise})"
        assert isinstance(expr, Lookahead)
        return f"lookahead<{format_type(expr.type)}>()"

    # --- statements ---

    def body(self, body: Sequence[Stmt], depth: int) -> Iterator[str]:
        for stmt in body:
            for line in self.stmt(stmt):
                yield _INDENT * depth + line

    def stmt(self, stmt: Stmt) -> Iterator[str]:
        if isinstance(stmt, If):
            yield f"if {self.expr(stmt.condition)}"
            yield from self.body(stmt.then, 1)
            if len(stmt.otherwise) == 1 and isinstance(stmt.otherwise[0], If):
                chained = self.stmt(stmt.otherwise[0])
                yield f"else {next(chained)}"
                yield from chained
            elif stmt.otherwise:
                yield "else"
                yield from self.body(stmt.otherwise, 1)
        elif isinstance(stmt, Switch):
            yield f"switch {self.expr(stmt.selector)}"
            for values, body in stmt.cases:
                yield f"{_INDENT}case {', '.join(map(str, values))}"
                yield from self.body(body, 2)
            if stmt.default:
                yield f"{_INDENT}default"
                yield from self.body(stmt.default, 2)
        elif isinstance(stmt, Block):
            yield f"block {stmt.label}"
            yield from self.body(stmt.body, 1)
        elif isinstance(stmt, Apply):
            yield "".join(
                [
                    f"{self.name(stmt.hit)} = hit " if stmt.hit is not None else "",
                    f"{self.name(stmt.action)} = action " if stmt.action is not None else "",
                    f"apply {stmt.table.name}",
                ]
            )
        else:
            yield self._simple(stmt)

    def _simple(self, stmt: Stmt) -> str:
        if isinstance(stmt, Assign):
            return f"{self.name(stmt.target)} = {self.expr(stmt.value)}"
        if isinstance(stmt, AssignSlice):
            return f"{self.name(stmt.target)}[{stmt.hi}:{stmt.lo}] = {self.expr(stmt.value)}"
        if isinstance(stmt, Leave):
            return f"leave {stmt.label}"
        if isinstance(stmt, SetValid):
            return f"{stmt.header.name}.{'setValid' if stmt.valid else 'setInvalid'}"
        if isinstance(stmt, Extract):
            return f"extract {stmt.header.name}"
        if isinstance(stmt, Advance):
            return f"advance {self.expr(stmt.bits)}"
        if isinstance(stmt, Verify):
            return f"verify {self.expr(stmt.condition)}, error {stmt.error}"
        if isinstance(stmt, Emit):
            return f"emit {stmt.header.name}"
        if isinstance(stmt, RegisterRead):
            return f"{self.name(stmt.target)} = {stmt.register.name}[{self.expr(stmt.index)}]"
        if isinstance(stmt, RegisterWrite):
            return f"{stmt.register.name}[{self.expr(stmt.index)}] = {self.expr(stmt.value)}"
        if isinstance(stmt, Count):
            index = "" if stmt.index is None else f"[{self.expr(stmt.index)}]"
            return f"count {stmt.counter.name}{index}"
        assert isinstance(stmt, Hash)
        data = ", ".join(map(self.expr, stmt.data))
        return f"{self.name(stmt.target)} = {stmt.algorithm}({data})"

    # --- the parts of a program ---

    def program(self, program: Program) -> Iterator[str]:
        yield f"program {program.name}"
        if program.errors:
            yield "errors " + ", ".join(program.errors)
        for header in program.headers:
            yield ""
            yield f"header {header.name} (valid: {self.name(header.valid)})"
            for var in header.fields:
                yield _INDENT + self.typed(var)
        yield ""
        yield "packet variables"
        for var in program.packet_vars:
            yield _INDENT + self.typed(var)
        stateful = [
            f"register {register.name}: {format_type(register.type)}[{register.size}]"
            for register in program.registers
        ]
        for counter in program.counters:
            extent = f"table {counter.table}" if counter.table else f"[{counter.size}]"
            stateful.append(f"counter {counter.name}: {counter.kind} {extent}")
        if stateful:
            yield ""
            yield from stateful
        for table in program.tables:
            yield ""
            yield from self.table(table)
        if program.parser:
            yield ""
            yield "parser"
            for state in program.parser.values():
                yield from self.state(state)
        for block in ("verify", "ingress", "egress", "compute", "deparser"):
            body = getattr(program, block)
            yield ""
            yield block
            for var in local_vars(body):
                yield f"{_INDENT}local {self.typed(var)}"
            yield from self.body(body, 1)

    def table(self, table: Table) -> Iterator[str]:
        yield f"table {table.name}"
        for key in table.keys:
            yield f"{_INDENT}key {key.name}: {key.kind} = {self.expr(key.expr)}"
        for index, action in enumerate(table.actions):
            params = ", ".join(self.typed(param) for param in action.params)
            yield f"{_INDENT}action {index} {action.name}({params})"
            yield from self.body(action.body, 2)
        qualifier = "const " if table.const_default else ""
        yield f"{_INDENT}{qualifier}default {self._call(table, table.default)}"
        for entry in table.entries:
            keys = ", ".join(f"{match.value:#x}/{match.mask:#x}" for match in entry.keys)
            yield f"{_INDENT}entry {entry.priority}: {keys} -> {self._call(table, entry.call)}"
        yield f"{_INDENT}size {table.size}"
        if table.counter is not None:
            yield f"{_INDENT}counter {table.counter.name}"

    def _call(self, table: Table, call: ActionCall) -> str:
        return f"{table.actions[call.action].name}({', '.join(map(str, call.args))})"

    def state(self, state: State) -> Iterator[str]:
        yield f"{_INDENT}state {state.name}"
        yield from self.body(state.body, 2)
        transition = state.transition
        if isinstance(transition, Goto):
            yield f"{_INDENT * 2}goto {transition.state}"
            return
        yield f"{_INDENT * 2}select {', '.join(map(self.expr, transition.selectors))}"
        for keysets, target in transition.cases:
            yield f"{_INDENT * 3}{', '.join(map(_keyset, keysets))} -> {target}"


def _keyset(keyset: Keyset) -> str:
    if isinstance(keyset, KeysetAny):
        return "_"
    if isinstance(keyset, KeysetRange):
        return f"{keyset.low:#x}..{keyset.high:#x}"
    if keyset.mask is None:
        return f"{keyset.value:#x}"
    return f"{keyset.value:#x} &&& {keyset.mask:#x}"
