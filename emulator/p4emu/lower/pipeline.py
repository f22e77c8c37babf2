"""Lowers the package `main` of a v1model program: the six blocks of a `V1Switch`.

This is where the architecture is known: which blocks there are, in which order they run, and that
they share the headers, the user metadata and the standard metadata.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from p4emu.frontend import ast
from p4emu.frontend.diagnostics import CompileError, Diagnostic
from p4emu.frontend.program import CheckedProgram
from p4emu.frontend.types import ExternType, PackageType
from p4emu.ir import nodes as ir
from p4emu.lower.arguments import CopyOuts
from p4emu.lower.errors import error, unsupported
from p4emu.lower.instances import Blocks, Sites
from p4emu.lower.parsers import ParserLowering
from p4emu.lower.scope import Binding, ExitTarget, Frame, Instance, PacketObject
from p4emu.lower.shapes import Allocator
from p4emu.lower.values import Place, StructPlace

PACKAGE = "V1Switch"
_BLOCKS = 6
_NO_COPIES: CopyOuts = []


def lower(checked: CheckedProgram) -> ir.Program:
    """The IR of a checked program.

    Raises
    ------
    CompileError
        The program uses something that p4emu does not support yet, or something is wrong that only
        instantiation shows.
    """
    try:
        return _lower(checked)
    except CompileError as found:
        raise CompileError(map(_with_line, found.diagnostics)) from None


def _lower(checked: CheckedProgram) -> ir.Program:
    if checked.main is None:
        raise error(checked.program.source, f"the program has no `{PACKAGE}(...) main`")
    construction = checked.construction(checked.main)
    package = construction.type
    if (
        not isinstance(package, PackageType)
        or package.name != PACKAGE
        or len(construction.arguments) != _BLOCKS
    ):
        what = f"package `{package}` (only {PACKAGE} of v1model.p4 is)"
        raise unsupported(checked.main.source, what)

    program = ir.Program(Path(checked.path).stem, errors=list(checked.errors))
    allocator = Allocator(program)
    scope = Frame(None)
    blocks = Blocks(checked, program, allocator, scope, Sites(checked))
    for declaration in checked.program.declarations:
        if isinstance(declaration, ast.Instantiation) and isinstance(
            checked.construction(declaration).type, ExternType
        ):
            scope.bindings[declaration] = blocks.instantiate(declaration, "", scope, False)

    instances = [_block(blocks, argument.value, scope) for argument in construction.arguments]
    parser, verify, ingress, egress, compute, deparser = instances
    assert isinstance(parser.declaration, ast.ParserDeclaration)
    headers, metadata, standard = _storage(checked, program, allocator, parser.declaration)
    packet = PacketObject()

    states = ParserLowering(checked, program, allocator, scope, Sites(checked))
    frame = _activation(states, parser, (packet, headers, metadata, standard))
    states.run_parser(frame, parser.declaration)
    program.verify = _control(blocks, verify, (headers, metadata))
    program.ingress = _control(blocks, ingress, (headers, metadata, standard))
    program.egress = _control(blocks, egress, (headers, metadata, standard))
    program.compute = _control(blocks, compute, (headers, metadata))
    program.deparser = _control(blocks, deparser, (packet, headers))
    return program


def _block(blocks: Blocks, expression: ast.Expression | None, scope: Frame) -> Instance:
    """A parser or control that `main` is made of; it is named by its type."""
    if not isinstance(expression, ast.ConstructorCallExpression):
        assert expression is not None
        raise unsupported(expression.source, "a block that is not constructed in place")
    construction = blocks.checked.construction(expression)
    declaration = getattr(construction.type, "declaration", None)
    assert isinstance(declaration, (ast.ParserDeclaration, ast.ControlDeclaration))
    name = declaration.name
    made = blocks.construct(construction, name, scope, False, expression.source)
    assert isinstance(made, Instance)
    return made


def _storage(
    checked: CheckedProgram,
    program: ir.Program,
    allocator: Allocator,
    parser: ast.ParserDeclaration,
) -> tuple[Place, Place, StructPlace]:
    """Places for what the blocks hand on: headers, metadata, standard metadata."""
    headers, metadata, standard = (
        allocator.place(checked.declared_type(parameter), name, "packet", parameter.source)
        for parameter, name in zip(
            parser.parameters[1:], ("hdr", "meta", "standard_metadata"), strict=True
        )
    )
    assert isinstance(standard, StructPlace)
    for name, place in standard.fields.items():
        assert isinstance(place, ir.Var)
        program.standard[name] = place
    return headers, metadata, standard


def _activation(blocks: Blocks, instance: Instance, arguments: tuple[Binding, ...]) -> Frame:
    frame = blocks.activate(instance)
    for parameter, argument in zip(instance.declaration.parameters, arguments, strict=True):
        frame.bindings[parameter] = argument
    return frame


def _control(
    blocks: Blocks, instance: Instance, arguments: tuple[Binding, ...]
) -> tuple[ir.Stmt, ...]:
    declaration = instance.declaration
    assert isinstance(declaration, ast.ControlDeclaration)
    frame = _activation(blocks, instance, arguments)
    frame.exit = ExitTarget(f"{declaration.name}.exit")
    with blocks.nested() as body:
        blocks.run_control(frame, declaration, _NO_COPIES)
    with blocks.nested() as whole:
        blocks.emit_block(frame.exit.label, body)
    return tuple(whole)


def _with_line(diagnostic: Diagnostic) -> Diagnostic:
    """The diagnostic with the source line it points at: lowering does not have the text."""
    if diagnostic.line:
        return diagnostic
    try:
        text = Path(diagnostic.source.file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return diagnostic  # a built-in file, or gone: the position must do
    lines = text.splitlines()
    number = diagnostic.source.line
    return replace(diagnostic, line=lines[number - 1] if 0 < number <= len(lines) else "")
