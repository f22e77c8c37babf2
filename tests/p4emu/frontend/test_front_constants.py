"""Compile-time values: exact for int, wrapped where a type has a width."""

from __future__ import annotations

from typing import Any

import pytest
from front_rig import accepted, constant, errors, in_control, nodes
from hypothesis import given
from hypothesis import strategies as st

from p4emu.frontend import ast, fold
from p4emu.frontend.program import EnumValue
from p4emu.frontend.types import INT, BitsType


@pytest.mark.parametrize(
    ("expression", "type_", "value"),
    [
        ("1 + 2 * 3", "int", 7),
        ("(1 << 100) - 1", "int", 2**100 - 1),
        ("-7 / 2", "int", -3),
        ("-7 % 2", "int", -1),
        ("8w200 + 8w100", "bit<8>", 44),
        ("8w3 - 8w5", "bit<8>", 254),
        ("8w200 |+| 8w100", "bit<8>", 255),
        ("8w3 |-| 8w5", "bit<8>", 0),
        ("8s100 |+| 8s100", "int<8>", 127),
        ("8s100 + 8s100", "int<8>", -56),
        ("-1", "bit<8>", 255),
        ("~8w1", "bit<8>", 254),
        ("8w1 << 9", "bit<8>", 0),
        ("8s0b1000_0000 >> 3", "int<8>", -16),
        ("4w0xa ++ 4w0x5", "bit<8>", 0xA5),
        ("4s0b1111 ++ 4w1", "int<8>", -15),
        ("16w0xabcd[11:4]", "bit<8>", 0xBC),
        ("(bit<4>)8w0xab", "bit<4>", 0xB),
        ("(int<4>)4w0xf", "int<4>", -1),
        ("(bit<8>)(bit<4>)(int<4>)-1", "bit<8>", 15),
        ("(bit<1>)true", "bit<1>", 1),
        ("(bool)1w1", "bool", True),
        ("3 > 2 && !(1 == 2)", "bool", True),
        ("true ? 8w1 : 8w2", "bit<8>", 1),
        ("1 + (true ? 1 : 2)", "bit<8>", 2),
        ('"ab" ++ "cd"', "string", "abcd"),
    ],
)
def test_values(expression: str, type_: str, value: Any) -> None:
    assert constant(expression, type_) == value


def test_constants_refer_to_constants_and_enums() -> None:
    before = "const bit<8> two = 2; enum bit<8> E { A = two + 1, B = 9 }\nstruct s { bit<8> x; }"
    assert constant("E.A + two", "bit<8>", before) == 5
    assert constant("E.B", "bit<8>", before) == 9
    assert constant("{ x = two }", "s", before) == (2,)


def test_members_of_plain_enums_are_their_names() -> None:
    value = constant("E.B", "E", "enum E { A, B }")
    assert isinstance(value, EnumValue)
    assert value.name == "B"


def test_a_literal_takes_the_type_it_is_used_as() -> None:
    program = accepted(in_control("meta.wide = meta.wide + 7;"))
    literal = next(e for e in nodes(program, ast.IntLiteral) if e.value == 7)
    assert program.own_type(literal) == INT
    assert program.type_of(literal) == BitsType(32)


def test_sizes_of_headers_are_constants() -> None:
    program = accepted(
        in_control("bit<32> n = hdr.eth.minSizeInBytes(); n = hdr.opt.maxSizeInBits();")
    )
    values = [program.constant(call) for call in nodes(program, ast.CallExpression)]
    assert [v for v in values if v is not None] == [14, 328]


def test_static_assertions() -> None:
    accepted('#include <core.p4>\nconst bool ok = static_assert(1 + 1 == 2, "sum");')
    assert errors('#include <core.p4>\nconst bool ok = static_assert(1 > 2, "no");') == ["no"]


@pytest.mark.parametrize(
    "text", ["1 << 1000000000", "1 << (1 << 60)", "(1 << 100000) * (1 << 100000)"]
)
def test_numbers_that_would_grow_without_bounds_are_refused(text: str) -> None:
    assert any("bits" in message for message in errors(f"const int c = {text};"))


widths = st.integers(1, 70)


@given(st.data(), widths, st.booleans(), st.sampled_from(["+", "-", "*", "&", "|", "^"]))
def test_folding_wraps_like_two_s_complement(
    data: st.DataObject, width: int, signed: bool, operator: Any
) -> None:
    type_ = BitsType(width, signed)
    low = -(1 << (width - 1)) if signed else 0
    numbers = st.integers(low, low + (1 << width) - 1)
    a, b = data.draw(numbers), data.draw(numbers)
    folded = fold.binary(operator, a, b, type_, type_)
    exact = {"+": a + b, "-": a - b, "*": a * b, "&": a & b, "|": a | b, "^": a ^ b}[operator]
    assert isinstance(folded, int)
    assert (folded - exact) % (1 << width) == 0
    assert low <= folded < low + (1 << width)


@given(st.integers(-(2**70), 2**70), st.integers(-(2**70), 2**70).filter(bool))
def test_division_rounds_to_zero_and_leaves_the_rest(a: int, b: int) -> None:
    quotient, rest = fold.binary("/", a, b, INT, INT), fold.binary("%", a, b, INT, INT)
    assert isinstance(quotient, int)
    assert isinstance(rest, int)
    assert quotient * b + rest == a
    assert abs(rest) < abs(b)
    assert rest == 0 or (rest < 0) == (a < 0)
