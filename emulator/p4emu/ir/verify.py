"""Checks that an IR program keeps the rules that `nodes` states: types, labels, places, ownership.

It guards the boundary between lowering and code generation: what passes here must compile. It is
not a check of the user's program (the front end does that), so a failure is a defect of the
compiler; the error says which node, where in the program, and which rule it breaks.

Main entry point: `verify`; it raises `IRError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from p4emu.ir.dump import format_expr, format_stmt, format_type
from p4emu.ir.nodes import (
    ACCEPT,
    BOOL,
    REJECT,
    ActionCall,
    Advance,
    Apply,
    Assign,
    AssignSlice,
    Binary,
    Bits,
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
    Header,
    If,
    KeysetAny,
    KeysetRange,
    KeysetValue,
    Leave,
    Lookahead,
    Mux,
    Program,
    Read,
    RegisterRead,
    RegisterWrite,
    Select,
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

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_LOGIC = frozenset({"&&", "||"})
_SHIFTS = frozenset({"<<", ">>"})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "|+|", "|-|", "&", "|", "^"})
_HASH_WIDTHS = {"csum16": 16, "crc16": 16, "xor16": 16, "crc32": 32, "identity": 64}


class IRError(Exception):
    """A rule of the IR is broken: `path` says where in the program, `rule` says which."""

    def __init__(self, path: str, rule: str) -> None:
        super().__init__(f"invalid IR at {path}: {rule}")
        self.path = path
        self.rule = rule


def verify(program: Program) -> None:
    """Raise `IRError` for the first rule that `program` breaks."""
    _Verifier(program).program()


class _Verifier:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._path: list[str] = [program.name]
        self._labels: list[str] = []
        self._block = ""  # one of the six blocks, or "table" while looking at keys and actions
        self._owner: dict[Var, str] = {}  # local variable -> the block that uses it
        self._table_block: dict[Table, str] = {}
        self._packet_vars: set[Var] = set(program.packet_vars)
        self._headers: set[Header] = set(program.headers)
        for header in program.headers:
            self._packet_vars.update(header.fields)
            self._packet_vars.add(header.valid)
        self._tables = set(program.tables)
        self._registers = set(program.registers)
        self._counters = set(program.counters)

    # --- reporting ---

    def fail(self, rule: str) -> NoReturn:
        raise IRError(".".join(self._path), rule)

    def require(self, holds: bool, rule: str) -> None:
        # For rules that are cheap to put in words; printing a statement is not.
        if not holds:
            self.fail(rule)

    @contextmanager
    def at(self, step: str) -> Iterator[None]:
        # The step stays on the path when an error passes through: the path is part of the error.
        self._path.append(step)
        yield
        self._path.pop()

    # --- program ---

    def program(self) -> None:
        program = self._program
        self._declarations()
        with self.at("parser"):
            self._block = "parser"
            for name, state in program.parser.items():
                with self.at(name):
                    self.require(name == state.name, f"state is named {state.name!r}")
                    self.require(name not in (ACCEPT, REJECT), "reserved state name")
                    self._state(state)
            self.require(
                not program.parser or "start" in program.parser, "there is no state 'start'"
            )
        for block in ("verify", "ingress", "egress", "compute", "deparser"):
            with self.at(block):
                self._block = block
                self.body(getattr(program, block))
        for table in program.tables:
            with self.at(f"table {table.name}"):
                self._block = self._table_block.get(table, "table")
                self._table(table)

    def _declarations(self) -> None:
        program = self._program
        for what, names in (
            ("header", [header.name for header in program.headers]),
            ("table", [table.name for table in program.tables]),
            ("register", [register.name for register in program.registers]),
            ("counter", [counter.name for counter in program.counters]),
            ("error", program.errors),
        ):
            self.require(len(set(names)) == len(names), f"two {what}s have one name: {names}")
        for var in self._packet_vars:
            self.require(var.storage == "packet", f"{var.name} is {var.storage}, not packet")
        for header in program.headers:
            with self.at(f"header {header.name}"):
                self.require(header.valid.type == BOOL, "validity is not a bool")
                for field in header.fields:
                    self.require(isinstance(field.type, Bits), f"field {field.name} is not Bits")
                width = sum(f.type.width for f in header.fields if isinstance(f.type, Bits))
                self.require(width % 8 == 0, f"{width} bits are not whole bytes")
        for name, var in program.standard.items():
            self.require(var in self._packet_vars, f"standard {name} is not a packet variable")
        for register in program.registers:
            self.require(register.size >= 1, f"register {register.name} has no elements")
        for counter in program.counters:
            owners = [table for table in program.tables if table.counter is counter]
            if counter.table is None:
                self.require(not owners, f"counter {counter.name} is not direct but has a table")
            else:
                self.require(
                    [table.name for table in owners] == [counter.table],
                    f"direct counter {counter.name} is not that of table {counter.table}",
                )

    # --- parser ---

    def _state(self, state: State) -> None:
        self.body(state.body)
        transition = state.transition
        if isinstance(transition, Goto):
            self._target(transition.state)
            return
        self.require(isinstance(transition, Select), f"unknown transition {transition!r}")
        widths = []
        for selector in transition.selectors:
            type_ = self.expr(selector)
            if not isinstance(type_, Bits) or type_.signed:
                self.fail(f"selector {format_expr(selector)} is {format_type(type_)}")
            widths.append(type_.width)
        for number, (keysets, target) in enumerate(transition.cases):
            with self.at(f"case {number}"):
                self._target(target)
                self.require(len(keysets) == len(widths), f"{len(keysets)} keysets")
                for keyset, width in zip(keysets, widths, strict=True):
                    if isinstance(keyset, KeysetValue):
                        self._fits(keyset.value, width)
                        self._fits(0 if keyset.mask is None else keyset.mask, width)
                    elif isinstance(keyset, KeysetRange):
                        self._fits(keyset.low, width)
                        self._fits(keyset.high, width)
                    else:
                        self.require(isinstance(keyset, KeysetAny), f"unknown keyset {keyset!r}")

    def _target(self, name: str) -> None:
        known = name in (ACCEPT, REJECT) or name in self._program.parser
        self.require(known, f"no state {name!r} to go to")

    def _fits(self, value: int, width: int) -> None:
        self.require(0 <= value < 1 << width, f"{value:#x} does not fit {width} bits")

    # --- tables ---

    def _table(self, table: Table) -> None:
        widths = []
        for key in table.keys:
            type_ = self.expr(key.expr)
            widths.append(type_.width if isinstance(type_, Bits) else 1)
        names = [action.name for action in table.actions]
        self.require(len(set(names)) == len(names), f"two actions have one name: {names}")
        lpm = sum(key.kind == "lpm" for key in table.keys)
        self.require(lpm <= 1, f"{lpm} lpm keys")
        for action in table.actions:
            with self.at(f"action {action.name}"):
                for param in action.params:
                    self._local(param)
                    self.require(isinstance(param.type, (Bits, Bool)), "a parameter has no type")
                if table not in self._table_block:  # never applied, so there is no place to check
                    self.body(action.body)
        self._call(table, table.default)
        self.require(table.size >= 0, f"size {table.size}")
        self.require(not table.entries or bool(table.keys), "entries without keys")
        for number, entry in enumerate(table.entries):
            with self.at(f"entry {number}"):
                self.require(len(entry.keys) == len(widths), f"{len(entry.keys)} key fields")
                for match, width in zip(entry.keys, widths, strict=True):
                    self._fits(match.value, width)
                    self._fits(match.mask, width)
                self._call(table, entry.call)

    def _call(self, table: Table, call: ActionCall) -> None:
        self.require(0 <= call.action < len(table.actions), f"no action {call.action}")
        params = table.actions[call.action].params
        self.require(len(call.args) == len(params), f"{len(call.args)} action arguments")
        for arg, param in zip(call.args, params, strict=True):
            self._constant(arg, param.type)

    # --- statements ---

    def body(self, stmts: tuple[Stmt, ...]) -> None:
        self.require(isinstance(stmts, tuple), f"a body is a {type(stmts).__name__}, not a tuple")
        for number, stmt in enumerate(stmts):
            check = _STATEMENTS.get(type(stmt))
            if check is None:
                self.fail(f"statement {number} is {stmt!r}")
            self._path.append(str(number))
            check(self, stmt)
            self._path.pop()

    def _written(self, stmt: Stmt, target: Var, type_: Type) -> None:
        self._var(target)
        if target.type != type_:
            self.fail(
                f"`{format_stmt(stmt)}` puts {format_type(type_)} into {format_type(target.type)}"
            )

    def _assign(self, stmt: Assign) -> None:
        self._written(stmt, stmt.target, self.expr(stmt.value))

    def _assign_slice(self, stmt: AssignSlice) -> None:
        self._var(stmt.target)
        value, target = self.expr(stmt.value), stmt.target.type
        width = stmt.hi - stmt.lo + 1
        if not (isinstance(target, Bits) and 0 <= stmt.lo <= stmt.hi < target.width):
            self.fail(f"`{format_stmt(stmt)}` is outside of {format_type(target)}")
        if value != Bits(width):
            self.fail(f"`{format_stmt(stmt)}` puts {format_type(value)} into {width} bits")

    def _condition(self, condition: Expr) -> None:
        type_ = self.expr(condition)
        if type_ != BOOL:
            self.fail(f"condition {format_expr(condition)} is {format_type(type_)}")

    def _if(self, stmt: If) -> None:
        self._condition(stmt.condition)
        with self.at("then"):
            self.body(stmt.then)
        with self.at("else"):
            self.body(stmt.otherwise)

    def _switch(self, stmt: Switch) -> None:
        type_ = self.expr(stmt.selector)
        if not isinstance(type_, Bits):
            self.fail(f"switch on {format_type(type_)}")
        seen: set[int] = set()
        for values, body in stmt.cases:
            with self.at(f"case {','.join(map(str, values))}"):
                for value in values:
                    self._constant(value, type_)
                    self.require(value not in seen, f"{value} is named twice")
                    seen.add(value)
                self.body(body)
        with self.at("default"):
            self.body(stmt.default)

    def _block_stmt(self, stmt: Block) -> None:
        self.require(stmt.label not in self._labels, f"block {stmt.label!r} inside itself")
        self._labels.append(stmt.label)
        with self.at(stmt.label):
            self.body(stmt.body)
        self._labels.pop()

    def _leave(self, stmt: Leave) -> None:
        self.require(stmt.label in self._labels, f"no enclosing block {stmt.label!r} to leave")

    def _set_valid(self, stmt: SetValid) -> None:
        self._header(stmt.header)

    def _extract(self, stmt: Extract) -> None:
        self._only_in("parser", stmt)
        self._header(stmt.header)

    def _advance(self, stmt: Advance) -> None:
        self._only_in("parser", stmt)
        type_ = self.expr(stmt.bits)
        if type_ != Bits(32):
            self.fail(f"`{format_stmt(stmt)}` takes {format_type(type_)}")

    def _verify(self, stmt: Verify) -> None:
        self._only_in("parser", stmt)
        self._condition(stmt.condition)
        self.require(0 <= stmt.error < len(self._program.errors), f"no error {stmt.error}")

    def _emit(self, stmt: Emit) -> None:
        self._only_in("deparser", stmt)
        self._header(stmt.header)

    def _apply(self, stmt: Apply) -> None:
        table = stmt.table
        self.require(table in self._tables, f"table {table.name} is not the program's")
        home = self._table_block.setdefault(table, self._block)
        self.require(home == self._block, f"table {table.name} is applied in {home} too")
        if stmt.hit is not None:
            self._written(stmt, stmt.hit, BOOL)
        if stmt.action is not None:
            self._written(stmt, stmt.action, Bits(32))
        for action in table.actions:
            with self.at(f"{table.name}.{action.name}"):
                self.body(action.body)

    def _register_read(self, stmt: RegisterRead) -> None:
        self._known(stmt, stmt.register in self._registers, "register")
        self._index(stmt, stmt.index)
        self._written(stmt, stmt.target, stmt.register.type)

    def _register_write(self, stmt: RegisterWrite) -> None:
        self._known(stmt, stmt.register in self._registers, "register")
        self._index(stmt, stmt.index)
        type_ = self.expr(stmt.value)
        if type_ != stmt.register.type:
            self.fail(f"`{format_stmt(stmt)}` writes {format_type(type_)}")

    def _count(self, stmt: Count) -> None:
        counter = stmt.counter
        self._known(stmt, counter in self._counters, "counter")
        direct = counter.table is not None
        if direct != (stmt.index is None):
            self.fail(f"`{format_stmt(stmt)}`: an index or a direct counter")
        if stmt.index is not None:
            self._index(stmt, stmt.index)

    def _index(self, stmt: Stmt, index: Expr) -> None:
        type_ = self.expr(index)
        if not isinstance(type_, Bits) or type_.signed:
            self.fail(f"`{format_stmt(stmt)}`: the index is {format_type(type_)}")

    def _hash(self, stmt: Hash) -> None:
        for part in stmt.data:
            if self.expr(part) == BOOL:
                self.fail(f"`{format_stmt(stmt)}` over bool")
        width = _HASH_WIDTHS.get(stmt.algorithm)
        if width is None:
            self.fail(f"unknown algorithm {stmt.algorithm!r}")
        self._written(stmt, stmt.target, Bits(width))

    def _known(self, stmt: Stmt, known: bool, what: str) -> None:
        if not known:
            self.fail(f"`{format_stmt(stmt)}`: unknown {what}")

    def _only_in(self, block: str, stmt: Stmt) -> None:
        if self._block != block:
            self.fail(f"`{format_stmt(stmt)}` outside of the {block}")

    # --- variables and headers ---

    def _header(self, header: Header) -> None:
        self.require(header in self._headers, f"header {header.name} is not the program's")

    def _var(self, var: Var) -> None:
        if var.storage == "local":
            self._local(var)
        elif var not in self._packet_vars:
            self.fail(f"packet variable {var.name} is not the program's")

    def _local(self, var: Var) -> None:
        self.require(var.storage == "local", f"{var.name} is not local")
        owner = self._owner.setdefault(var, self._block)
        if owner != self._block:
            self.fail(f"local variable {var.name} of {owner} is used in {self._block}")

    # --- expressions ---

    def expr(self, expr: Expr) -> Type:
        """The type of an expression, after checking it."""
        check = _EXPRESSIONS.get(type(expr))
        if check is None:
            self.fail(f"{expr!r} is not an expression")
        return check(self, expr)

    def _mistyped(self, expr: Expr, *types: Type) -> NoReturn:
        self.fail(f"{format_expr(expr)} with {' and '.join(map(format_type, types))}")

    def _constant(self, value: int, type_: Type) -> None:
        if isinstance(type_, Bool):
            fits = value in (0, 1)
        elif type_.signed:
            fits = -(1 << (type_.width - 1)) <= value < 1 << (type_.width - 1)
        else:
            fits = 0 <= value < 1 << type_.width
        if not fits:
            self.fail(f"{value} does not fit {format_type(type_)}")

    def _const(self, expr: Const) -> Type:
        self._constant(expr.value, expr.type)
        return expr.type

    def _read(self, expr: Read) -> Type:
        self._var(expr.var)
        return expr.var.type

    def _unary(self, expr: Unary) -> Type:
        type_ = self.expr(expr.operand)
        if isinstance(type_, Bool) != (expr.op == "!") or expr.type != type_:
            self._mistyped(expr, type_, expr.type)
        return type_

    def _binary(self, expr: Binary) -> Type:
        left, right, op = self.expr(expr.left), self.expr(expr.right), expr.op
        expected: Type | None = None
        if op in _SHIFTS:
            if isinstance(left, Bits) and isinstance(right, Bits) and not right.signed:
                expected = left
        elif left == right:
            if op in _LOGIC:
                expected = BOOL if left == BOOL else None
            elif op in _COMPARISONS:
                ordered = isinstance(left, Bits) or op in ("==", "!=")
                expected = BOOL if ordered else None
            elif op in _ARITHMETIC:
                expected = left if isinstance(left, Bits) else None
        if expected is None or expr.type != expected:
            self._mistyped(expr, left, right, expr.type)
        return expr.type

    def _cast(self, expr: Cast) -> Type:
        source, target = self.expr(expr.operand), expr.type
        if BOOL in (source, target) and source != target and Bits(1) not in (source, target):
            self._mistyped(expr, source)
        return target

    def _slice(self, expr: Slice) -> Type:
        type_ = self.expr(expr.operand)
        if not (isinstance(type_, Bits) and 0 <= expr.lo <= expr.hi < type_.width):
            self._mistyped(expr, type_)
        return expr.type

    def _concat(self, expr: Concat) -> Type:
        left, right = self.expr(expr.left), self.expr(expr.right)
        if not (isinstance(left, Bits) and isinstance(right, Bits)):
            self._mistyped(expr, left, right)
        elif expr.type != Bits(left.width + right.width, left.signed):
            self._mistyped(expr, left, right, expr.type)
        return expr.type

    def _mux(self, expr: Mux) -> Type:
        self._condition(expr.condition)
        then, otherwise = self.expr(expr.then), self.expr(expr.otherwise)
        if then != otherwise:
            self._mistyped(expr, then, otherwise)
        return then

    def _lookahead(self, expr: Lookahead) -> Type:
        if self._block != "parser":
            self.fail(f"{format_expr(expr)} outside of the parser")
        return expr.type


# Dispatch by class; the methods take the class they are listed for.
_STATEMENTS: dict[type, Callable[[_Verifier, Any], None]] = {
    Assign: _Verifier._assign,
    AssignSlice: _Verifier._assign_slice,
    If: _Verifier._if,
    Switch: _Verifier._switch,
    Block: _Verifier._block_stmt,
    Leave: _Verifier._leave,
    SetValid: _Verifier._set_valid,
    Extract: _Verifier._extract,
    Advance: _Verifier._advance,
    Verify: _Verifier._verify,
    Emit: _Verifier._emit,
    Apply: _Verifier._apply,
    RegisterRead: _Verifier._register_read,
    RegisterWrite: _Verifier._register_write,
    Count: _Verifier._count,
    Hash: _Verifier._hash,
}
_EXPRESSIONS: dict[type, Callable[[_Verifier, Any], Type]] = {
    Const: _Verifier._const,
    Read: _Verifier._read,
    Unary: _Verifier._unary,
    Binary: _Verifier._binary,
    Cast: _Verifier._cast,
    Slice: _Verifier._slice,
    Concat: _Verifier._concat,
    Mux: _Verifier._mux,
    Lookahead: _Verifier._lookahead,
}
