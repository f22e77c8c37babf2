"""Constructs instances: parsers and controls with the objects they declare, under their names.

`Blocks` is the complete lowering of code outside of parsers. It knows the instances' tables and how
to make new instances; `Sites` knows which instances are applied at more than one place.
"""

from __future__ import annotations

from collections import Counter

from p4emu.frontend import ast
from p4emu.frontend.program import BlockApply, CheckedProgram, Construction
from p4emu.frontend.source import Source
from p4emu.frontend.types import ControlType, ExternType, ParserType, TypeVariable
from p4emu.ir.nodes import Program
from p4emu.lower import externs
from p4emu.lower.errors import unsupported
from p4emu.lower.names import control_plane_name
from p4emu.lower.scope import Binding, Frame, Instance, LoweredTable
from p4emu.lower.shapes import Allocator
from p4emu.lower.statements import Statements
from p4emu.lower.tables import lower_table


class Sites:
    """Where instances are applied, and whether that matters.

    An instance that is applied at one place gets its parameters as that place has them. With more
    places its tables, which exist once, need parameters that are the same everywhere.
    """

    def __init__(self, checked: CheckedProgram) -> None:
        self._checked = checked
        self._applies: Counter[ast.Declaration | ast.Parameter] = Counter(
            checked.declaration(call.instance)
            for call in checked.tables.calls.values()
            if isinstance(call, BlockApply) and isinstance(call.instance, ast.PathExpression)
        )
        self._has_tables: dict[ast.ControlDeclaration | ast.ParserDeclaration, bool] = {}

    def shared(self, instantiation: ast.Instantiation | None, declaration: Block) -> bool:
        """Whether an instance is applied at several places and has tables, its own or nested.

        `instantiation` None stands for one that is passed to a constructor.
        """
        if instantiation is not None and self._applies[instantiation] <= 1:
            return False
        return self.has_tables(declaration)

    def has_tables(self, declaration: Block) -> bool:
        known = self._has_tables.get(declaration)
        if known is None:
            known = any(self._declares_table(local) for local in declaration.locals)
            self._has_tables[declaration] = known
        return known

    def _declares_table(self, local: ast.LocalDeclaration) -> bool:
        if isinstance(local, ast.TableDeclaration):
            return True
        if not isinstance(local, ast.Instantiation):
            return False
        type_ = self._checked.construction(local).type
        return (
            isinstance(type_, (ControlType, ParserType))
            and isinstance(type_.declaration, BLOCKS)
            and self.has_tables(type_.declaration)
        )


Block = ast.ControlDeclaration | ast.ParserDeclaration
BLOCKS = (ast.ControlDeclaration, ast.ParserDeclaration)


class Blocks(Statements):
    """Lowers the code of controls, and makes the instances it declares."""

    def __init__(
        self,
        checked: CheckedProgram,
        program: Program,
        allocator: Allocator,
        frame: Frame,
        sites: Sites,
    ) -> None:
        super().__init__(checked, program, allocator, frame)
        self._sites = sites

    def table(self, declaration: ast.TableDeclaration, source: Source) -> LoweredTable:
        frame = self.activation()
        instance = frame.instance
        if instance is None:
            raise unsupported(source, "applying a table here")
        lowered = instance.tables.get(declaration)
        if lowered is None:
            lowered = lower_table(self, declaration, frame)
            instance.tables[declaration] = lowered
        return lowered

    # --- construction ---

    def construct_unnamed(self, construction: Construction, source: Source) -> Instance:
        owner = self.activation().instance
        assert owner is not None
        name = control_plane_name(owner.path, str(construction.type), ())
        made = self.construct(construction, name, owner.scope, owner.shared, source)
        assert isinstance(made, Instance)
        return made

    def construct(
        self,
        construction: Construction,
        name: str,
        scope: Frame,
        shared: bool,
        source: Source,
    ) -> Binding:
        """Makes an object or instance; `name` is its full control-plane name.

        Arguments are evaluated in `scope`. `shared` says that the instance or what it belongs to is
        applied at several places.
        """
        type_ = construction.type
        caller, self.frame = self.frame, scope
        try:
            if isinstance(type_, ExternType):
                return externs.construct(self, type_, construction.arguments, name, source)
            if not isinstance(type_, (ControlType, ParserType)) or not isinstance(
                type_.declaration, BLOCKS
            ):
                raise unsupported(source, f"constructing a {type_}")
            return self._construct_block(construction, type_, type_.declaration, name, shared)
        finally:
            self.frame = caller

    def _construct_block(
        self,
        construction: Construction,
        type_: ControlType | ParserType,
        declaration: Block,
        name: str,
        shared: bool,
    ) -> Instance:
        types = {
            TypeVariable(parameter.name, parameter): argument
            for parameter, argument in zip(
                declaration.type_parameters, type_.arguments, strict=False
            )
        }
        outermost = self.frame
        while outermost.parent is not None:
            outermost = outermost.parent
        scope = Frame(outermost, types=types)
        parameters = declaration.constructor_parameters
        for parameter, argument in zip(parameters, construction.arguments, strict=True):
            if argument.value is not None:
                scope.bindings[parameter] = self._constructor_argument(argument.value, name)
        instance = Instance(declaration, name, scope, shared)
        for local in declaration.locals:
            if isinstance(local, ast.Instantiation):
                scope.bindings[local] = self.instantiate(local, name, scope, shared)
            elif isinstance(local, ast.ValueSetDeclaration):
                raise unsupported(local.source, "a value_set")
        return instance

    def instantiate(
        self, node: ast.Instantiation, path: str, scope: Frame, shared: bool
    ) -> Binding:
        """What an instantiation inside the instance `path` (or at the top level) declares."""
        construction = self.checked.construction(node)
        if node.members:
            raise unsupported(node.source, "an instantiation with methods")
        name = control_plane_name(path, node.name, node.annotations)
        declaration = getattr(construction.type, "declaration", None)
        if isinstance(declaration, BLOCKS):
            shared = self._sites.has_tables(declaration) and (
                shared or self._sites.shared(node, declaration)
            )
        return self.construct(construction, name, scope, shared, node.source)

    def _constructor_argument(self, expression: ast.Expression, path: str) -> Binding:
        if isinstance(expression, ast.ConstructorCallExpression):
            construction = self.checked.construction(expression)
            name = f"{path}.{construction.type}"
            declaration = getattr(construction.type, "declaration", None)
            shared = isinstance(declaration, BLOCKS) and self._sites.shared(None, declaration)
            return self.construct(construction, name, self.frame, shared, expression.source)
        if isinstance(expression, ast.PathExpression):
            found = self.frame.find(self.checked.declaration(expression))
            if found is not None:
                return found
        return self.compile_time(expression, "a constructor argument")
