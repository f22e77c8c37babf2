"""Visits the parts of IR statements: their bodies, expressions and variables.

Not a transformer: the IR is immutable and is built right the first time by lowering. What is here
is what the verifier, the printer and code generation all need to know about every node type:

- `children(expr)`: the operands of an expression.
- `bodies(stmt)`: the nested statement lists of a statement.
- `operands(stmt)`: the expressions a statement evaluates itself (not those of nested statements).
- `targets(stmt)`: the variables a statement itself writes.
- `statements(body)`: every statement in a body, depth first, outer before inner.
- `local_vars(body)`: the local variables a body mentions, in order of first mention.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from p4emu.ir.nodes import (
    Advance,
    Apply,
    Assign,
    AssignSlice,
    Binary,
    Block,
    Cast,
    Concat,
    Count,
    Expr,
    Hash,
    If,
    Mux,
    Read,
    RegisterRead,
    RegisterWrite,
    Slice,
    Stmt,
    Switch,
    Unary,
    Var,
    Verify,
)

Body = Sequence[Stmt]


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression; empty for constants, variables and lookahead."""
    if isinstance(expr, (Binary, Concat)):
        return (expr.left, expr.right)
    if isinstance(expr, (Unary, Cast, Slice)):
        return (expr.operand,)
    if isinstance(expr, Mux):
        return (expr.condition, expr.then, expr.otherwise)
    return ()


def bodies(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The statement lists nested in a statement; a table's actions are not among them."""
    if isinstance(stmt, If):
        return (stmt.then, stmt.otherwise)
    if isinstance(stmt, Switch):
        return (*(body for _, body in stmt.cases), stmt.default)
    if isinstance(stmt, Block):
        return (stmt.body,)
    return ()


def operands(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions a statement evaluates itself; a table's keys are not among them."""
    if isinstance(stmt, (Assign, AssignSlice)):
        return (stmt.value,)
    if isinstance(stmt, (If, Verify)):
        return (stmt.condition,)
    if isinstance(stmt, Switch):
        return (stmt.selector,)
    if isinstance(stmt, Advance):
        return (stmt.bits,)
    if isinstance(stmt, RegisterRead):
        return (stmt.index,)
    if isinstance(stmt, RegisterWrite):
        return (stmt.index, stmt.value)
    if isinstance(stmt, Count):
        return () if stmt.index is None else (stmt.index,)
    if isinstance(stmt, Hash):
        return stmt.data
    return ()


def targets(stmt: Stmt) -> tuple[Var, ...]:
    """The variables a statement writes itself; those of extracted headers are not among them."""
    if isinstance(stmt, (Assign, AssignSlice, RegisterRead, Hash)):
        return (stmt.target,)
    if isinstance(stmt, Apply):
        return tuple(var for var in (stmt.hit, stmt.action) if var is not None)
    return ()


def statements(body: Body) -> Iterator[Stmt]:
    """Every statement of a body, nested ones included."""
    for stmt in body:
        yield stmt
        for inner in bodies(stmt):
            yield from statements(inner)


def reads(expr: Expr) -> Iterator[Var]:
    """Every variable an expression reads, once per mention."""
    if isinstance(expr, Read):
        yield expr.var
        return
    for child in children(expr):
        yield from reads(child)


def local_vars(body: Body) -> list[Var]:
    """The local variables of a body, including those of the tables it applies, each once."""
    found: dict[Var, None] = {}

    def note(candidates: Iterator[Var] | tuple[Var, ...]) -> None:
        for var in candidates:
            if var.storage == "local":
                found.setdefault(var)

    def scan(stmts: Body) -> None:
        for stmt in statements(stmts):
            note(targets(stmt))
            for expr in operands(stmt):
                note(reads(expr))
            if isinstance(stmt, Apply):
                for key in stmt.table.keys:
                    note(reads(key.expr))
                for action in stmt.table.actions:
                    note(action.params)
                    scan(action.body)

    scan(body)
    return list(found)
