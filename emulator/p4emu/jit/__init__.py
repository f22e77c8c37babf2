"""Machine code from IR: layout, LLVM module, native functions for `csrc/switch`.

`compile_program(program)` is the way in; `CompiledProgram` is what comes out.
"""

from p4emu.jit.compiler import CompiledProgram, compile_program
from p4emu.jit.errors import CodegenError, RuntimeSymbolError, UnsupportedNodeError
from p4emu.jit.image import (
    ActionSpec,
    CounterSpec,
    KeyField,
    ParamSpec,
    ProgramImage,
    RegisterGroupSpec,
    RegisterMember,
    TableSpec,
)

__all__ = [
    "ActionSpec",
    "CodegenError",
    "CompiledProgram",
    "CounterSpec",
    "KeyField",
    "ParamSpec",
    "ProgramImage",
    "RegisterGroupSpec",
    "RegisterMember",
    "RuntimeSymbolError",
    "TableSpec",
    "UnsupportedNodeError",
    "compile_program",
]
