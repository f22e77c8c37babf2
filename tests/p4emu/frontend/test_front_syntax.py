"""Tokens and grammar: what text becomes which tree."""

from __future__ import annotations

import pytest
from front_rig import accepted, errors, in_control, in_parser, nodes

from p4emu.frontend import ast, check_text, tables
from p4emu.frontend.diagnostics import Diagnostics
from p4emu.frontend.parser import Parser
from p4emu.frontend.preprocess import Preprocessed
from p4emu.frontend.tokens import Lexer


@pytest.mark.parametrize(
    ("text", "value", "width", "signed"),
    [
        ("10", 10, None, False),
        ("1_000", 1000, None, False),
        ("0x1F", 31, None, False),
        ("0b1010_1010", 170, None, False),
        ("0o17", 15, None, False),
        ("0d12", 12, None, False),
        ("8w255", 255, 8, False),
        ("8w0xff", 255, 8, False),
        ("4s0b0111", 7, 4, True),
        ("32w0xFFFF_FFFF", 0xFFFFFFFF, 32, False),
    ],
)
def test_integers(text: str, value: int, width: int | None, signed: bool) -> None:
    program = accepted(f"const int c = (int){text};")
    (literal,) = nodes(program, ast.IntLiteral)
    assert (literal.value, literal.width, literal.signed) == (value, width, signed)


@pytest.mark.parametrize("text", ["0x", "8w", "12ab", "0b12", "1w2w3"])
def test_what_only_looks_like_a_number_is_refused(text: str) -> None:
    assert any(text in message for message in errors(f"const int c = {text};"))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("1 + 2 * 3", "(1 + (2 * 3))"),
        ("1 - 2 - 3", "((1 - 2) - 3)"),
        ("1 << 2 + 3", "(1 << (2 + 3))"),
        ("256 >> 2 >> 1", "((256 >> 2) >> 1)"),
        ("1 | 2 ^ 3 & 4", "(1 | (2 ^ (3 & 4)))"),
        # Unlike C: comparisons bind less tightly than bit operators.
        ("1 & 2 == 2", "((1 & 2) == 2)"),
        ("1 < 2 == 3 < 4", "((1 < 2) == (3 < 4))"),
        ("true || false && false", "(true || (false && false))"),
        ("8w1 ++ 8w2 ++ 8w3", "((1 ++ 2) ++ 3)"),
        ("!true && false", "(!true && false)"),
        ("-1 + 2", "(-1 + 2)"),
        ("(bit<8>)1 + 2", "(cast(1) + 2)"),
        ("(bit<8>)(1 + 2)", "cast((1 + 2))"),
        ("true ? 1 : false ? 2 : 3", "(true ? 1 : (false ? 2 : 3))"),
    ],
)
def test_precedence(text: str, tree: str) -> None:
    assert shape(parsed(text)) == tree


def parsed(text: str) -> ast.Expression:
    """The tree of an expression, as part of a program that need not type check otherwise."""
    diagnostics = Diagnostics({})
    grammar = tables.load()
    source = Preprocessed(f"const int c = {text};", [])
    tokens = Lexer(grammar.literals).tokens(source, "test.p4", diagnostics)
    (declaration,) = Parser(grammar, tokens, diagnostics).parse().declarations
    assert isinstance(declaration, ast.ConstantDeclaration)
    return declaration.value


def shape(e: ast.Expression) -> str:
    if isinstance(e, ast.BinaryExpression):
        return f"({shape(e.left)} {e.operator} {shape(e.right)})"
    if isinstance(e, ast.UnaryExpression):
        return f"{e.operator}{shape(e.operand)}"
    if isinstance(e, ast.ConditionalExpression):
        return f"({shape(e.condition)} ? {shape(e.then)} : {shape(e.otherwise)})"
    if isinstance(e, ast.CastExpression):
        return f"cast({shape(e.operand)})"
    if isinstance(e, ast.BoolLiteral):
        return str(e.value).lower()
    assert isinstance(e, ast.IntLiteral)
    return str(e.value)


def test_a_greater_greater_closes_two_type_argument_lists() -> None:
    program = accepted(
        in_control("r.write(0, 1);", "register<bit<(4 >> 1)>>(8) r; register<bit<8>>(4) q;")
    )
    widths = [str(program.type_of_ref(i.type)) for i in nodes(program, ast.Instantiation)[:2]]
    assert widths == ["register<bit<2>>", "register<bit<8>>"]


def test_a_less_is_a_comparison_unless_a_type_follows() -> None:
    program = accepted(
        in_control("bool b = meta.a < Kind.x; bool c = meta.a < (bit<8>)1;").replace(
            "struct headers_t", "enum bit<8> Kind { x = 1 }\nstruct headers_t"
        )
    )
    assert [e.operator for e in nodes(program, ast.BinaryExpression)] == ["<", "<"]


def test_type_arguments_of_a_method_call() -> None:
    program = accepted(
        in_parser("state start { bit<8> x = packet.lookahead<bit<8>>(); transition accept; }")
    )
    (call,) = nodes(program, ast.CallExpression)
    assert len(call.type_arguments) == 1


def test_a_local_name_may_hide_a_type() -> None:
    accepted("struct T { bit<8> f; }\ncontrol c(in bit<8> T) { apply { bit<8> x = T + 1; } }")


def test_a_type_is_visible_again_after_the_scope_that_hid_it() -> None:
    accepted(
        "struct T { bit<8> f; }\ncontrol c(in bit<8> T) { apply { bit<8> x = T; } }\n"
        "control d(inout T t) { apply { t.f = 1; } }"
    )


@pytest.mark.parametrize(
    "word", ["apply", "key", "actions", "state", "entries", "type", "priority"]
)
def test_soft_keywords_are_names(word: str) -> None:
    accepted(f"struct s {{ bit<8> {word}; }}\ncontrol c(inout s x) {{ apply {{ x.{word} = 1; }} }}")


def test_else_belongs_to_the_nearest_if() -> None:
    program = accepted(
        "control c(in bool a, in bool b, out bit<8> x)"
        " { apply { if (a) if (b) x = 1; else x = 2; } }"
    )
    outer, inner = nodes(program, ast.IfStatement)
    assert outer.otherwise is None
    assert inner.otherwise is not None


def test_annotations_keep_their_tokens() -> None:
    program = accepted(
        '@a @b("s", 1 + (2)) @c[1, true] @d[k="v"]\nstruct s { @name(".x") bit<8> f; }'
    )
    (struct,) = nodes(program, ast.StructDeclaration)
    plain, tokens, listed, pairs = struct.annotations
    assert plain.tokens == ()
    assert [t.text for t in tokens.tokens] == ["s", ",", "1", "+", "(", "2", ")"]
    assert len(listed.expressions) == 2
    assert pairs.pairs[0].name == "k"
    assert struct.fields[0].annotations[0].string == ".x"


def test_table_properties() -> None:
    program = accepted(
        in_control(
            "t.apply();",
            'action a(bit<8> x) {} table t { key = { meta.a : exact @name("k"); meta.wide: lpm; }'
            " actions = { a; @defaultonly NoAction; } const default_action = a(3); size = 16;"
            " const entries = { (1, 8 &&& 0xf8) : a(1); (2, _) : a(2); } }",
        )
    )
    (table,) = nodes(program, ast.TableDeclaration)
    assert [k.match_kind for k in table.keys] == ["exact", "lpm"]
    assert table.keys[0].annotations[0].string == "k"
    assert table.default_action is not None
    assert table.default_action.const
    assert table.entries is not None
    assert len(table.entries.entries) == 2
    size = table.custom("size")
    assert size is not None
    assert program.constant(size.value) == 16


def test_loops_and_compound_assignments_parse() -> None:
    accepted(
        "control c(inout bit<32> x) { apply { for (bit<32> i = 0; i < 4; i += 1)"
        " { if (i == 2) continue; x |+|= i; } for (bit<32> j in 1 .. 3) { x ^= j; break; } } }"
    )


def test_all_of_v1model_is_accepted_in_both_versions() -> None:
    for version in ("20180101", "20200408"):
        program = check_text("#include <v1model.p4>", defines={"V1MODEL_VERSION": version})
        assert "range" in program.match_kinds
        assert program.errors[:2] == ("NoError", "PacketTooShort")
