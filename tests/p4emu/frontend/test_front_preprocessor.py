"""The preprocessor: macros, includes, and positions that survive both."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from front_rig import accepted, errors, nodes

from p4emu.frontend import CompileError, ast, check, check_text


def test_positions_in_plain_text() -> None:
    program = accepted("\n\n  const bit<8>\tvalue = 1;")
    (constant,) = nodes(program, ast.ConstantDeclaration)
    assert (constant.source.line, constant.source.column) == (3, 16)
    assert constant.source.length == 5


def test_comments_do_not_move_positions() -> None:
    program = accepted("/* one\n two */ const /* x */ bit<8> value = 1; // end\n")
    (constant,) = nodes(program, ast.ConstantDeclaration)
    assert (constant.source.line, constant.source.column) == (2, 30)


def test_what_a_macro_makes_is_where_the_macro_is_used() -> None:
    program = accepted("#define FIELD(n) bit<8> f##n;\nstruct s {\n  FIELD(1) FIELD(2)\n}")
    (struct,) = nodes(program, ast.StructDeclaration)
    assert [f.name for f in struct.fields] == ["f1", "f2"]
    assert [(f.source.line, f.source.column) for f in struct.fields] == [(3, 3), (3, 12)]


def test_text_after_a_macro_keeps_its_column() -> None:
    program = accepted("#define W 8\nconst bit<W> value = 1;")
    (constant,) = nodes(program, ast.ConstantDeclaration)
    assert constant.source.column == 14


def test_a_macro_does_not_join_its_neighbours() -> None:
    program = accepted("#define PLUS +1\nconst int c = 2 +PLUS;")
    assert program.constant(nodes(program, ast.ConstantDeclaration)[0].value) == 3


def test_repetition_with_pasted_names() -> None:
    lines = [
        "#define R4(M, p) M(p##0) M(p##1) M(p##a) M(p##b)",
        "#define R16(M) R4(M, 0) R4(M, 1) R4(M, a) R4(M, b)",
        "#define FIELD(n) bit<8> l##n;",
        "struct s { R16(FIELD) }",
    ]
    (struct,) = nodes(accepted("\n".join(lines)), ast.StructDeclaration)
    names = [f.name for f in struct.fields]
    assert names[:5] == ["l00", "l01", "l0a", "l0b", "l10"]
    assert len(names) == 16


def test_defines_come_from_outside() -> None:
    program = check_text("const bit<32> c = LANES * 4;", defines={"LANES": "64"})
    (constant,) = program.program.declarations
    assert isinstance(constant, ast.ConstantDeclaration)
    assert program.constant(constant.value) == 256


def test_conditions() -> None:
    text = "#if defined(A) && A > 2\nconst bit<8> c = 1;\n#else\nconst bit<8> c = 2;\n#endif"
    for define, value in (({"A": "3"}, 1), ({"A": "2"}, 2), ({}, 2)):
        program = check_text(text, defines=define)
        (constant,) = program.program.declarations
        assert isinstance(constant, ast.ConstantDeclaration)
        assert program.constant(constant.value) == value


def test_errors_in_included_files_name_that_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "part.p4").write_text("const bit<8> a = 1;\nconst bit<8> b = missing;\n")
    main = tmp_path / "main.p4"
    main.write_text('#include "sub/part.p4"\n')
    with pytest.raises(CompileError) as caught:
        check(main)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.source.file == str(tmp_path / "sub" / "part.p4")
    assert (diagnostic.source.line, diagnostic.source.column) == (2, 18)
    assert diagnostic.line == "const bit<8> b = missing;"


def test_include_directories_come_before_our_own(tmp_path: Path) -> None:
    (tmp_path / "core.p4").write_text("const bit<8> mine = 1;")
    program = check_text("#include <core.p4>", include=[tmp_path])
    (constant,) = program.program.declarations
    assert isinstance(constant, ast.ConstantDeclaration)
    assert constant.name == "mine"


def test_a_missing_include_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        check_text('\n#include "none.p4"', include=[tmp_path])
    (diagnostic,) = caught.value.diagnostics
    assert "none.p4" in diagnostic.message
    assert diagnostic.source.line == 2
    assert str(tmp_path) in diagnostic.hints[0]


def test_a_file_that_includes_itself_is_reported(tmp_path: Path) -> None:
    main = tmp_path / "main.p4"
    main.write_text('const bit<8> a = 1;\n#include "main.p4"\n')
    with pytest.raises(CompileError, match="include one another"):
        check(main)


def test_a_missing_main_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="cannot read"):
        check(tmp_path / "none.p4")


def test_a_binary_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "binary.p4"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CompileError, match="UTF-8"):
        check(path)


@pytest.mark.parametrize(
    "text",
    ["#if\n#endif", "#define", "#include", "#ifdef", "#include <", "#if (", "#elif 1", "#endif"],
)
def test_malformed_directives_are_reported(text: str) -> None:
    assert errors(text)


def test_error_directives_are_errors() -> None:
    assert errors('#error "too many lanes"') == ['#error "too many lanes"']


def test_macros_that_double_themselves_end(monkeypatch: pytest.MonkeyPatch) -> None:
    # The module, not the function of the same name that the package imports from it.
    monkeypatch.setattr(sys.modules["p4emu.frontend.preprocess"], "MAX_TOKENS", 10_000)
    text = "#define A0 1 +\n" + "".join(
        f"#define A{i + 1} A{i} A{i} A{i} A{i}\n" for i in range(30)
    )
    assert "expand" in errors(f"{text}const int c = A30 1;")[0]
