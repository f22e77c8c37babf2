"""`compile`: a P4 source file to a `Program`, through all stages.

    front end (source -> checked program) -> lowering (-> IR) -> code generation (-> machine code)

A `Program` is code and layout, without state: any number of switches may run it. Nothing here knows
what the stages do; it runs them, in order, and keeps the time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from p4emu import frontend, ir, jit, lower
from p4emu.frontend.program import CheckedProgram
from p4emu.ir.nodes import Program as IRProgram
from p4emu.jit import CompiledProgram


@dataclass(frozen=True, eq=False)
class Program:
    """A compiled P4 program.

    Attributes
    ----------
    path
        The source file.
    checked
        The typed syntax tree: what `p4info` is made from.
    ir
        The program as scalars and statements.
    compiled
        Machine code and the image the run time needs. The code lives as long as this object.
    seconds
        Time each stage took: "front end", "lowering", and those of code generation.
    """

    path: Path
    checked: CheckedProgram
    ir: IRProgram
    compiled: CompiledProgram
    seconds: Mapping[str, float] = field(repr=False)

    @cached_property
    def p4info(self) -> Any:
        """The control plane's view: a `p4.config.v1.p4info_pb2.P4Info`, made on first use."""
        from p4emu.p4info import p4info  # protobuf is not needed to run a program

        return p4info(self.checked)


def compile(
    path: str | PathLike[str],
    *,
    include: Sequence[str | PathLike[str]] = (),
    defines: Mapping[str, str] | None = None,
    root: Path | None = None,
) -> Program:
    """Compile a P4_16 program for the v1model architecture.

    Parameters
    ----------
    path
        The source file. `core.p4` and `v1model.p4` come with p4emu.
    include
        Folders searched for included files, after the including file's own.
    defines
        Preprocessor macros: name to replacement text.
    root
        A folder: nothing outside of it is included but p4emu's own files. For sources of others.

    Raises
    ------
    CompileError
        The program is wrong, or uses what p4emu does not support; the message has the places.
    OSError
        The file cannot be read.
    """
    seconds: dict[str, float] = {}
    begin = time.perf_counter()
    checked = frontend.check(
        Path(path),
        include=[Path(folder) for folder in include],
        defines=dict(defines or {}),
        root=root,
    )
    front_end = time.perf_counter()
    seconds["front end"] = front_end - begin
    lowered = lower.lower(checked)
    ir.verify(lowered)
    seconds["lowering"] = time.perf_counter() - front_end
    compiled = jit.compile_program(lowered)
    seconds.update(compiled.seconds)
    return Program(Path(path), checked, lowered, compiled, seconds)
