"""How lowering refuses a program: always with the place in the source and what is not supported."""

from __future__ import annotations

from p4emu.frontend.diagnostics import CompileError, Diagnostic
from p4emu.frontend.source import Source


def unsupported(source: Source, what: str, *hints: str) -> CompileError:
    """The error for something that is P4, but that p4emu cannot compile yet."""
    return error(source, f"{what} is not supported yet", *hints)


def error(source: Source, message: str, *hints: str) -> CompileError:
    """The error for something that is wrong, and that only instantiation brings to light."""
    return CompileError([Diagnostic("error", message, source, hints=hints)])
