"""The syntax tree of a P4_16 program, as the parser builds it and nothing changes it.

Every node is frozen, has the `source` of its most telling token (the operator of a binary
expression, the name of a declaration), and compares and hashes by identity: side tables of the
checker (`program.CheckedProgram`) are keyed by nodes. What a name means, what type an expression
has and what a call calls is not in the tree but in those tables.

Main types: `Program`, the unions `Declaration`, `Statement`, `Expression`, `TypeRef`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from p4emu.frontend.source import Source

node = dataclass(frozen=True, slots=True, eq=False)
"""Decorator of all nodes: identity comparison, so that nodes can be keys."""

# --- annotations -----------------------------------------------------------------------------


@node
class AnnotationToken:
    """One token of an unstructured annotation's body; `text` is unquoted for a STRING_LITERAL."""

    source: Source
    kind: str
    text: str


@node
class NamedExpression:
    """`name = value` in a structured annotation or a structure expression."""

    source: Source
    name: str
    value: Expression


@node
class Annotation:
    """`@name`, `@name(tokens)`, `@name[expressions]` or `@name[key=value]`."""

    source: Source
    name: str
    tokens: tuple[AnnotationToken, ...] = ()
    expressions: tuple[Expression, ...] = ()
    pairs: tuple[NamedExpression, ...] = ()
    structured: bool = False

    @property
    def string(self) -> str | None:
        """The body, if it is one string literal (as in `@name("x")`)."""
        if len(self.tokens) == 1 and self.tokens[0].kind == "STRING_LITERAL":
            return self.tokens[0].text
        if len(self.expressions) == 1 and isinstance(self.expressions[0], StringLiteral):
            return self.expressions[0].value
        return None


Annotations = tuple[Annotation, ...]

# --- type references -------------------------------------------------------------------------


@node
class NamedTypeRef:
    """A type by name; `absolute` when written with a leading dot."""

    source: Source
    name: str
    absolute: bool = False


@node
class SpecializedTypeRef:
    """`base<arguments>`."""

    source: Source
    base: NamedTypeRef
    arguments: tuple[TypeRef, ...]


@node
class StackTypeRef:
    """`element[size]`."""

    source: Source
    element: TypeRef
    size: Expression


@node
class TupleTypeRef:
    source: Source
    elements: tuple[TypeRef, ...]


@node
class ListTypeRef:
    """`list<element>`."""

    source: Source
    element: TypeRef


@node
class BitTypeRef:
    """`bit<width>` or `int<width>`; plain `bit` has width None and means 1."""

    source: Source
    width: Expression | None
    signed: bool


@node
class VarbitTypeRef:
    source: Source
    width: Expression


@node
class SimpleTypeRef:
    """A type that is one keyword; `_` is "don't care" among type arguments."""

    source: Source
    name: Literal["bool", "error", "int", "match_kind", "string", "void", "_"]


TypeRef: TypeAlias = (
    NamedTypeRef
    | SpecializedTypeRef
    | StackTypeRef
    | TupleTypeRef
    | ListTypeRef
    | BitTypeRef
    | VarbitTypeRef
    | SimpleTypeRef
)

# --- expressions -----------------------------------------------------------------------------


@node
class IntLiteral:
    """`5` (width None: arbitrary precision), `8w5` or `8s5`; value is as written, not wrapped."""

    source: Source
    value: int
    width: int | None = None
    signed: bool = False


@node
class BoolLiteral:
    source: Source
    value: bool


@node
class StringLiteral:
    source: Source
    value: str


@node
class PathExpression:
    """A name that is no type; `absolute` when written with a leading dot."""

    source: Source
    name: str
    absolute: bool = False


@node
class ThisExpression:
    source: Source


@node
class TypeNameExpression:
    """A type as the base of a member access: the `E` of `E.A`, the `error` of `error.NoError`,
    the `C` of `C.apply(...)`."""

    source: Source
    type: TypeRef


@node
class MemberExpression:
    """`base.member`; the source is the member's."""

    source: Source
    base: Expression
    member: str


@node
class IndexExpression:
    """`base[index]`."""

    source: Source
    base: Expression
    index: Expression


@node
class SliceExpression:
    """`base[high:low]`."""

    source: Source
    base: Expression
    high: Expression
    low: Expression


@node
class Argument:
    """`value` or `name = value`; a value of DontCare stands for an ignored out argument."""

    source: Source
    name: str | None
    value: Expression


@node
class CallExpression:
    """`callee<type_arguments>(arguments)`; what it calls is in `CheckedProgram.call`."""

    source: Source
    callee: Expression
    type_arguments: tuple[TypeRef, ...]
    arguments: tuple[Argument, ...]


@node
class ConstructorCallExpression:
    """`Type(arguments)`: a new object, in arguments of package and control constructors."""

    source: Source
    type: TypeRef
    arguments: tuple[Argument, ...]


UnaryOperator = Literal["+", "-", "~", "!"]


@node
class UnaryExpression:
    source: Source
    operator: UnaryOperator
    operand: Expression


BinaryOperator = Literal[
    "+", "-", "*", "/", "%", "|+|", "|-|", "++", "&", "|", "^", "<<", ">>",
    "==", "!=", "<", "<=", ">", ">=", "&&", "||",
]  # fmt: skip


@node
class BinaryExpression:
    source: Source
    operator: BinaryOperator
    left: Expression
    right: Expression


@node
class ConditionalExpression:
    """`condition ? then : otherwise`."""

    source: Source
    condition: Expression
    then: Expression
    otherwise: Expression


@node
class CastExpression:
    source: Source
    type: TypeRef
    operand: Expression


@node
class ListExpression:
    """`{a, b}`. With `default_rest` it ended in `...`: the rest has default values."""

    source: Source
    elements: tuple[Expression, ...]
    default_rest: bool = False


@node
class StructExpression:
    """`{name = value, ...}`."""

    source: Source
    fields: tuple[NamedExpression, ...]
    default_rest: bool = False


@node
class DefaultValueExpression:
    """`...`: the default value of the type that is expected."""

    source: Source


@node
class InvalidHeaderExpression:
    """`{#}`."""

    source: Source


@node
class DontCare:
    """`_`, and `default` in a select case: matches anything; as an argument: result ignored."""

    source: Source


@node
class MaskExpression:
    """`value &&& mask`; only in keysets."""

    source: Source
    value: Expression
    mask: Expression


@node
class RangeExpression:
    """`low .. high`; in keysets and for-in loops."""

    source: Source
    low: Expression
    high: Expression


@node
class TupleKeyset:
    """`(a, b)` in a select case or table entry: one keyset for each key."""

    source: Source
    elements: tuple[Expression, ...]


Expression: TypeAlias = (
    IntLiteral
    | BoolLiteral
    | StringLiteral
    | PathExpression
    | ThisExpression
    | TypeNameExpression
    | MemberExpression
    | IndexExpression
    | SliceExpression
    | CallExpression
    | ConstructorCallExpression
    | UnaryExpression
    | BinaryExpression
    | ConditionalExpression
    | CastExpression
    | ListExpression
    | StructExpression
    | DefaultValueExpression
    | InvalidHeaderExpression
    | DontCare
    | MaskExpression
    | RangeExpression
    | TupleKeyset
)

# --- statements ------------------------------------------------------------------------------


@node
class AssignmentStatement:
    """`target = value`; `operator` is None, or the binary operator of a compound assignment."""

    source: Source
    target: Expression
    operator: BinaryOperator | None
    value: Expression


@node
class CallStatement:
    """A call whose result, if any, is dropped."""

    source: Source
    call: CallExpression


@node
class BlockStatement:
    source: Source
    annotations: Annotations
    statements: tuple[Statement, ...]


@node
class IfStatement:
    source: Source
    condition: Expression
    then: Statement
    otherwise: Statement | None


@node
class SwitchCase:
    """`label: body`. A label of DontCare is `default`; a body of None falls through."""

    source: Source
    label: Expression
    body: BlockStatement | None


@node
class SwitchStatement:
    source: Source
    selector: Expression
    cases: tuple[SwitchCase, ...]


@node
class ForStatement:
    """`for (init; condition; update) body`."""

    source: Source
    annotations: Annotations
    init: tuple[Statement, ...]
    condition: Expression
    update: tuple[Statement, ...]
    body: Statement


@node
class ForInStatement:
    """`for (type variable in collection) body`; the variable is declared without a value."""

    source: Source
    annotations: Annotations
    variable: VariableDeclaration
    collection: Expression
    body: Statement


@node
class BreakStatement:
    source: Source


@node
class ContinueStatement:
    source: Source


@node
class ReturnStatement:
    source: Source
    value: Expression | None


@node
class ExitStatement:
    source: Source


@node
class EmptyStatement:
    source: Source


# --- declarations ----------------------------------------------------------------------------

Direction = Literal["", "in", "out", "inout"]


@node
class Parameter:
    """A parameter of anything that is called or constructed; `direction` "" is directionless."""

    source: Source
    annotations: Annotations
    direction: Direction
    type: TypeRef
    name: str
    default: Expression | None = None


@node
class TypeParameter:
    source: Source
    name: str


@node
class ConstantDeclaration:
    source: Source
    annotations: Annotations
    type: TypeRef
    name: str
    value: Expression


@node
class VariableDeclaration:
    source: Source
    annotations: Annotations
    type: TypeRef
    name: str
    value: Expression | None


@node
class Instantiation:
    """`type(arguments) name;`, with a body of abstract method implementations if `members`."""

    source: Source
    annotations: Annotations
    type: TypeRef
    arguments: tuple[Argument, ...]
    name: str
    members: tuple[FunctionDeclaration | Instantiation, ...] = ()


Statement: TypeAlias = (
    AssignmentStatement
    | CallStatement
    | BlockStatement
    | IfStatement
    | SwitchStatement
    | ForStatement
    | ForInStatement
    | BreakStatement
    | ContinueStatement
    | ReturnStatement
    | ExitStatement
    | EmptyStatement
    | ConstantDeclaration
    | VariableDeclaration
    | Instantiation
)


@node
class ActionDeclaration:
    source: Source
    annotations: Annotations
    name: str
    parameters: tuple[Parameter, ...]
    body: BlockStatement


@node
class FunctionDeclaration:
    source: Source
    annotations: Annotations
    return_type: TypeRef
    name: str
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]
    body: BlockStatement


@node
class MethodPrototype:
    """An extern function (at the top level), or a method or constructor of an extern.

    A constructor has `return_type` None and the extern's name.
    """

    source: Source
    annotations: Annotations
    return_type: TypeRef | None
    name: str
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]
    abstract: bool = False


@node
class ExternDeclaration:
    source: Source
    annotations: Annotations
    name: str
    type_parameters: tuple[TypeParameter, ...]
    methods: tuple[MethodPrototype, ...]


@node
class StructField:
    source: Source
    annotations: Annotations
    type: TypeRef
    name: str


@node
class StructDeclaration:
    """A struct, header or header union."""

    source: Source
    annotations: Annotations
    kind: Literal["struct", "header", "header_union"]
    name: str
    type_parameters: tuple[TypeParameter, ...]
    fields: tuple[StructField, ...]


@node
class EnumMember:
    source: Source
    name: str
    value: Expression | None = None


@node
class EnumDeclaration:
    """A plain enum (`underlying` None) or a serializable one, whose members all have values."""

    source: Source
    annotations: Annotations
    name: str
    underlying: TypeRef | None
    members: tuple[EnumMember, ...]


@node
class ErrorDeclaration:
    source: Source
    members: tuple[EnumMember, ...]


@node
class MatchKindDeclaration:
    source: Source
    members: tuple[EnumMember, ...]


@node
class TypedefDeclaration:
    """`typedef type name;`: another name for the same type."""

    source: Source
    annotations: Annotations
    type: TypeRef | StructDeclaration | EnumDeclaration
    name: str


@node
class NewtypeDeclaration:
    """`type type name;`: a new type with the values of another."""

    source: Source
    annotations: Annotations
    type: TypeRef
    name: str


@node
class ParserTypeDeclaration:
    source: Source
    annotations: Annotations
    name: str
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]


@node
class ControlTypeDeclaration:
    source: Source
    annotations: Annotations
    name: str
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]


@node
class PackageDeclaration:
    source: Source
    annotations: Annotations
    name: str
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]


@node
class ValueSetDeclaration:
    """`value_set<type>(size) name;`."""

    source: Source
    annotations: Annotations
    type: TypeRef
    size: Expression
    name: str


@node
class SelectCase:
    """`keyset: state;`"""

    source: Source
    keyset: Expression
    state: str


@node
class DirectTransition:
    source: Source
    state: str


@node
class SelectTransition:
    source: Source
    selectors: tuple[Expression, ...]
    cases: tuple[SelectCase, ...]


@node
class ParserState:
    """A state; without a transition it goes to reject."""

    source: Source
    annotations: Annotations
    name: str
    statements: tuple[Statement, ...]
    transition: DirectTransition | SelectTransition | None


@node
class ParserDeclaration:
    source: Source
    annotations: Annotations
    name: str
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]
    constructor_parameters: tuple[Parameter, ...]
    locals: tuple[LocalDeclaration, ...]
    states: tuple[ParserState, ...]


@node
class ControlDeclaration:
    source: Source
    annotations: Annotations
    name: str
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]
    constructor_parameters: tuple[Parameter, ...]
    locals: tuple[LocalDeclaration, ...]
    body: BlockStatement


# --- tables ----------------------------------------------------------------------------------


@node
class KeyElement:
    """`expression: match_kind;`"""

    source: Source
    annotations: Annotations
    expression: Expression
    match_kind: str


@node
class ActionRef:
    """An action in `actions`, `default_action` or an entry. `arguments` None: written without
    parentheses."""

    source: Source
    annotations: Annotations
    action: PathExpression
    arguments: tuple[Argument, ...] | None


@node
class Entry:
    """`[const] [priority = p:] keyset: action;`; the keyset is a TupleKeyset or one expression."""

    source: Source
    annotations: Annotations
    const: bool
    priority: Expression | None
    keyset: Expression
    action: ActionRef


@node
class KeyProperty:
    source: Source
    elements: tuple[KeyElement, ...]


@node
class ActionsProperty:
    source: Source
    actions: tuple[ActionRef, ...]


@node
class EntriesProperty:
    source: Source
    const: bool
    entries: tuple[Entry, ...]


@node
class DefaultActionProperty:
    source: Source
    const: bool
    action: ActionRef


@node
class CustomProperty:
    """Any other property: `size`, `implementation`, `counters`, `meters`..."""

    source: Source
    annotations: Annotations
    const: bool
    name: str
    value: Expression


TableProperty: TypeAlias = (
    KeyProperty | ActionsProperty | EntriesProperty | DefaultActionProperty | CustomProperty
)


@node
class TableDeclaration:
    source: Source
    annotations: Annotations
    name: str
    properties: tuple[TableProperty, ...]

    @property
    def keys(self) -> tuple[KeyElement, ...]:
        return next((p.elements for p in self.properties if isinstance(p, KeyProperty)), ())

    @property
    def actions(self) -> tuple[ActionRef, ...]:
        return next((p.actions for p in self.properties if isinstance(p, ActionsProperty)), ())

    @property
    def entries(self) -> EntriesProperty | None:
        return next((p for p in self.properties if isinstance(p, EntriesProperty)), None)

    @property
    def default_action(self) -> DefaultActionProperty | None:
        return next((p for p in self.properties if isinstance(p, DefaultActionProperty)), None)

    def custom(self, name: str) -> CustomProperty | None:
        """The property of this name, such as `size`, that is none of the four above."""
        return next(
            (p for p in self.properties if isinstance(p, CustomProperty) and p.name == name), None
        )


LocalDeclaration: TypeAlias = (
    ConstantDeclaration
    | VariableDeclaration
    | Instantiation
    | ActionDeclaration
    | TableDeclaration
    | ValueSetDeclaration
)

Declaration: TypeAlias = (
    ConstantDeclaration
    | Instantiation
    | ActionDeclaration
    | FunctionDeclaration
    | MethodPrototype
    | ExternDeclaration
    | StructDeclaration
    | EnumDeclaration
    | ErrorDeclaration
    | MatchKindDeclaration
    | TypedefDeclaration
    | NewtypeDeclaration
    | ParserTypeDeclaration
    | ControlTypeDeclaration
    | PackageDeclaration
    | ParserDeclaration
    | ControlDeclaration
    | VariableDeclaration
    | TableDeclaration
    | ValueSetDeclaration
)


@node
class Program:
    """All declarations in order, those of included files among them."""

    source: Source
    declarations: tuple[Declaration, ...]
