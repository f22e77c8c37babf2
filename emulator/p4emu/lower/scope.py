"""What names stand for at each point of a program: instances, their objects, and activations.

An `Instance` is a parser or control after its constructor has run: it has a place in the hierarchy
of control-plane names and owns its registers, counters, tables and nested instances. A `Frame` is
one activation: one inlined `apply`, action or function call, or (as the scope of an instance) the
constructor's. Frames are chained outwards; what a declaration stands for is found by the identity
of its node, so no name can capture another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from p4emu.frontend import ast
from p4emu.frontend.types import Type, TypeVariable
from p4emu.ir.nodes import Counter, Register, Stmt, Table, Var
from p4emu.lower.values import Place, Value


@dataclass(eq=False, slots=True)
class RegisterObject:
    """`register<T>(size)`; `element` is the type of its elements in the source."""

    register: Register
    element: Type


@dataclass(eq=False, slots=True)
class CounterObject:
    """`counter(size, type)`."""

    counter: Counter


@dataclass(eq=False, slots=True)
class DirectCounterObject:
    """`direct_counter(type)`; becomes an `ir.Counter` with the table that names it."""

    name: str
    kind: str


@dataclass(eq=False, slots=True)
class PacketObject:
    """The packet_in or packet_out of the block."""


ExternObject = RegisterObject | CounterObject | DirectCounterObject | PacketObject


@dataclass(eq=False, slots=True)
class LoweredTable:
    """A table of one instance, and what a use of it needs to know.

    `prelude` computes what the keys need before each apply; `indices` are the actions' positions
    in `table.actions`.
    """

    table: Table
    prelude: tuple[Stmt, ...]
    indices: Mapping[ast.ActionDeclaration, int]


@dataclass(eq=False, slots=True)
class Instance:
    """A constructed parser or control.

    `path` is its full control-plane name, "" for the top level. `shared` says that it is applied at
    more than one place: its tables then need parameters, variables and an exit that are the same at
    each. `fixed` and `exit` hold those.
    """

    declaration: ast.ControlDeclaration | ast.ParserDeclaration
    path: str
    scope: Frame
    shared: bool = False
    fixed: dict[Declared, Place] = field(default_factory=dict)
    exit: ExitTarget | None = None
    tables: dict[ast.TableDeclaration, LoweredTable] = field(default_factory=dict)
    unnamed: dict[ast.CallExpression, Instance] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class ExitTarget:
    """Where `exit` goes: behind the block `label`, after setting `flag` if there is one.

    A flag is there when copies to out arguments must be made on the way out.
    """

    label: str
    flag: Var | None = None
    used: bool = False


OBJECTS = (Instance, RegisterObject, CounterObject, DirectCounterObject, PacketObject)
"""The classes of bindings that are no values."""

Declared = ast.Declaration | ast.Parameter
Binding = Place | Value | Instance | ExternObject


@dataclass(eq=False, slots=True)
class Frame:
    """An activation, or the scope of an instance.

    `activation` is the frame of the enclosing apply (itself, for that frame): the place that
    actions and tables belong to. `types` are the type arguments of generic callees.
    """

    parent: Frame | None
    instance: Instance | None = None
    bindings: dict[Declared, Binding] = field(default_factory=dict)
    types: Mapping[TypeVariable, Type] = field(default_factory=dict)
    exit: ExitTarget | None = None
    return_label: str | None = None
    result: Place | None = None
    activation: Frame | None = None

    def find(self, declaration: Declared) -> Binding | None:
        """What the declaration stands for here, or None when this chain does not bind it."""
        frame: Frame | None = self
        while frame is not None:
            binding = frame.bindings.get(declaration)
            if binding is not None:
                return binding
            frame = frame.parent
        return None
