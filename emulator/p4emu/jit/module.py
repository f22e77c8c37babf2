"""An IR program as an LLVM module: the two functions of `abi.hpp` and their bodies.

Each exported function only gathers pointers (frame bytes, register groups) and calls its body,
because LLVM takes `noalias` from function arguments, and vectorisation needs it.

Entry point: `build_module`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir as ll

from p4emu.ir.nodes import Program
from p4emu.jit import abi
from p4emu.jit.expressions import ExpressionEmitter
from p4emu.jit.frame import I32, I64, PTR, VOID, Frame
from p4emu.jit.layout import Layout
from p4emu.jit.parser import emit_parser
from p4emu.jit.statements import StatementEmitter
from p4emu.jit.wire import i64

INGRESS = "p4emu_ingress"
EGRESS = "p4emu_egress"


def build_module(program: Program, layout: Layout) -> Any:
    """The module; it exports `INGRESS` and `EGRESS`."""
    module = ll.Module(name="p4emu", context=ll.Context())
    ingress = Frame(module, "ingress", layout, [], VOID)
    _ingress_body(ingress, program)
    _wrapper(module, INGRESS, ingress, [PTR, PTR, PTR])

    egress = Frame(module, "egress", layout, [("out", PTR)], I32)
    egress.arguments["out"].add_attribute("noalias")
    _egress_body(egress, program)
    _wrapper(module, EGRESS, egress, [PTR, PTR, PTR, PTR])
    return module


def _ingress_body(frame: Frame, program: Program) -> None:
    emit_parser(frame, program)
    statements = StatementEmitter(frame, ExpressionEmitter(frame))
    statements.body(program.verify)
    statements.body(program.ingress)
    frame.builder.ret_void()
    frame.finish()


def _egress_body(frame: Frame, program: Program) -> None:
    emitted = frame.zeroed(I64, "emitted")
    expressions = ExpressionEmitter(frame)
    statements = StatementEmitter(frame, expressions)
    statements.body(program.egress)
    statements.body(program.compute)
    deparser = StatementEmitter(frame, expressions, frame.arguments["out"], emitted)
    deparser.body(program.deparser)
    length = frame.load(emitted, I64, 8)
    frame.builder.ret(frame.builder.trunc(length, I32))
    frame.finish()


def _wrapper(module: Any, name: str, frame: Frame, parameters: list[Any]) -> None:
    result = frame.function.function_type.return_type
    function = ll.Function(module, ll.FunctionType(result, parameters), name)
    function.attributes.add("nounwind")
    builder = ll.IRBuilder(function.append_basic_block("entry"))
    arguments = dict(zip(["vars", "state", "packet", "out"], function.args, strict=False))

    def field(pointer: Any, offset: int, type_: Any, align: int) -> Any:
        place = builder.gep(pointer, [i64(offset)], inbounds=True, source_etype=ll.IntType(8))
        return builder.load(place, typ=type_, align=align)

    arguments["data"] = field(arguments["packet"], abi.PACKET_DATA, PTR, 8)
    length = field(arguments["packet"], abi.PACKET_LENGTH, I32, 4)
    arguments["length"] = builder.zext(length, I64)
    groups = field(arguments["state"], abi.STATE_REGISTERS, PTR, 8)
    for number in range(len(frame.groups)):
        arguments[f"registers{number}"] = field(groups, number * 8, PTR, 8)
    value = builder.call(frame.function, [arguments[key] for key in frame.arguments])
    if result == VOID:
        builder.ret_void()
    else:
        builder.ret(value)
