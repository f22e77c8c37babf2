"""What the checker found out about a program: the input of lowering and of P4Info.

`CheckedProgram` is the syntax tree plus side tables keyed by its nodes. How to read it:

the instantiation `main`
    `checked.main` is the `ast.Instantiation`; `checked.construction(checked.main)` is its
    `Construction`, whose arguments are the parsers and controls of the pipeline, each an
    expression with a `Construction` of its own (a `ConstructorCallExpression`) or a path to an
    `Instantiation`.

the type of an expression
    `checked.type_of(e)` is the type of the value that `e` gives to its surroundings, after
    implicit conversions (an `int` literal used as `bit<8>` is `bit<8>`).
    `checked.own_type(e)` is the type before them; they differ only where a conversion is needed:
    `int` to `bit<W>`/`int<W>`, serializable enum to its underlying type, `{...}` to a struct,
    header, tuple or stack (whose elements are converted one by one and have tables of their own).
    Inside generic functions types may contain a `TypeVariable`; the `Call`'s type arguments
    say what it is.

a compile-time constant
    `checked.constant(e)` is its value or None: `int` (also for `bit`, wrapped to the type;
    for serializable enums the underlying number), `bool`, `str`, `EnumValue` (enum, error and
    match_kind members), or a tuple of such values in order of elements or fields. It belongs to
    `type_of(e)`: the literal `-1` used as `bit<8>` is 255. What depends on constructor parameters
    or action data is no constant here.

what a name is
    `checked.declaration(path)` for a `PathExpression` is the node that declares it: `Parameter`,
    `VariableDeclaration`, `ConstantDeclaration`, `Instantiation`, `ActionDeclaration`,
    `TableDeclaration`, `FunctionDeclaration`, `MethodPrototype` (an extern function; with
    overloads, the first: see `call`), `ValueSetDeclaration`. In the label of a switch over
    `action_run` it is the `ActionDeclaration`; likewise in `ActionRef.action`.

what a type reference is
    `checked.type_of_ref(ref)`.

what a call calls
    `checked.call(call)` is one of the `Call` classes below, with arguments matched to parameters.

members
    `MemberExpression` on a `StructType` is a field; on a `StackType` it is `next`, `last`,
    `lastIndex` or `size`; on an `ApplyResultType` `hit`, `miss` or `action_run`; on a
    `TypeNameExpression` an enum or error member (then `checked.constant` has it). Methods occur
    only as callees.

tables
    `checked.table(declaration)` has keys' match kinds, actions, default and entries resolved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from p4emu.frontend import ast
from p4emu.frontend.diagnostics import Diagnostic
from p4emu.frontend.types import (
    ControlType,
    ExternType,
    PackageType,
    ParameterType,
    ParserType,
    SetType,
    Type,
)


@dataclass(frozen=True, slots=True)
class EnumValue:
    """A member of an enum without values, of `error` or of `match_kind`."""

    type: Type
    name: str

    def __str__(self) -> str:
        return f"{self.type}.{self.name}"


Constant: TypeAlias = int | bool | str | EnumValue | tuple["Constant", ...]


@dataclass(frozen=True, slots=True)
class BoundArgument:
    """A parameter and what it gets: an argument of the call or the parameter's default.

    `value` is None for an `out` argument written `_`, and for a parameter left out because it is
    @optional or an action parameter that the control plane supplies.
    """

    parameter: ParameterType
    value: ast.Expression | None


Arguments = tuple[BoundArgument, ...]


@dataclass(frozen=True, slots=True)
class ExternFunctionCall:
    """e.g. `mark_to_drop(standard_metadata)`, `verify(...)`, `hash(...)`."""

    function: ast.MethodPrototype
    type_arguments: tuple[Type, ...]
    arguments: Arguments
    result: Type


@dataclass(frozen=True, slots=True)
class ExternMethodCall:
    """A method of an extern object, packet_in and packet_out included.

    `receiver` is the expression before the dot; `type` the object's type with its arguments;
    `type_arguments` are those of the method.
    """

    receiver: ast.Expression
    type: ExternType
    method: ast.MethodPrototype
    type_arguments: tuple[Type, ...]
    arguments: Arguments
    result: Type


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function of the program; `type_arguments` in order of its type parameters."""

    function: ast.FunctionDeclaration
    type_arguments: tuple[Type, ...]
    arguments: Arguments
    result: Type


@dataclass(frozen=True, slots=True)
class ActionCall:
    """An action called directly, or (in tables) named with its leading arguments."""

    action: ast.ActionDeclaration
    arguments: Arguments


@dataclass(frozen=True, slots=True)
class TableApply:
    table: ast.TableDeclaration


@dataclass(frozen=True, slots=True)
class BlockApply:
    """`instance.apply(...)` of a parser or control.

    `instance` is the expression before the dot, or None for `Type.apply(...)`, which stands for an
    unnamed instance of its own at this place. `type` has the apply parameters.
    """

    instance: ast.Expression | None
    type: ParserType | ControlType
    arguments: Arguments


BuiltinName = Literal[
    "isValid", "setValid", "setInvalid", "push_front", "pop_front", "minSizeInBits",
    "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class BuiltinCall:
    """A method that the language gives to headers, unions and stacks; `count` for push/pop.

    The size methods are compile-time constants (`checked.constant(call)`).
    """

    name: BuiltinName
    receiver: ast.Expression
    count: ast.Expression | None
    result: Type


Call: TypeAlias = (
    ExternFunctionCall
    | ExternMethodCall
    | FunctionCall
    | ActionCall
    | TableApply
    | BlockApply
    | BuiltinCall
)


@dataclass(frozen=True, slots=True)
class Construction:
    """`Type(arguments)`: of an Instantiation or a ConstructorCallExpression.

    `constructor` is the extern's constructor prototype, else None.
    """

    type: ExternType | ParserType | ControlType | PackageType | SetType
    arguments: Arguments
    constructor: ast.MethodPrototype | None = None


@dataclass(frozen=True, slots=True)
class CheckedKey:
    element: ast.KeyElement
    type: Type
    match_kind: str


@dataclass(frozen=True, slots=True)
class CheckedEntry:
    """An entry; `keysets` has one expression for each key."""

    entry: ast.Entry
    keysets: tuple[ast.Expression, ...]
    action: ActionCall


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """A table with names resolved.

    `actions[i].arguments` covers all parameters: those with a direction have the expression given
    in the action list, directionless ones None (the control plane supplies them). `default` and the
    entries' calls have both. `default` is None if the table names none (NoAction).
    """

    declaration: ast.TableDeclaration
    keys: tuple[CheckedKey, ...]
    actions: tuple[ActionCall, ...]
    default: ActionCall | None
    const_default: bool
    entries: tuple[CheckedEntry, ...]
    const_entries: bool
    size: int | None


@dataclass(slots=True)
class SideTables:
    """What the checker fills; read it through `CheckedProgram`."""

    types: dict[ast.Expression, Type] = field(default_factory=dict)
    conversions: dict[ast.Expression, Type] = field(default_factory=dict)
    constants: dict[ast.Expression, Constant] = field(default_factory=dict)
    references: dict[ast.TypeRef, Type] = field(default_factory=dict)
    declarations: dict[ast.PathExpression, ast.Declaration | ast.Parameter] = field(
        default_factory=dict
    )
    calls: dict[ast.CallExpression, Call] = field(default_factory=dict)
    constructions: dict[ast.Instantiation | ast.ConstructorCallExpression, Construction] = field(
        default_factory=dict
    )
    tables: dict[ast.TableDeclaration, CheckedTable] = field(default_factory=dict)
    declared: dict[ast.Parameter | ast.VariableDeclaration | ast.ConstantDeclaration, Type] = field(
        default_factory=dict
    )


@dataclass(frozen=True, slots=True)
class CheckedProgram:
    """A program without errors. See the module for how to read it.

    `errors` are the members of `error` in order of declaration, `match_kinds` likewise; `warnings`
    is what the user should be told all the same.
    `path` is the main file; `main` None if the program instantiates no package named main.
    """

    path: str
    program: ast.Program
    main: ast.Instantiation | None
    errors: Sequence[str]
    match_kinds: Sequence[str]
    tables: SideTables
    warnings: Sequence[Diagnostic] = ()

    def type_of(self, expression: ast.Expression) -> Type:
        """The type of the value after implicit conversions."""
        converted = self.tables.conversions.get(expression)
        return self.tables.types[expression] if converted is None else converted

    def own_type(self, expression: ast.Expression) -> Type:
        """The type before implicit conversions."""
        return self.tables.types[expression]

    def constant(self, expression: ast.Expression) -> Constant | None:
        """The compile-time value, of type `type_of(expression)`; None if there is none."""
        return self.tables.constants.get(expression)

    def type_of_ref(self, ref: ast.TypeRef) -> Type:
        """The type a type reference names."""
        return self.tables.references[ref]

    def declared_type(
        self,
        declaration: ast.Parameter | ast.VariableDeclaration | ast.ConstantDeclaration,
    ) -> Type:
        """The type of a parameter, variable or constant."""
        return self.tables.declared[declaration]

    def declaration(self, path: ast.PathExpression) -> ast.Declaration | ast.Parameter:
        """The node that declares the name."""
        return self.tables.declarations[path]

    def call(self, call: ast.CallExpression) -> Call:
        """What the call calls."""
        return self.tables.calls[call]

    def construction(self, node: ast.Instantiation | ast.ConstructorCallExpression) -> Construction:
        """What an instantiation or constructor call makes."""
        return self.tables.constructions[node]

    def table(self, declaration: ast.TableDeclaration) -> CheckedTable:
        """A table with its keys, actions and entries resolved."""
        return self.tables.tables[declaration]
