"""Inlines calls of controls, actions and functions: their bodies, `return`, `exit` and results.

How parameters are bound is in `arguments`; calls of externs and tables are elsewhere, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from p4emu.frontend import ast
from p4emu.frontend.program import ActionCall, BlockApply, Construction, FunctionCall
from p4emu.frontend.source import Source
from p4emu.frontend.types import Type, TypeVariable, VoidType
from p4emu.ir.nodes import BOOL, Assign, Read
from p4emu.lower import fold
from p4emu.lower.arguments import ArgumentBinding, CopyOuts, Passing
from p4emu.lower.errors import unsupported
from p4emu.lower.scope import ExitTarget, Frame, Instance
from p4emu.lower.values import Value, load


class Calls(ArgumentBinding):
    """`ArgumentBinding` that inlines what is called."""

    # --- what later layers add ---

    def statements(self, statements: Iterable[ast.Statement]) -> None:
        """Emits statements in the current frame."""
        raise NotImplementedError

    def construct_unnamed(self, construction: Construction, source: Source) -> Instance:
        """Makes an instance named by its type, in the scope of the current activation."""
        raise NotImplementedError

    # --- the three kinds of callees ---

    def call_function(self, call: FunctionCall, source: Source) -> Value | None:
        """A function of the program; gives its result."""
        function = call.function
        frame = Frame(self._global_scope(), types=self._type_arguments(call))
        frame.activation = frame
        result = self.substituted(call.result)
        if not isinstance(result, VoidType):
            name = f"{function.name}.result"
            frame.result = self.allocator.place(result, name, "local", source)
        copy_outs = self.bind(frame, function.parameters, call.arguments, Passing.DIRECT)
        self.inline(frame, function.body.statements, function.name, copy_outs)
        return None if frame.result is None else load(frame.result)

    def call_action(self, call: ActionCall) -> None:
        """An action called directly: its directionless parameters have arguments, too."""
        activation = self.activation()
        frame = Frame(activation, activation.instance, exit=self.frame.exit, activation=activation)
        action = call.action
        copy_outs = self.bind(frame, action.parameters, call.arguments, Passing.COPIED)
        self.inline(frame, action.body.statements, action.name, copy_outs)

    def call_control(self, call: BlockApply, expression: ast.CallExpression) -> None:
        """`instance.apply(...)` of a control."""
        instance = self.instance_of(call, expression)
        declaration = instance.declaration
        if not isinstance(declaration, ast.ControlDeclaration):
            raise unsupported(expression.source, "applying a parser outside of a parser")
        frame = self.activate(instance)
        passing = Passing.FIXED if instance.shared else Passing.DIRECT
        copy_outs = self.bind(frame, declaration.parameters, call.arguments, passing)
        self.run_control(frame, declaration, copy_outs)

    def run_control(
        self, frame: Frame, declaration: ast.ControlDeclaration, copy_outs: CopyOuts
    ) -> None:
        """Runs a control in an activation whose parameters are bound."""
        variables = [d for d in declaration.locals if isinstance(d, ast.VariableDeclaration)]
        body = (*variables, *declaration.body.statements)
        self.inline(frame, body, declaration.name, copy_outs)

    # --- instances and scopes ---

    def activate(self, instance: Instance) -> Frame:
        """A new frame for an apply of the instance."""
        scope = instance.scope
        frame = Frame(scope, instance, types=scope.types, exit=self.frame.exit)
        frame.activation = frame
        return frame

    def activation(self) -> Frame:
        """The frame of the enclosing apply."""
        activation = self.frame.activation
        assert activation is not None
        return activation

    def instance_of(self, call: BlockApply, expression: ast.CallExpression) -> Instance:
        """The instance that is applied; `Type.apply()` makes one of its own at each place."""
        if call.instance is not None:
            instance = self.resolve(call.instance)
            assert isinstance(instance, Instance)
            return instance
        owner = self.activation().instance
        assert owner is not None
        known = owner.unnamed.get(expression)
        if known is None:
            known = self.construct_unnamed(Construction(call.type, ()), expression.source)
            owner.unnamed[expression] = known
        return known

    def _global_scope(self) -> Frame:
        frame = self.frame
        while frame.parent is not None:
            frame = frame.parent
        return frame

    def _type_arguments(self, call: FunctionCall) -> dict[TypeVariable, Type]:
        parameters = call.function.type_parameters
        return {
            TypeVariable(parameter.name, parameter): self.substituted(argument)
            for parameter, argument in zip(parameters, call.type_arguments, strict=True)
        }

    # --- bodies ---

    def inline(
        self, frame: Frame, body: Sequence[ast.Statement], name: str, copy_outs: CopyOuts
    ) -> None:
        """Emits a callee's body in its frame, and the copies to out arguments behind it."""
        outer_exit = frame.exit
        own_exit: ExitTarget | None = None
        if copy_outs and outer_exit is not None:
            # `exit` makes the copies as well, and only then goes on to the outer exit.
            own_exit = self._own_exit(frame, name)
            frame.exit = own_exit
        frame.return_label = self.label(f"{name}.return")
        caller, self.frame = self.frame, frame
        with self.nested() as emitted:
            self.statements(body)
        self.frame = caller
        if own_exit is None or not own_exit.used:
            self.emit_block(frame.return_label, emitted)
            self.copy_out(copy_outs)
            return
        assert outer_exit is not None
        assert own_exit.flag is not None
        with self.nested() as until_return:
            self.emit_block(frame.return_label, emitted)
        with self.nested() as leaving:
            self.emit_exit(outer_exit)
        self.emit(Assign(own_exit.flag, fold.FALSE))
        self.emit_block(own_exit.label, until_return, used=True)
        self.copy_out(copy_outs)
        self.emit_if(Read(own_exit.flag), leaving, ())

    def _own_exit(self, frame: Frame, name: str) -> ExitTarget:
        """A target for `exit` inside the call; the same for each apply of a shared instance, whose
        tables are lowered once and leave by it."""
        instance = frame.instance
        shared = instance is not None and instance.shared and frame.activation is frame
        known = instance.exit if shared and instance is not None else None
        if known is None:
            known = ExitTarget(self.label(f"{name}.exit"), self.local("exiting", BOOL))
            if shared and instance is not None:
                instance.exit = known
        return known

    def emit_exit(self, target: ExitTarget) -> None:
        """The `exit` statement."""
        target.used = True
        if target.flag is not None:
            self.emit(Assign(target.flag, fold.TRUE))
        self.emit_leave(target.label)
