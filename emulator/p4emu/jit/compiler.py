"""IR program to `CompiledProgram`: layout, LLVM module, machine code, image for the run time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from p4emu.ir.nodes import Program
from p4emu.jit.image import ProgramImage
from p4emu.jit.layout import lay_out
from p4emu.jit.module import EGRESS, INGRESS, build_module
from p4emu.jit.native import NativeCode, compile_module


@dataclass(slots=True)
class CompiledProgram:
    """Machine code of one P4 program and all that the run time must know to run it.

    The code lives as long as this object: whoever calls `ingress` or `egress` holds a reference.

    Attributes
    ----------
    image
        Layout: variable block, tables, registers, counters.
    ingress, egress
        Addresses of an `IngressFunction` and an `EgressFunction` (`csrc/switch/abi.hpp`).
    seconds
        Time taken by each stage.
    """

    image: ProgramImage
    ingress: int
    egress: int
    seconds: dict[str, float]
    native: NativeCode


def compile_program(
    program: Program, *, symbols: Mapping[str, int] | None = None
) -> CompiledProgram:
    """Compile an IR program for this machine.

    Parameters
    ----------
    symbols
        Addresses of the run time's functions; those of `p4emu._runtime` by default.

    Raises
    ------
    CodegenError
        The program has a node that code generation does not know, or the run time lacks a function
        that it calls.
    """
    begin = time.perf_counter()
    layout = lay_out(program)
    text = str(build_module(program, layout))
    generated = time.perf_counter() - begin
    if symbols is None:
        from p4emu import _runtime  # built extension; not needed by those who bring symbols

        symbols = _runtime.symbols()
    native = compile_module(text, [INGRESS, EGRESS], symbols)
    return CompiledProgram(
        image=layout.image,
        ingress=native.addresses[INGRESS],
        egress=native.addresses[EGRESS],
        seconds={"generate": generated, **native.seconds},
        native=native,
    )
