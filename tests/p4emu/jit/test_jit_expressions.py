"""Machine code computes what P4 says: every operator, every width, no undefined behaviour."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ir_reference import BITS, evaluate, expressions, numbers
from jit_rig import Rig, local_var, packet_var, program

from p4emu.ir.nodes import (
    BOOL,
    Assign,
    AssignSlice,
    Binary,
    Bits,
    Cast,
    Const,
    Expr,
    Read,
    Type,
    Var,
)
from p4emu.jit import UnsupportedNodeError

TYPES = st.one_of(BITS, st.just(BOOL))


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Var], list[Expr], list[dict[Var, int]]]:
    """Variables, expressions over them, and several assignments of values."""
    types = draw(st.lists(TYPES, min_size=1, max_size=4))
    variables = [packet_var(f"meta.v{n}", type_) for n, type_ in enumerate(types)]
    wanted = draw(st.lists(TYPES, min_size=1, max_size=4))
    exprs = [draw(expressions(type_, variables, 3)) for type_ in wanted]
    values = [
        {var: draw(numbers(var.type)) for var in variables} for _ in range(draw(st.integers(1, 6)))
    ]
    return variables, exprs, values


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(cases())
def test_random_expressions_agree_with_the_reference(
    case: tuple[list[Var], list[Expr], list[dict[Var, int]]],
) -> None:
    variables, exprs, values = case
    results = [packet_var(f"meta.r{n}", expr.type) for n, expr in enumerate(exprs)]
    rig = Rig(
        program(
            variables=variables + results,
            ingress=[Assign(r, expr) for r, expr in zip(results, exprs, strict=True)],
        )
    )
    for assignment in values:
        rig.ingress(values=assignment)
        got = [rig.get(result) for result in results]
        assert got == [evaluate(expr, assignment) for expr in exprs]


@pytest.mark.parametrize("width", [1, 2, 7, 8, 31, 32, 33, 64, 65, 127, 128, 129, 200])
@pytest.mark.parametrize("signed", [False, True])
def test_every_operator_on_the_edges_of_a_width(width: int, signed: bool) -> None:
    type_ = Bits(width, signed)
    left, right = packet_var("meta.left", type_), packet_var("meta.right", type_)
    amount = packet_var("meta.amount", Bits(16))
    exprs: list[Expr] = [
        *(
            Binary(op, Read(left), Read(right), type_)
            for op in ("+", "-", "*", "/", "%", "|+|", "|-|", "&", "|", "^")
        ),
        *(Binary(op, Read(left), Read(right), BOOL) for op in ("==", "!=", "<", "<=", ">", ">=")),
        *(Binary(op, Read(left), Read(amount), type_) for op in ("<<", ">>")),
    ]
    results = [packet_var(f"meta.r{n}", expr.type) for n, expr in enumerate(exprs)]
    rig = Rig(
        program(
            variables=[left, right, amount, *results],
            ingress=[Assign(r, expr) for r, expr in zip(results, exprs, strict=True)],
        )
    )
    low = -(1 << (width - 1)) if signed else 0
    high = low + (1 << width) - 1
    edges = sorted({low, high, max(low, -1), 0, min(1, high), high // 2})
    for a in edges:
        for b in edges:
            for shift in (0, 1, width - 1, width, width + 1, 0xFFFF):
                values = {left: a, right: b, amount: shift}
                rig.ingress(values=values)
                got = [rig.get(result) for result in results]
                assert got == [evaluate(expr, values) for expr in exprs], (a, b, shift)


def test_a_shift_by_a_wide_amount_does_not_wrap_round() -> None:
    value, amount = packet_var("meta.value", Bits(8)), packet_var("meta.amount", Bits(100))
    result = packet_var("meta.result", Bits(8))
    shift = Binary("<<", Read(value), Read(amount), Bits(8))
    rig = Rig(program(variables=[value, amount, result], ingress=[Assign(result, shift)]))
    rig.ingress(values={value: 0xFF, amount: 1 << 64})
    assert rig.get(result) == 0
    rig.ingress(values={value: 0xFF, amount: 4})
    assert rig.get(result) == 0xF0


@pytest.mark.parametrize("storage", ["packet", "local"])
@pytest.mark.parametrize(("width", "hi", "lo"), [(8, 7, 0), (8, 3, 2), (33, 32, 32), (130, 70, 60)])
def test_assigning_a_slice_keeps_the_other_bits(storage: str, width: int, hi: int, lo: int) -> None:
    type_: Type = Bits(width)
    source, result = packet_var("meta.source", type_), packet_var("meta.result", type_)
    part = packet_var("meta.part", Bits(hi - lo + 1))
    target = result if storage == "packet" else local_var("tmp", type_)
    body = [
        Assign(target, Read(source)),
        AssignSlice(target, hi, lo, Read(part)),
        *([] if target is result else [Assign(result, Read(target))]),
    ]
    rig = Rig(program(variables=[source, result, part], ingress=body))
    before = 0x5A5A5A5A5A5A5A5A5A5A5A5A5A5A5A5A5A5A & ((1 << width) - 1)
    mask = ((1 << (hi - lo + 1)) - 1) << lo
    for value in (0, (1 << (hi - lo + 1)) - 1, 1):
        rig.ingress(values={source: before, part: value})
        assert rig.get(result) == (before & ~mask) | (value << lo)


def test_local_variables_start_as_zero() -> None:
    fresh, result = local_var("fresh", Bits(32)), packet_var("meta.result", Bits(32))
    add = Binary("+", Read(fresh), Const(7, Bits(32)), Bits(32))
    body = [Assign(fresh, add), Assign(result, Read(fresh))]
    rig = Rig(program(variables=[result], ingress=body))
    for _ in range(2):
        rig.ingress()
        assert rig.get(result) == 7


def test_an_unknown_node_is_named() -> None:
    class Telepathy:
        type = Bits(8)

    result = packet_var("meta.result", Bits(8))
    broken = program(variables=[result], ingress=[Assign(result, Telepathy())])  # type: ignore[arg-type]
    with pytest.raises(UnsupportedNodeError, match="Telepathy") as caught:
        Rig(broken, checked=False)
    assert caught.value.node == "Telepathy"


@pytest.mark.parametrize("width", [64, 65, 128, 129, 192, 256, 1000])
@pytest.mark.parametrize("op", ["/", "%"])
@pytest.mark.parametrize("signed", [False, True])
def test_division_never_calls_a_library_even_when_its_operands_are_small(
    width: int, op: str, signed: bool
) -> None:
    """LLVM narrows such a division to 128 bits, for which it would call one that is not there."""
    small = [packet_var("meta.left", Bits(100)), packet_var("meta.right", Bits(33))]
    type_ = Bits(width, signed)
    left, right = (Cast(Cast(Read(v), Bits(width)), type_) for v in small)
    result = packet_var("meta.result", type_)
    rig = Rig(
        program(
            variables=[*small, result],
            ingress=[Assign(result, Binary(op, left, right, type_))],
        )
    )
    assert "ti3" not in rig.compiled.native.assembly()
    for a, b in ((0, 1), (2**99 + 12345, 3), (2**64, 2**32), (7, 2**33 - 1), (5, 0)):
        values = dict(zip(small, (a, b), strict=True))
        rig.ingress(values=values)
        assert rig.get(result) == evaluate(Binary(op, left, right, type_), values)
