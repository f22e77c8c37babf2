"""The P4_16 front end: text to checked program.

preprocess -> tokens -> `ast.Program` -> `program.CheckedProgram`. Nothing here knows an
architecture beyond what `core.p4` and `v1model.p4` declare. `check` does it all for a file,
`check_text` for text; what goes wrong is a `CompileError`, whatever the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from p4emu.frontend import tables
from p4emu.frontend.checker import check_program
from p4emu.frontend.diagnostics import CompileError, Diagnostic, Diagnostics
from p4emu.frontend.parser import Parser
from p4emu.frontend.preprocess import preprocess, read_source
from p4emu.frontend.program import CheckedProgram
from p4emu.frontend.source import Source
from p4emu.frontend.tokens import Lexer

__all__ = [
    "CheckedProgram",
    "CompileError",
    "Diagnostic",
    "Source",
    "check",
    "check_text",
]

_NO_DEFINES: Mapping[str, str] = MappingProxyType({})


def check(
    path: Path | str,
    *,
    include: Sequence[Path] = (),
    defines: Mapping[str, str] = _NO_DEFINES,
    root: Path | None = None,
) -> CheckedProgram:
    """Compile a P4_16 file as far as a checked program.

    Parameters
    ----------
    path
        The main file. Files it includes in quotes are looked for next to the including file first.
    include
        Directories to look for included files, before p4emu's own with core.p4 and v1model.p4.
    defines
        Preprocessor macros, as the compiler option -D gives them.
    root
        A folder: nothing outside of it is included but p4emu's own files. For sources of others,
        whose error messages would tell them what is in this machine's files.

    Raises
    ------
    CompileError
        The program is wrong, or a file cannot be read.
    """
    name = str(path)
    text = read_source(Path(path), Diagnostics({}), Source(name, 1, 1))
    return check_text(text, name, include=include, defines=defines, root=root)


def check_text(
    text: str,
    path: str = "<text>",
    *,
    include: Sequence[Path] = (),
    defines: Mapping[str, str] = _NO_DEFINES,
    root: Path | None = None,
) -> CheckedProgram:
    """Like `check`, for the text of a file named `path`."""
    files: dict[str, list[str]] = {}
    diagnostics = Diagnostics(files)
    preprocessed = preprocess(
        text,
        path,
        include=include,
        defines=defines,
        diagnostics=diagnostics,
        files=files,
        root=root,
    )
    grammar = tables.load()
    tokens = Lexer(grammar.literals).tokens(preprocessed, path, diagnostics)
    program = Parser(grammar, tokens, diagnostics).parse()
    return check_program(program, path, diagnostics)
