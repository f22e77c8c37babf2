"""Binds the parameters of an inlined call: P4's calling convention (section 6.8 of its
specification), without the copies that nobody can tell from no copy.

By the letter every argument is copied in and every out argument copied back. Here

- an `in` parameter, which cannot be written, stands for its argument directly when that is a
  constant or a variable that the call cannot change;
- an `out` or `inout` parameter stands for the caller's variable directly when no other out
  argument of the call mentions that variable.

Controls and functions reach the caller's variables by their parameters only, so looking at the
arguments is enough to know what a call can change. Actions see the variables of their control:
their arguments are always copied unless they are constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from p4emu.frontend import ast
from p4emu.frontend.program import Arguments, BoundArgument
from p4emu.frontend.types import ControlType, ExternType, PackageType, ParserType
from p4emu.ir.nodes import Const, Var
from p4emu.lower.expressions import PLACES, Expressions
from p4emu.lower.scope import OBJECTS, Binding, Frame
from p4emu.lower.values import BitRange, ChosenPlace, Place, Value, is_simple, leaves, load, reads

CopyOuts = list[tuple[Place, Place]]
"""(the caller's place, the parameter's place), to be copied when the call ends."""

_OBJECT_TYPES = (ExternType, ParserType, ControlType, PackageType)


class Passing(Enum):
    """How parameters stand for arguments."""

    DIRECT = "controls, parsers, functions: directly wherever that makes no difference"
    COPIED = "actions: copies of all but constants"
    FIXED = "instances applied at several places: copies, in variables of the instance"


class ArgumentBinding(Expressions):
    """`Expressions` that can bind the arguments of calls."""

    def bind(
        self,
        frame: Frame,
        parameters: Sequence[ast.Parameter],
        arguments: Arguments,
        passing: Passing,
    ) -> CopyOuts:
        """Binds the callee's parameters in its frame, emits copies in, gives the copies out."""
        evaluated = self._evaluate(arguments)
        direct = _direct_outs(arguments, evaluated) if passing is Passing.DIRECT else {}
        written = frozenset[Var]().union(*direct.values())
        copy_outs: CopyOuts = []
        for number, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
            what, direction = evaluated[number], argument.parameter.direction
            if isinstance(what, OBJECTS):
                frame.bindings[parameter] = what
                continue
            if direction in ("in", ""):
                if what is None:
                    continue  # @optional, or supplied by the control plane
                if passing is not Passing.FIXED:
                    known = None if passing is Passing.COPIED else written
                    frame.bindings[parameter] = self._unchanging(what, known, parameter.name)
                    continue
            elif number in direct:
                assert isinstance(what, PLACES)
                frame.bindings[parameter] = what
                if direction == "out":
                    self.invalidate(what)
                continue
            place = self._own_place(frame, parameter, argument, passing)
            frame.bindings[parameter] = place
            if direction == "out":
                self.invalidate(place)
            else:
                assert what is not None
                self.store(place, load(what) if isinstance(what, PLACES) else what)
            if direction in ("out", "inout") and isinstance(what, PLACES):
                copy_outs.append((what, place))
        return copy_outs

    def copy_out(self, copy_outs: CopyOuts) -> None:
        """Emits the copies to the caller's variables."""
        for target, parameter in copy_outs:
            self.store(target, load(parameter))

    def _evaluate(self, arguments: Arguments) -> list[Binding | None]:
        """Objects, places and values of the arguments, evaluated in order."""
        evaluated: list[Binding | None] = []
        for argument in arguments:
            mark = len(self.out)
            what = self._argument(argument)
            if len(self.out) != mark:
                for number, earlier in enumerate(evaluated):
                    by_value = arguments[number].parameter.direction in ("in", "")
                    if by_value and earlier is not None and not isinstance(earlier, OBJECTS):
                        evaluated[number] = self.save_before(mark, earlier)
            evaluated.append(what)
        return evaluated

    def _argument(self, argument: BoundArgument) -> Binding | None:
        if argument.value is None:
            return None
        if isinstance(argument.parameter.type, _OBJECT_TYPES):
            return self.resolve(argument.value)
        if argument.parameter.direction in ("out", "inout"):
            return self.place(argument.value)
        return self.operand(argument.value)

    def _unchanging(
        self, what: Value | Place, written: frozenset[Var] | None, name: str
    ) -> Value | Place:
        """The argument as it is now; `written` are the variables the call may change, None any."""
        if isinstance(what, Const):
            return what
        if isinstance(what, PLACES):
            whole = not isinstance(what, (BitRange, ChosenPlace))
            if whole and written is not None and written.isdisjoint(leaves(what)):
                return what
            what = load(what)
        elif written is not None and is_simple(what) and written.isdisjoint(reads(what)):
            return what
        return self.saved(what, name)

    def _own_place(
        self, frame: Frame, parameter: ast.Parameter, argument: BoundArgument, passing: Passing
    ) -> Place:
        """A variable for the parameter itself."""
        fixed = frame.instance.fixed if passing is Passing.FIXED and frame.instance else {}
        known = fixed.get(parameter)
        if known is None:
            type_ = self.substituted(argument.parameter.type)
            known = self.allocator.place(type_, parameter.name, "local", parameter.source)
            fixed[parameter] = known
        return known


def _direct_outs(
    arguments: Arguments, evaluated: list[Binding | None]
) -> dict[int, frozenset[Var]]:
    """The out arguments that no other out argument overlaps, with their variables."""
    outs = [
        (number, what, leaves(what))
        for number, what in enumerate(evaluated)
        if arguments[number].parameter.direction in ("out", "inout") and isinstance(what, PLACES)
    ]
    return {
        number: variables
        for number, what, variables in outs
        if not isinstance(what, (BitRange, ChosenPlace))
        and all(variables.isdisjoint(others) for other, _, others in outs if other != number)
    }
