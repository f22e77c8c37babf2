"""What can go wrong in code generation. None of these is the user's mistake in a P4 program."""

from __future__ import annotations


class CodegenError(Exception):
    """The IR could not be turned into machine code."""


class UnsupportedNodeError(CodegenError):
    """An IR node that the code generator does not know, or not in that place.

    `node` is the name of the node's class.
    """

    def __init__(self, node: object, place: str) -> None:
        self.node = type(node).__name__
        super().__init__(f"code generation knows no {self.node} in {place}: {node!r}")


class RuntimeSymbolError(CodegenError):
    """The run time does not export a function that compiled programs call."""

    def __init__(self, symbol: str, known: list[str]) -> None:
        self.symbol = symbol
        super().__init__(
            f"the run time exports no {symbol!r} (it has: {', '.join(known) or 'nothing'}); "
            "p4emu._runtime was built from other sources than this Python code"
        )
