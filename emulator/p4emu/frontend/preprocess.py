"""The C preprocessor over P4 sources: one text, and for each character where it comes from.

Built on pcpp, whose tokens are joined to a text again instead of letting it print one: printing
would lose columns, and with `#line` the origin of what macros produce. Text from a macro has the
position of the macro's use. pcpp has no limits of its own, so the ones it needs are here.

Main types: `Preprocessed`, made by `preprocess`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import pcpp

from p4emu.frontend.diagnostics import CompileError, Diagnostics
from p4emu.frontend.source import Source

INCLUDE_DIRECTORY = Path(__file__).resolve().parent.parent / "include"
"""Where core.p4 and v1model.p4 are."""

MAX_INCLUDE_DEPTH = 50
"""Files included in files: more is a loop. Below what Python's stack holds of nested generators."""

MAX_TOKENS = 600_000
"""Tokens in macro expansions in all, so that macros that double themselves end with a message.

The all-reduce program with 2048 lanes takes 180,000; pcpp handles some 70,000 a second.
"""


@dataclass(frozen=True, slots=True)
class Segment:
    """From `start` (an offset in the text) on, text comes from `source`.

    Text of a file runs along with it, text of a macro stays at `source`, the macro's use.
    """

    start: int
    source: Source
    from_macro: bool


@dataclass(slots=True)
class Preprocessed:
    """The text after preprocessing, its origin, and the lines of all files that were read."""

    text: str
    segments: list[Segment]
    files: dict[str, list[str]] = field(default_factory=dict)


class _Line(int):
    """A line number that also knows the column and length of the token that has it.

    pcpp copies the line number of a macro's use to all that the macro produces; the column has to
    travel the same way.
    """

    column: int
    length: int


class _Preprocessor(pcpp.Preprocessor):  # type: ignore[misc]
    """pcpp with our messages, file access and limits."""

    def __init__(
        self, files: dict[str, list[str]], diagnostics: Diagnostics, root: Path | None
    ) -> None:
        self._files = files
        self._diagnostics = diagnostics
        self._roots = None if root is None else (root.resolve(), INCLUDE_DIRECTORY)
        self._line_starts: dict[str, list[int]] = {}
        self._tokens = 0
        self._open_files: list[str] = []
        super().__init__()

    # --- positions

    def group_lines(self, input: str, abssource: str) -> Iterator[list[Any]]:
        lines = [line.rstrip() for line in input.splitlines()]
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)
        self._files[abssource] = lines
        self._line_starts[abssource] = starts
        macros = self.macros
        for tokens in super().group_lines(input, abssource):
            for token in tokens:
                if token.type == self.t_ID and token.value in macros:
                    use = _Line(token.lineno)
                    use.column = token.lexpos - starts[token.lineno - 1] + 1
                    use.length = len(token.value)
                    token.lineno = use
            yield tokens

    def source_of(self, token: Any) -> Source:
        line = token.lineno
        if isinstance(line, _Line):
            return Source(token.source, int(line), line.column, line.length)
        starts = self._line_starts.get(token.source)
        if starts is None or not 0 < line <= len(starts):
            return Source(token.source, max(1, line), 1)
        return Source(
            token.source, line, max(1, token.lexpos - starts[line - 1] + 1), len(str(token.value))
        )

    # --- limits

    def expand_macros(self, tokens: list[Any], expanding_from: Sequence[str] = ()) -> list[Any]:
        self._tokens += len(tokens)
        if self._tokens > MAX_TOKENS and tokens:
            self._diagnostics.fatal(
                self.source_of(tokens[0]), f"macros expand to more than {MAX_TOKENS} tokens"
            )
        expanded: list[Any] = super().expand_macros(tokens, list(expanding_from))
        return expanded

    # --- hooks

    def on_error(self, file: str, line: int, msg: str) -> None:
        self._diagnostics.error(self._line(file, line), msg[:1].lower() + msg[1:])

    def on_file_open(self, is_system_include: bool, includepath: str) -> StringIO:
        path = Path(includepath)
        if not self._allowed(path) or not path.is_file():
            raise OSError(includepath)
        if self.include_depth > MAX_INCLUDE_DEPTH:
            self._diagnostics.fatal(
                self.source_of(self.lastdirective),
                f"files include one another more than {MAX_INCLUDE_DEPTH} deep",
                f"{path.name} probably includes itself; give it an include guard",
            )
        return StringIO(read_source(path, self._diagnostics, self.source_of(self.lastdirective)))

    def _allowed(self, path: Path) -> bool:
        return self._roots is None or not {*path.resolve().parents}.isdisjoint(self._roots)

    def on_include_not_found(
        self, is_malformed: bool, is_system_include: bool, curdir: str, includepath: str
    ) -> None:
        source = self.source_of(self.lastdirective)
        if is_malformed:
            self._diagnostics.fatal(source, '#include expects "file" or <file>')
        where = [str(p) for p in (*([] if is_system_include else [curdir]), *self.path)]
        self._diagnostics.fatal(
            source, f"file '{includepath}' not found", f"looked in: {', '.join(where)}"
        )

    def on_directive_handle(
        self, directive: Any, toks: list[Any], ifpassthru: bool, precedingtoks: list[Any]
    ) -> bool:
        self.lastdirective = directive
        if not toks and directive.value in _DIRECTIVES_WITH_OPERAND:
            self._diagnostics.fatal(
                self.source_of(directive), f"#{directive.value} without anything after it"
            )
        return True

    def on_directive_unknown(
        self, directive: Any, toks: list[Any], ifpassthru: bool, precedingtoks: list[Any]
    ) -> bool:
        source = self.source_of(directive)
        text = "".join(str(token.value) for token in toks).strip()
        if directive.value == "error":
            self._diagnostics.error(source, f"#error {text}")
        elif directive.value == "warning":
            self._diagnostics.warning(source, f"#warning {text}")
        elif directive.value not in ("pragma", "line"):
            self._diagnostics.error(source, f"unknown directive #{directive.value}")
        return True

    def _line(self, file: str, line: int) -> Source:
        lines = self._files.get(file, [])
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        indent = len(text) - len(text.lstrip())
        return Source(file, max(1, line), indent + 1, max(1, len(text) - indent))


_DIRECTIVES_WITH_OPERAND = frozenset(
    {"define", "include", "undef", "ifdef", "ifndef", "if", "elif", "pragma"}
)


def read_source(path: Path, diagnostics: Diagnostics, source: Source) -> str:
    """The text of a file; what is no text is reported at `source`."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        diagnostics.fatal(source, f"{path} is not UTF-8 text: {error.reason} at byte {error.start}")
    except OSError as error:
        diagnostics.fatal(source, f"cannot read {path}: {error.strerror or error}")


def preprocess(
    text: str,
    path: str,
    *,
    include: Sequence[Path],
    defines: Mapping[str, str],
    diagnostics: Diagnostics,
    files: dict[str, list[str]],
    root: Path | None = None,
) -> Preprocessed:
    """Preprocess `text`, the content of `path`.

    `include` directories are searched after the including file's own, before p4emu's. `files` gets
    the lines of every file read. With a `root`, files outside of it are as if they did not exist,
    except for p4emu's own: for sources that come from somebody else. Raises CompileError.
    """
    files[path] = text.splitlines()
    cpp = _Preprocessor(files, diagnostics, root)
    for name, value in defines.items():
        if not name.isidentifier() or "\n" in value:
            diagnostics.fatal(Source("<command line>", 1, 1), f"cannot define '{name}'")
        cpp.define(f"{name} {value}")
    for directory in (*include, INCLUDE_DIRECTORY):
        cpp.add_path(str(directory))
    cpp.temp_path.insert(0, str(Path(path).parent))
    # Files keep the names they were found under.
    cpp.rewrite_paths = []
    try:
        result = _join(cpp, cpp.parsegen(text, path, path))
    except CompileError:
        raise
    except RecursionError:
        diagnostics.fatal(_last_position(cpp, path), "macros or conditions are nested too deeply")
    except Exception as error:  # pcpp trusts its input; what it trips over is a malformed directive
        diagnostics.fatal(
            _last_position(cpp, path), f"malformed preprocessor directive ({error or 'incomplete'})"
        )
    diagnostics.check()
    return Preprocessed(*result, files)


def _last_position(cpp: _Preprocessor, path: str) -> Source:
    return cpp.source_of(cpp.lastdirective) if cpp.lastdirective else Source(path, 1, 1)


def _join(cpp: _Preprocessor, tokens: Iterator[Any]) -> tuple[str, list[Segment]]:
    """The text of the tokens and its segments.

    Where text of a macro meets other text there is a space, so that no token straddles the two.
    """
    parts: list[str] = []
    segments: list[Segment] = []
    offset = 0
    expected = -1  # where in its file the next token starts if it directly follows the last one
    source = None
    fresh = True  # whether file text that comes next needs a segment of its own
    use: object = None  # the macro use that the last text came from, None for file text
    spaced = True
    for token in tokens:
        value = str(token.value)
        if token.lexpos != expected or token.source != source:
            fresh = True
        if value.isspace():
            parts.append(value)
            spaced = True
        else:
            origin = token.lineno if getattr(token, "expanded_from", None) else None
            if origin is not use:
                if not spaced:
                    parts.append(" ")
                    offset += 1
                fresh = True
                use = origin
                if origin is not None:
                    segments.append(Segment(offset, cpp.source_of(token), True))
            if origin is None and fresh:
                segments.append(Segment(offset, cpp.source_of(token), False))
                fresh = False
            parts.append(value)
            spaced = False
        if "\n" in value:
            fresh = True
        offset += len(value)
        expected = token.lexpos + len(value)
        source = token.source
    return "".join(parts), segments
