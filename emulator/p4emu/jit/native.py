"""LLVM module to machine code in this process: optimisation, code generation, symbol binding.

Knows nothing of P4. Entry point: `compile_module`; the `NativeCode` it returns owns the memory.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from llvmlite import binding as llvm

from p4emu.jit.errors import CodegenError, RuntimeSymbolError


@cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@dataclass(slots=True)
class NativeCode:
    """Compiled functions; they stay valid as long as this object lives.

    `addresses` maps exported functions to their addresses, `seconds` stages to the time they took.
    """

    addresses: dict[str, int]
    seconds: dict[str, float]
    engine: Any
    _optimised: Any
    _machine: Any

    def llvm_ir(self) -> str:
        """The optimised module as text."""
        return str(self._optimised)

    def assembly(self) -> str:
        """The machine code as assembly text."""
        return str(self._machine.emit_assembly(self._optimised))


def host_machine() -> Any:
    """A target machine for this computer, with the widest vectors it has."""
    _initialise()
    # LLVM prefers 256-bit vectors on some machines with 512-bit ones because of clock effects of
    # old processors; lane arrays gain from the full width.
    features = llvm.get_host_cpu_features().flatten() + ",-prefer-256-bit"
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=2, jit=True
    )


def compile_module(
    text: str, exports: list[str], symbols: Mapping[str, int], level: int = 2
) -> NativeCode:
    """Optimise and compile a module given as LLVM assembly.

    Parameters
    ----------
    exports
        Functions whose addresses are wanted.
    symbols
        Addresses of the functions that the module only declares.

    Raises
    ------
    RuntimeSymbolError
        The module calls a function that `symbols` has no address for.
    CodegenError
        LLVM refuses the module.
    """
    machine = host_machine()
    seconds: dict[str, float] = {}
    clock = time.perf_counter()

    def lap(stage: str) -> None:
        nonlocal clock
        now = time.perf_counter()
        seconds[stage] = now - clock
        clock = now

    try:
        module = llvm.parse_assembly(text)
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CodegenError(f"LLVM refuses the module: {error}") from error
    lap("parse")
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.slp_vectorization = True
    options.loop_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    lap("optimise")
    engine = llvm.create_mcjit_compiler(module, machine)
    for function in module.functions:
        if function.is_declaration and not function.name.startswith("llvm."):
            address = symbols.get(function.name)
            if address is None:
                raise RuntimeSymbolError(function.name, sorted(symbols))
            engine.add_global_mapping(function, address)
    engine.finalize_object()
    addresses = {name: engine.get_function_address(name) for name in exports}
    lap("machine code")
    return NativeCode(addresses, seconds, engine, module, machine)
