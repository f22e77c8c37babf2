"""Where a piece of program text comes from.

`Source` is on every token, every AST node and every diagnostic. It is a tuple because a program
has tens of thousands of them.
"""

from __future__ import annotations

from typing import NamedTuple


class Source(NamedTuple):
    """A span of one line. Lines and columns count from 1; `length` is in characters.

    Text that a macro produced has the span of the macro's use, not of its definition.
    """

    file: str
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"
