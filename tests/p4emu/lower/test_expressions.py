"""Expressions: folding, order of evaluation, aggregates, conversions."""

from __future__ import annotations

import pytest
from lower_rig import Rig

from p4emu.frontend.diagnostics import CompileError


@pytest.mark.parametrize(
    ("source", "printed"),
    [
        ("m.x = hdr.a.x + 1;", "meta.x = (hdr.a.x + 8w1)"),
        ("m.x = -hdr.a.x;", "meta.x = -hdr.a.x"),
        ("m.x = ~hdr.a.x;", "meta.x = ~hdr.a.x"),
        ("m.x = hdr.a.x |+| 200;", "meta.x = (hdr.a.x |+| 8w0xc8)"),
        ("m.z = hdr.a.x ++ hdr.a.y;", "meta.z = (hdr.a.x ++ hdr.a.y)"),
        ("m.z = (bit<16>)hdr.a.x;", "meta.z = (bit<16>)hdr.a.x"),
        ("m.x = (bit<8>)hdr.a.s;", "meta.x = (bit<8>)hdr.a.s"),
        ("m.x = hdr.a.z[15:8];", "meta.x = hdr.a.z[15:8]"),
        ("m.z[7:0] = hdr.a.x;", "meta.z[7:0] = hdr.a.x"),
        ("m.z[15:8][3:0] = 5;", "meta.z[11:8] = 4w5"),
        ("m.x = hdr.a.x << 3;", "meta.x = (hdr.a.x << 2w3)"),
        ("m.x = hdr.a.x >> hdr.a.z;", "meta.x = (hdr.a.x >> hdr.a.z)"),
        ("hdr.a.s = hdr.a.s >> 1;", "hdr.a.s = (hdr.a.s >> 1w1)"),
        ("m.flag = hdr.a.s < -3;", "meta.flag = (hdr.a.s < 8s-3)"),
        ("m.flag = hdr.a.isValid();", "meta.flag = hdr.a.$valid"),
        ("m.flag = !(hdr.a.x == 1);", "meta.flag = !(hdr.a.x == 8w1)"),
        ("m.x = m.flag ? hdr.a.x : 8w7;", "meta.x = (meta.flag ? hdr.a.x : 8w7)"),
        ("m.x = (bit<8>)(bit<1>)m.flag;", "meta.x = (bit<8>)(bit<1>)meta.flag"),
        ("m.x = 255 + 8w1;", "meta.x = 8w0"),
        ("m.flag = true && m.flag;", "meta.flag = meta.flag"),
        ("m.flag = m.flag || false;", "meta.flag = meta.flag"),
        (
            "m.flag = standard_metadata.parser_error == error.PacketTooShort;",
            "meta.flag = (standard_metadata.parser_error == 32w1)",
        ),
    ],
)
def test_a_scalar_expression(rig: Rig, source: str, printed: str) -> None:
    assert rig.ingress(source) == [printed]


def test_a_compound_assignment_evaluates_its_target_once(rig: Rig) -> None:
    assert rig.ingress("m.x += hdr.a.x;") == ["meta.x = (meta.x + hdr.a.x)"]


FUNCTIONS = """
bit<8> bump(inout bit<8> v) { v = v + 1; return v; }
bool odd(inout bit<8> v) { v = v + 1; return v[0:0] == 1; }
"""


def test_what_is_evaluated_before_a_side_effect_is_saved(rig: Rig) -> None:
    assert rig.ingress("m.y = m.x + bump(m.x);", top=FUNCTIONS) == [
        "tmp = meta.x",
        "meta.x = (meta.x + 8w1)",
        "bump.result = meta.x",
        "meta.y = (tmp + bump.result)",
    ]


def test_logic_with_side_effects_is_short_circuit(rig: Rig) -> None:
    assert rig.ingress("m.flag = hdr.a.x == 0 && odd(m.x);", top=FUNCTIONS) == [
        "condition = (hdr.a.x == 8w0)",
        "if condition",
        "  meta.x = (meta.x + 8w1)",
        "  odd.result = (meta.x[0:0] == 1w1)",
        "  condition = odd.result",
        "meta.flag = condition",
    ]
    assert rig.ingress("m.flag = hdr.a.x == 0 || odd(m.x);", top=FUNCTIONS)[1] == "if !condition"


def test_a_conditional_with_side_effects_evaluates_one_side(rig: Rig) -> None:
    assert rig.ingress("m.y = m.flag ? bump(m.x) : 3;", top=FUNCTIONS) == [
        "if meta.flag",
        "  meta.x = (meta.x + 8w1)",
        "  bump.result = meta.x",
        "  choice = bump.result",
        "else",
        "  choice = 8w3",
        "meta.y = choice",
    ]


def test_a_header_assignment_copies_validity_and_fields(rig: Rig) -> None:
    assert rig.ingress("hdr.b = hdr.a;") == [
        "hdr.b.$valid = hdr.a.$valid",
        "hdr.b.x = hdr.a.x",
        "hdr.b.y = hdr.a.y",
        "hdr.b.z = hdr.a.z",
        "hdr.b.s = hdr.a.s",
    ]


def test_a_header_becomes_valid_by_a_list(rig: Rig) -> None:
    assert rig.ingress("hdr.b = {1, 2, 3, 4};") == [
        "hdr.b.setValid",
        "hdr.b.x = 8w1",
        "hdr.b.y = 8w2",
        "hdr.b.z = 16w3",
        "hdr.b.s = 8s4",
    ]


def test_named_fields_may_come_in_any_order(rig: Rig) -> None:
    assert rig.ingress("pair_t p = {b = m.x, a = m.y}; m.x = p.a;", top=PAIR) == [
        "p.a = meta.y",
        "p.b = meta.x",
        "meta.x = p.a",
    ]


PAIR = "struct pair_t { bit<8> a; bit<8> b; }"


def test_a_swap_through_a_list_reads_everything_first(rig: Rig) -> None:
    lines = rig.ingress("pair_t p; p = {m.x, m.y}; p = {p.b, p.a}; m.x = p.a;", top=PAIR)
    assert lines == [
        "p.a = meta.x",
        "p.b = meta.y",
        "tmp = p.b",
        "tmp~2 = p.a",
        "p.a = tmp",
        "p.b = tmp~2",
        "meta.x = p.a",
    ]


def test_headers_are_equal_when_both_are_invalid_or_all_fields_are_equal(
    rig: Rig,
) -> None:
    (line,) = rig.ingress("m.flag = hdr.a == hdr.b;")
    assert line.startswith("meta.flag = ((hdr.a.$valid == hdr.b.$valid) && (!hdr.a.$valid || ((((")
    for name in "xyzs":
        assert f"(hdr.a.{name} == hdr.b.{name})" in line.replace("((", "(")


def test_structs_and_bools_in_headers_are_fields_of_the_header(rig: Rig) -> None:
    top = """
        struct inner_t { bit<7> id; bool on; }
        header outer_t { inner_t inner; bit<8> z; }
    """
    lines = rig.ingress("outer_t o; o.inner = {5, m.flag}; m.flag = o.inner.on;", top=top)
    assert lines == [
        "o.setInvalid",
        "o.inner.id = 7w5",
        "o.inner.on = (bit<1>)meta.flag",
        "meta.flag = (bool)o.inner.on",
    ]


def test_a_local_header_starts_invalid(rig: Rig) -> None:
    assert rig.ingress("h_t local; local.x = 1; hdr.a = local;")[:2] == [
        "local.setInvalid",
        "local.x = 8w1",
    ]


def test_an_enum_is_a_number(rig: Rig) -> None:
    top = "enum Color { RED, GREEN } enum bit<8> Code { A = 5, B = 9 }"
    lines = rig.ingress("Color c = Color.GREEN; m.flag = c == Color.RED; m.x = Code.B;", top=top)
    assert lines == ["c = 32w1", "meta.flag = (c == 32w0)", "meta.x = 8w9"]


def test_a_number_of_arbitrary_precision_exists_at_compile_time_only(rig: Rig) -> None:
    with pytest.raises(CompileError, match=r"test\.p4:\d+:\d+: error: a conversion to int"):
        rig.ingress("m.x = (bit<8>)((int)m.y + 1);")


def test_what_is_not_supported_is_named_with_its_place(rig: Rig) -> None:
    with pytest.raises(CompileError, match=r"test\.p4:\d+:\d+: error: .*`for` loop.*not supported"):
        rig.ingress("for (bit<8> i = 0; i < 3; i = i + 1) { m.x = i; }")
