"""A P4 software switch: compile a P4_16 program for v1model and run it.

    program = p4emu.compile("allreduce.p4", defines={"INA_LANES": "64"})
    switch = p4emu.Switch(program)

`compile` makes a `Program` or raises `CompileError`; `Switch` gives it state and ports. The
packages below are the stages: `frontend`, `lower`, `ir`, `jit`; `p4runtime` is the control plane.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from p4emu.errors import SwitchError
from p4emu.frontend.diagnostics import CompileError

if TYPE_CHECKING:
    from p4emu.entries import Match, TableEntry
    from p4emu.program import Program, compile
    from p4emu.switch import CounterValue, Port, Switch

# Loaded on first use: checking a program needs neither LLVM nor the compiled run time.
_LAZY = {
    "Program": "p4emu.program",
    "compile": "p4emu.program",
    "CounterValue": "p4emu.switch",
    "Match": "p4emu.entries",
    "Port": "p4emu.switch",
    "Switch": "p4emu.switch",
    "TableEntry": "p4emu.entries",
}

__all__ = [
    "CompileError",
    "CounterValue",
    "Match",
    "Port",
    "Program",
    "Switch",
    "SwitchError",
    "TableEntry",
    "compile",
]


def __getattr__(name: str) -> Any:
    home = _LAZY.get(name)
    if home is None:
        raise AttributeError(f"module 'p4emu' has no attribute {name!r}")
    return getattr(import_module(home), name)
