"""Random statement lists do what a straightforward interpreter of the IR does.

What this guards is what code generation remembers across statements: values of variables, rows of
registers, and that both are forgotten where control flow joins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ir_reference import evaluate, expressions, numbers, wrap
from jit_rig import Rig, local_var, packet_var, program

from p4emu.ir.nodes import (
    BOOL,
    Assign,
    AssignSlice,
    Bits,
    Block,
    Expr,
    If,
    Leave,
    Register,
    RegisterRead,
    RegisterWrite,
    Stmt,
    Switch,
    Type,
    Var,
)

TYPES: list[Type] = [Bits(8), Bits(8), Bits(13, signed=True), Bits(32), Bits(70), BOOL]
ROWS = 3


class Left(Exception):
    """A `Leave` on its way to its block."""

    def __init__(self, label: str) -> None:
        self.label = label


def run(body: Sequence[Stmt], values: dict[Var, int], registers: dict[Register, list[int]]) -> None:
    """Interpret statements."""
    for stmt in body:
        if isinstance(stmt, Assign):
            values[stmt.target] = evaluate(stmt.value, values)
        elif isinstance(stmt, AssignSlice):
            mask = ((1 << (stmt.hi - stmt.lo + 1)) - 1) << stmt.lo
            value = values[stmt.target] & ~mask | evaluate(stmt.value, values) << stmt.lo
            values[stmt.target] = wrap(value, stmt.target.type)
        elif isinstance(stmt, If):
            condition = evaluate(stmt.condition, values)
            run(stmt.then if condition else stmt.otherwise, values, registers)
        elif isinstance(stmt, Switch):
            selector = evaluate(stmt.selector, values)
            chosen = [inner for keys, inner in stmt.cases if selector in keys]
            run(chosen[0] if chosen else stmt.default, values, registers)
        elif isinstance(stmt, Block):
            try:
                run(stmt.body, values, registers)
            except Left as left:
                if left.label != stmt.label:
                    raise
        elif isinstance(stmt, Leave):
            raise Left(stmt.label)
        elif isinstance(stmt, RegisterRead):
            index = evaluate(stmt.index, values)
            values[stmt.target] = registers[stmt.register][index] if index < ROWS else 0
        else:
            assert isinstance(stmt, RegisterWrite)
            index = evaluate(stmt.index, values)
            if index < ROWS:
                registers[stmt.register][index] = evaluate(stmt.value, values)


@dataclass
class Case:
    packet: list[Var]
    local: list[Var]
    registers: list[Register]
    body: tuple[Stmt, ...]
    inputs: list[dict[Var, int]]


class Maker:
    """Draws statements; blocks have numbered labels."""

    def __init__(self, draw: st.DrawFn, variables: list[Var], registers: list[Register]) -> None:
        self._draw = draw
        self._variables = variables
        self._registers = registers
        self._labels = 0

    def expr(self, type_: Type) -> Expr:
        return self._draw(expressions(type_, self._variables, 1))

    def body(self, depth: int, labels: tuple[str, ...]) -> tuple[Stmt, ...]:
        count = self._draw(st.integers(1, 5))
        return tuple(self._stmt(depth, labels) for _ in range(count))

    def _stmt(self, depth: int, labels: tuple[str, ...]) -> Stmt:
        kinds = ["assign"] * 3 + ["slice", "read", "write", "write"]
        if depth:
            kinds += ["if", "if", "switch", "block"]
        if labels and depth < 3:
            kinds.append("leave")
        kind = self._draw(st.sampled_from(kinds))
        target = self._draw(st.sampled_from(self._variables))
        if kind == "slice" and isinstance(target.type, Bits):
            hi = self._draw(st.integers(0, target.type.width - 1))
            lo = self._draw(st.integers(0, hi))
            return AssignSlice(target, hi, lo, self.expr(Bits(hi - lo + 1)))
        if kind in ("read", "write"):
            register = self._draw(st.sampled_from(self._registers))
            index = self.expr(Bits(self._draw(st.sampled_from([1, 2, 8, 32]))))
            if kind == "write":
                return RegisterWrite(register, index, self.expr(register.type))
            fitting = [var for var in self._variables if var.type == register.type]
            return RegisterRead(register, self._draw(st.sampled_from(fitting)), index)
        if kind == "if":
            otherwise = self._draw(st.booleans())
            return If(
                self.expr(BOOL),
                self.body(depth - 1, labels),
                self.body(depth - 1, labels) if otherwise else (),
            )
        if kind == "switch":
            selector = self.expr(Bits(2))
            cases = (((0, 2), self.body(depth - 1, labels)), ((3,), self.body(depth - 1, labels)))
            return Switch(selector, cases, self.body(depth - 1, labels))
        if kind == "block":
            self._labels += 1
            label = f"block{self._labels}"
            return Block(label, self.body(depth - 1, (*labels, label)))
        if kind == "leave":
            return Leave(self._draw(st.sampled_from(labels)))
        return Assign(target, self.expr(target.type))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    packet = [packet_var(f"meta.v{n}", type_) for n, type_ in enumerate(TYPES)]
    local = [local_var(f"tmp{n}", type_) for n, type_ in enumerate(TYPES)]
    registers = [
        Register(f"C.r{n}", type_, ROWS)
        for n, type_ in enumerate([Bits(8), Bits(8), Bits(13, signed=True), Bits(70)])
    ]
    body = Maker(draw, packet + local, registers).body(3, ())
    inputs = [{var: draw(numbers(var.type)) for var in packet} for _ in range(3)]
    return Case(packet, local, registers, body, inputs)


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(cases())
def test_random_bodies_agree_with_the_interpreter(case: Case) -> None:
    rig = Rig(program(variables=case.packet, registers=case.registers, ingress=case.body))
    registers = {register: [0] * ROWS for register in case.registers}
    for values in case.inputs:
        rig.ingress(values=values)
        expected = values | dict.fromkeys(case.local, 0)
        run(case.body, expected, registers)
        assert {v.name: rig.get(v) for v in case.packet} == {
            v.name: expected[v] for v in case.packet
        }
        for register, cells in registers.items():
            got = [wrap(rig.register(register.name, n), register.type) for n in range(ROWS)]
            assert got == cells, register.name
