"""Messages: their form, their place, and what they say about syntax."""

from __future__ import annotations

import pytest
from front_rig import errors

from p4emu.frontend import CompileError, check_text


def rendered(text: str) -> str:
    with pytest.raises(CompileError) as caught:
        check_text(text, "dir/test.p4")
    return str(caught.value)


def test_the_form_of_a_message() -> None:
    assert rendered("const bit<8> a = 1;\n\tconst bit<8> b = a + oops;\n") == (
        "dir/test.p4:2:23: error: 'oops' is not declared\n"
        " 2 | \tconst bit<8> b = a + oops;\n"
        "   | \t                     ^~~~"
    )


def test_a_misspelt_name_gets_a_suggestion() -> None:
    assert "did you mean 'counter'?" in rendered("const int counter = 1; const int x = countr;")


def test_a_mistake_in_a_macro_points_to_its_use() -> None:
    text = "#define BAD(x) const bit<8> x = missing;\n\n  BAD(one)\n"
    assert "test.p4:3:3: error: 'missing' is not declared\n 3 |   BAD(one)\n   |   ^~~" in rendered(
        text
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("const bit<8> a = ;", "expected an expression, found ';'"),
        ("const bit<8> = 1;", "expected a name"),
        ("struct s { bit<8> a }", "expected ';', found '}'"),
        ("struct s { foo a; }", "'foo' is not the name of a type"),
        ("control c() { apply { if } }", "expected '(', found '}'"),
        ("control c() { apply {", "found the end of the file"),
        ("control c() { foo bar; apply {} }", "'foo' is not the name of a type"),
        ("control c() { apply { foo bar; } }", "'foo' is not the name of a type"),
        ("bit<8> f() { return 1 +; }", "expected an expression, found ';'"),
        ("header h { bit<8> a; } const int x = h;", "'h' is the name of a type, not a value"),
        ("garbage", "expected"),
        ("}", "expected a declaration"),
        ('const string s = "abc;', "string without an end"),
        ("const bit<8> a = 1 $ 2;", "character '$' does not belong in a P4 program"),
    ],
)
def test_syntax_errors_say_what_was_expected(text: str, message: str) -> None:
    found = errors(text)
    assert message in found[0], found


def test_a_missing_semicolon_is_found_at_the_end_of_the_line_before() -> None:
    text = rendered("const bit<8> a = 1\nconst bit<8> b = 2;")
    assert "a ';' is missing at the end of the line before" in text


def test_mistakes_in_several_declarations_are_all_reported() -> None:
    found = errors("const bit<8> = 1;\nstruct s { bit<8 a; }\nconst bit<8> ok = 1;\nconst = 2;")
    assert len(found) == 3


def test_uses_of_a_type_with_a_mistake_are_not_reported() -> None:
    found = errors("struct s { bit<8> a }\ncontrol c(inout s x) { apply { x.a = 1; } }")
    assert found == ["expected ';', found '}'"]


def test_there_is_an_end_to_errors() -> None:
    text = "".join(f"const bit<8> c{i} = missing{i};\n" for i in range(100))
    assert len(errors(text)) == 20


@pytest.mark.parametrize(
    "text",
    [
        "const int c = " + "(" * 5000 + "1" + ")" * 5000 + ";",
        "const int c = " + "-" * 5000 + "1;",
        "const int c = " + "1 + " * 5000 + "1;",
        "const int c = " + "true ? 1 : " * 3000 + "1;",
        "control c() { apply " + "{" * 5000 + "}" * 5000 + " }",
        "control c(in bool b) { apply { " + "if (b) " * 3000 + "return; } }",
        "const bit<8> x" + ".a" * 5000 + " = 1;",
        "control c(in tuple<" + "tuple<" * 2000 + "bit<8>" + ">" * 2000 + "> x) { apply {} }",
        "const tuple<bit<8>> c = " + "{" * 3000 + "1" + "}" * 3000 + ";",
    ],
)
def test_deep_nesting_is_an_error_not_a_crash(text: str) -> None:
    assert errors(text)


def test_long_chains_are_accepted() -> None:
    check_text("const int c = " + "1 + " * 250 + "1;")
    branches = " else ".join(f"if (x == {i}) x = {i + 1};" for i in range(100))
    check_text(f"control c(inout bit<8> x) {{ apply {{ {branches} }} }}")
