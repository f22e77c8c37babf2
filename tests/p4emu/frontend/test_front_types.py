"""What the checker refuses, and what it says."""

from __future__ import annotations

import pytest
from front_rig import HEADERS, accepted, errors, in_control, in_parser


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("meta.a = meta.wide;", "must be bit<8>, not bit<32>"),
        ("meta.a = meta.s;", "must be bit<8>, not int<8>"),
        ("meta.a = true;", "must be bit<8>, not bool"),
        ("meta.flag = meta.a;", "must be bool, not bit<8>"),
        ("meta.a = meta.a + meta.wide;", "'+' cannot be applied to bit<8> and bit<32>"),
        ("meta.a = meta.a & meta.s;", "'&' cannot be applied to bit<8> and int<8>"),
        ("meta.flag = meta.a && true;", "'&&' needs a bool, not bit<8>"),
        ("meta.flag = !meta.a;", "'!' needs a bool"),
        ("meta.flag = meta.flag < true;", "'<' cannot be applied to bool and bool"),
        ("meta.a = meta.wide[3:0];", "must be bit<8>, not bit<4>"),
        ("meta.a = meta.wide[32:25];", "has bits 0 to 31"),
        ("meta.a = meta.wide[0:7];", "the high end comes first"),
        ("meta.a = meta.a << meta.s;", "the distance must be unsigned"),
        ("meta.wide = 1 << meta.a;", "a number without a width can only be shifted by a constant"),
        ("meta.a = meta.a / 0;", "division by zero"),
        ("meta.s = meta.s / 2;", "'/' is not defined for int<8>"),
        ("meta.a = 1 ++ 4w0;", "'++' joins bits, not int"),
        ("meta.a = (bit<8>)meta.flag;", "bool cannot be converted to bit<8>"),
        ("meta.wide = (bit<32>)meta.s;", "int<8> cannot be converted to bit<32>"),
        ("if (meta.a) {}", "the condition must be bool, not bit<8>"),
        ("meta.a = meta.flag ? meta.a : meta.wide;", "the two sides of '?' have different types"),
        ("meta.b = 1;", "meta_t has no field 'b'"),
        ("other = 1;", "'other' is not declared"),
        ("hdr.stack[3].setValid();", "index 3 is out of range"),
        ("hdr.eth.isValid = true;", "eth_t has no field 'isValid'"),
        ("hdr.eth.clear();", "eth_t has no method 'clear'"),
        ("meta.setValid();", "meta_t has no method 'setValid'"),
        ("meta.a.x = 1;", "bit<8> has no member 'x'"),
        ("meta.a[0] = 1;", "bit<8> has no elements"),
        ("1 = meta.a;", "expected"),
        ("meta.a = 8w1; bit<8> meta = 1; bit<8> meta = 2;", "'meta' is declared again"),
        ("int x = 1;", "a variable cannot be of type int"),
        ("return 1;", "nothing to return a value to"),
        ("break;", "'break' outside of a loop"),
        ("mark_to_drop(meta);", "must be standard_metadata_t, not meta_t"),
        ("mark_to_drop(standard, meta);", "no 'mark_to_drop' takes these 2 arguments"),
        ("random(meta.a, 0, meta.wide);", "must be bit<8>, not bit<32>"),
        ("random(1, 8w0, 8w1);", "cannot be assigned to"),
        ("hash(meta.wide, HashAlgorithm.crc17, 32w0, { meta.a }, 32w8);", "has no 'crc17'"),
        (
            "hash(meta.wide, HashAlgorithm.crc32, 32w0, { meta.a, 1 }, 32w8);",
            "width of this number",
        ),
        ("standard.parser_error = error.Nothing;", "'Nothing' is no member of error"),
        ("verify(meta.flag);", "takes 2 arguments, but 1 is given"),
        ("verify(meta.flag, error.NoMatch);", "'verify' exists only in parsers"),
        ("hdr.stack.next.setValid();", "'next' exists only in parsers"),
        ("hash(meta.wide, HashAlgorithm.crc32, 0xff, { meta.a }, 32w8);", "width of this number"),
        ("hdr.eth = { 1, 2 };", "must be eth_t, not tuple<int, int>"),
        ("hdr.eth = { dst = 1, src = 2 };", "must be eth_t"),
    ],
)
def test_statements(body: str, message: str) -> None:
    assert any(message in found for found in errors(in_control(body))), errors(in_control(body))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("key = { meta.a: exakt; } actions = { a; }", "'exakt' is no match kind"),
        ("key = { hdr.eth: exact; } actions = { a; }", "a key of type eth_t cannot be matched"),
        ("key = { meta.flag: lpm; } actions = { a; }", "cannot be matched 'lpm'"),
        ("key = { meta.a: exact; }", "has no actions"),
        ("key = { meta.a: exact; } actions = { b; }", "'b' is not declared"),
        ("actions = { a; a; }", "'a' is listed twice"),
        ("actions = { a; } default_action = NoAction();", "'NoAction' is not in the actions"),
        ("actions = { a; } default_action = a();", "takes 1 argument, but 0 are given"),
        ("actions = { a; } default_action = a(meta.a);", "known at compile time"),
        ("actions = { a; } size = meta.a;", "known at compile time"),
        ("actions = { a; } size = 1; size = 2;", "there twice"),
        (
            "key = { meta.a: exact; } actions = { a; } const entries = { (1, 2): a(1); }",
            "1 keys need 1 values, not 2",
        ),
        (
            "key = { meta.a: exact; } actions = { a; } const entries = { 1 &&& 3: a(1); }",
            "an exact key needs one value",
        ),
        (
            "key = { meta.a: range; } actions = { a; } const entries = { 9 .. 3: a(1); }",
            "empty range",
        ),
        (
            "key = { meta.a: exact; } actions = { a; } const entries = { true: a(1); }",
            "must be bit<8>, not bool",
        ),
    ],
)
def test_tables(table: str, message: str) -> None:
    text = in_control("t.apply();", f"action a(bit<8> x) {{}} table t {{ {table} }}")
    assert any(message in found for found in errors(text)), errors(text)


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ("state begin { transition accept; }", "has no state 'start'"),
        ("state start { transition finish; }", "there is no state 'finish'"),
        ("state start { transition accept; } state start { }", "'start' is declared again"),
        ("state start { } state accept { }", "a state that every parser has already"),
        ("state start { exit; }", "a parser cannot exit"),
        ("state start { packet.extract(meta); }", "only headers can be extracted"),
        ("state start { packet.extract(hdr.opt); }", "extract needs its length"),
        ("state start { packet.extract(hdr.eth, 8); }", "must have one varbit field"),
        ("state start { packet.skip(8); }", "packet_in has no method 'skip'"),
        ("state start { bit<8> x = packet.lookahead(); }", "does not follow from the arguments"),
        (
            "state start { transition select(meta.a) { meta.wide: accept; } }",
            "must be bit<8>, not bit<32>",
        ),
        (
            "state start { transition select(meta.a, meta.flag) { (1, true, 2): accept; } }",
            "2 keys need 2 values, not 3",
        ),
    ],
)
def test_parsers(states: str, message: str) -> None:
    assert any(message in found for found in errors(in_parser(states))), errors(in_parser(states))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("struct s { bit<8> a; bit<8> a; }", "'a' is declared again"),
        ("struct s {} struct s {}", "'s' is declared again"),
        ("header h { string s; }", "cannot have a field of type string"),
        ("header_union u { bit<8> x; }", "cannot have a field of type bit<8>"),
        ("struct s { bit<0> x; }", "a width must be 1 to"),
        ("struct s { bit<99999999> x; }", "a width must be 1 to"),
        ("enum bit<2> e { a = 1, b = true }", "must be bit<2>, not bool"),
        ("enum bool e { a = true }", "the values of an enum are bit<W> or int<W>"),
        ("type int t;", "makes new types of scalars"),
        ("const bit<8> c = f();", "'f' is not declared"),
        ("bit<8> f(in bit<8> x) { return true; }", "must be bit<8>, not bool"),
        ("bit<8> f(in bit<8> x) { if (x == 1) return 1; }", "on every path"),
        ("void f(in bit<8> x) { x = 1; }", "'x' is an in parameter"),
        ("action a(bit<8> x, inout bit<8> y) {}", "must come last"),
        ("control c(inout bit<8> x)(bit<8> n) { apply { n = x; } }", "a directionless parameter"),
        ("control c() { d() e; apply {} }", "'d' is not the name of a type"),
        ("extern e { f(); }", "expected"),
        ("extern e { e(bit<8> n); } e(true) x;", "must be bit<8>, not bool"),
        ("extern e { void m(); } e() x;", "has no constructor"),
        ("error { A } error { A }", "'A' is declared again"),
        ("control c() { c() inner; apply { inner.apply(); } }", "c cannot contain itself"),
        ("control c() { apply { c.apply(); } }", "c cannot contain itself"),
        ("control c() { apply {} } c() instance;", "cannot be instantiated at the top level"),
        ("action a() {} void f() { a(); }", "a function cannot call an action"),
        ("extern e { e(); } action a(e x) {}", "cannot have an extern as parameter"),
        ("void f(out bit<8> x = 1) {}", "'x' is out and cannot have a default"),
        ("extern void f(in bit<8> x, in bit<8> x);", "'x' is declared again"),
        (
            "control c() { table t { actions = {} } action a() { t.apply(); } apply {} }",
            "tables can be applied only in the apply block",
        ),
    ],
)
def test_declarations(text: str, message: str) -> None:
    assert any(message in found for found in errors(text)), errors(text)


def test_a_block_of_the_wrong_shape_does_not_fit_the_package() -> None:
    text = in_control("").replace("V1Switch(P(), V(), I()", "V1Switch(P(), V(), V()")
    (message,) = errors(text)
    assert "argument 'ig' of 'V1Switch' must be Ingress" in message


@pytest.mark.parametrize("again", ["control Ingress() { apply {} }", "struct Parser {}"])
def test_names_of_v1models_interfaces_are_taken(again: str) -> None:
    (message,) = errors(in_control("") + again)
    assert "is declared again" in message


def test_out_arguments_need_the_exact_type() -> None:
    text = in_control("r.read(meta.a, 0);", "register<bit<32>>(4) r;")
    assert errors(text) == ["argument 'result' of 'register.read' must be bit<32>, not bit<8>"]


def test_constructor_arguments_must_be_constant() -> None:
    assert any(
        "'size' must be known at compile time" in m
        for m in errors(in_control("", "register<bit<32>>(meta.wide) r;"))
    )


def test_new_types_do_not_convert_by_themselves() -> None:
    before = "type bit<9> port_t; control c(in port_t p, out bit<9> b) { apply { %s } }"
    accepted(before % "b = (bit<9>)p;")
    assert errors(before % "b = p;") == ["the value assigned must be bit<9>, not port_t"]


def test_serializable_enums_convert_to_their_type_but_not_back() -> None:
    before = "enum bit<8> E { A = 1 } control c(inout E e, inout bit<8> b) { apply { %s } }"
    accepted(before % "b = e; b = e + 1; e = (E)b;")
    assert errors(before % "e = b;") == ["the value assigned must be E, not bit<8>"]


def test_several_errors_are_reported_together() -> None:
    found = errors(in_control("meta.a = true; meta.b = 1; other = 2;"))
    assert len(found) == 3


def test_after_a_mistake_its_consequences_are_not_reported() -> None:
    assert errors(in_control("bit<8> x = missing + 1; meta.a = x; meta.a = missing2;")) == [
        "'missing' is not declared",
        "'missing2' is not declared",
    ]


def test_a_value_that_does_not_fit_is_a_warning() -> None:
    program = accepted(in_control("meta.a = 256;"))
    assert [w.message for w in program.warnings] == [
        "256 does not fit into bit<8>: its upper bits are lost"
    ]


def test_the_headers_used_here_are_sound() -> None:
    assert not accepted(HEADERS).warnings
