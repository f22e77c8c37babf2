"""Messages about programs, rendered as a C compiler renders them.

Stages report to a `Diagnostics` collector and go on as long as that makes sense; `CompileError`
carries everything that was found. Nothing here knows what is being compiled.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn

from p4emu.frontend.source import Source

MAX_ERRORS = 20
"""Errors shown before compilation gives up: more are rarely read, and often follow from others."""

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message. `line` is the text of the source line; `hints` say what to do."""

    severity: Severity
    message: str
    source: Source
    line: str = ""
    hints: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"{self.source}: {self.severity}: {self.message}"
        if self.line.strip():
            number = str(self.source.line)
            gutter = " " * len(number)
            # Tabs are kept under tabs so that the caret stands where the terminal puts the text.
            before = self.line[: self.source.column - 1]
            indent = "".join("\t" if c == "\t" else " " for c in before)
            room = max(1, len(self.line) - len(before))
            caret = "^" + "~" * (min(self.source.length, room) - 1)
            text += f"\n {number} | {self.line}\n {gutter} | {indent}{caret}"
        return text + "".join(f"\n  hint: {hint}" for hint in self.hints)


class CompileError(Exception):
    """A program that cannot be compiled; `diagnostics` says why, errors and warnings in order."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(map(str, self.diagnostics)))


class Diagnostics:
    """Collects what the stages of one compilation report.

    Parameters
    ----------
    files
        The lines of each source file, by the name used in `Source`; may grow while compiling.
    """

    def __init__(self, files: Mapping[str, Sequence[str]]) -> None:
        self._files = files
        self._found: list[Diagnostic] = []
        self._seen: set[tuple[Source, str]] = set()

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._found)

    @property
    def error_count(self) -> int:
        return sum(d.severity == "error" for d in self._found)

    def error(self, source: Source, message: str, *hints: str) -> None:
        """Report an error; raises CompileError when there are too many."""
        self._add("error", source, message, hints)
        if self.error_count >= MAX_ERRORS:
            self.fail()

    def warning(self, source: Source, message: str, *hints: str) -> None:
        self._add("warning", source, message, hints)

    def fatal(self, source: Source, message: str, *hints: str) -> NoReturn:
        """Report an error after which nothing can go on."""
        self._add("error", source, message, hints)
        self.fail()

    def fail(self) -> NoReturn:
        raise CompileError(self._found)

    def check(self) -> None:
        """Raise CompileError if there was an error."""
        if self.error_count:
            self.fail()

    def _add(
        self, severity: Severity, source: Source, message: str, hints: tuple[str, ...]
    ) -> None:
        if (source, message) in self._seen:
            return
        self._seen.add((source, message))
        lines = self._files.get(source.file, ())
        line = lines[source.line - 1] if 0 < source.line <= len(lines) else ""
        self._found.append(Diagnostic(severity, message, source, line, hints))


def similar(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """A hint naming the known name that `name` is probably a misspelling of, if there is one."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    return (f"did you mean '{matches[0]}'?",) if matches else ()


def listing(items: Sequence[str], last: str = "or") -> str:
    """`a`, `a or b`, `a, b or c`."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"
