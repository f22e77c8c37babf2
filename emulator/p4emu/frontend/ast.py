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

# --- annotations -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class AnnotationToken:
    """One token of an unstructured annotation's body; `text` is unquoted for a STRING_LITERAL."""

    source: Source
    kind: str
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class NamedExpression:
    """`name = value` in a structured annotation or a structure expression."""

    source: Source
    name: str
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class NamedTypeRef:
    """A type by name; `absolute` when written with a leading dot."""

    source: Source
    name: str
    absolute: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class SpecializedTypeRef:
    """`base<arguments>`."""

    source: Source
    base: NamedTypeRef
    arguments: tuple[TypeRef, ...]


@dataclass(frozen=True, slots=True, eq=False)
class StackTypeRef:
    """`element[size]`."""

    source: Source
    element: TypeRef
    size: Expression


@dataclass(frozen=True, slots=True, eq=False)
class TupleTypeRef:
    source: Source
    elements: tuple[TypeRef, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ListTypeRef:
    """`list<element>`."""

    source: Source
    element: TypeRef


@dataclass(frozen=True, slots=True, eq=False)
class BitTypeRef:
    """`bit<width>` or `int<width>`; plain `bit` has width None and means 1."""

    source: Source
    width: Expression | None
    signed: bool


@dataclass(frozen=True, slots=True, eq=False)
class VarbitTypeRef:
    source: Source
    width: Expression


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class IntLiteral:
    """`5` (width None: arbitrary precision), `8w5` or `8s5`; value is as written, not wrapped.

    `base` is the one it is written in: names of table keys show it.
    """

    source: Source
    value: int
    width: int | None = None
    signed: bool = False
    base: int = 10


@dataclass(frozen=True, slots=True, eq=False)
class BoolLiteral:
    source: Source
    value: bool


@dataclass(frozen=True, slots=True, eq=False)
class StringLiteral:
    source: Source
    value: str


@dataclass(frozen=True, slots=True, eq=False)
class PathExpression:
    """A name that is no type; `absolute` when written with a leading dot."""

    source: Source
    name: str
    absolute: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ThisExpression:
    source: Source


@dataclass(frozen=True, slots=True, eq=False)
class TypeNameExpression:
    """A type as the base of a member access: the `E` of `E.A`, the `error` of `error.NoError`,
    the `C` of `C.apply(...)`."""

    source: Source
    type: TypeRef


@dataclass(frozen=True, slots=True, eq=False)
class MemberExpression:
    """`base.member`; the source is the member's."""

    source: Source
    base: Expression
    member: str


@dataclass(frozen=True, slots=True, eq=False)
class IndexExpression:
    """`base[index]`."""

    source: Source
    base: Expression
    index: Expression


@dataclass(frozen=True, slots=True, eq=False)
class SliceExpression:
    """`base[high:low]`."""

    source: Source
    base: Expression
    high: Expression
    low: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Argument:
    """`value` or `name = value`; a value of DontCare stands for an ignored out argument."""

    source: Source
    name: str | None
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class CallExpression:
    """`callee<type_arguments>(arguments)`; what it calls is in `CheckedProgram.call`."""

    source: Source
    callee: Expression
    type_arguments: tuple[TypeRef, ...]
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ConstructorCallExpression:
    """`Type(arguments)`: a new object, in arguments of package and control constructors."""

    source: Source
    type: TypeRef
    arguments: tuple[Argument, ...]


UnaryOperator = Literal["+", "-", "~", "!"]


@dataclass(frozen=True, slots=True, eq=False)
class UnaryExpression:
    source: Source
    operator: UnaryOperator
    operand: Expression


BinaryOperator = Literal[
    "+", "-", "*", "/", "%", "|+|", "|-|", "++", "&", "|", "^", "<<", ">>",
    "==", "!=", "<", "<=", ">", ">=", "&&", "||",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class BinaryExpression:
    source: Source
    operator: BinaryOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, eq=False)
class ConditionalExpression:
    """`condition ? then : otherwise`."""

    source: Source
    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True, eq=False)
class CastExpression:
    source: Source
    type: TypeRef
    operand: Expression


@dataclass(frozen=True, slots=True, eq=False)
class ListExpression:
    """`{a, b}`. With `default_rest` it ended in `...`: the rest has default values."""

    source: Source
    elements: tuple[Expression, ...]
    default_rest: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class StructExpression:
    """`{name = value, ...}`."""

    source: Source
    fields: tuple[NamedExpression, ...]
    default_rest: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class DefaultValueExpression:
    """`...`: the default value of the type that is expected."""

    source: Source


@dataclass(frozen=True, slots=True, eq=False)
class InvalidHeaderExpression:
    """`{#}`."""

    source: Source


@dataclass(frozen=True, slots=True, eq=False)
class DontCare:
    """`_`, and `default` in a select case: matches anything; as an argument: result ignored."""

    source: Source


@dataclass(frozen=True, slots=True, eq=False)
class MaskExpression:
    """`value &&& mask`; only in keysets."""

    source: Source
    value: Expression
    mask: Expression


@dataclass(frozen=True, slots=True, eq=False)
class RangeExpression:
    """`low .. high`; in keysets and for-in loops."""

    source: Source
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class AssignmentStatement:
    """`target = value`; `operator` is None, or the binary operator of a compound assignment."""

    source: Source
    target: Expression
    operator: BinaryOperator | None
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class CallStatement:
    """A call whose result, if any, is dropped."""

    source: Source
    call: CallExpression


@dataclass(frozen=True, slots=True, eq=False)
class BlockStatement:
    source: Source
    annotations: Annotations
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True, eq=False)
class IfStatement:
    source: Source
    condition: Expression
    then: Statement
    otherwise: Statement | None


@dataclass(frozen=True, slots=True, eq=False)
class SwitchCase:
    """`label: body`. A label of DontCare is `default`; a body of None falls through."""

    source: Source
    label: Expression
    body: BlockStatement | None


@dataclass(frozen=True, slots=True, eq=False)
class SwitchStatement:
    source: Source
    selector: Expression
    cases: tuple[SwitchCase, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ForStatement:
    """`for (init; condition; update) body`."""

    source: Source
    annotations: Annotations
    init: tuple[Statement, ...]
    condition: Expression
    update: tuple[Statement, ...]
    body: Statement


@dataclass(frozen=True, slots=True, eq=False)
class ForInStatement:
    """`for (type variable in collection) body`; the variable is declared without a value."""

    source: Source
    annotations: Annotations
    variable: VariableDeclaration
    collection: Expression
    body: Statement


@dataclass(frozen=True, slots=True, eq=False)
class BreakStatement:
    source: Source


@dataclass(frozen=True, slots=True, eq=False)
class ContinueStatement:
    source: Source


@dataclass(frozen=True, slots=True, eq=False)
class ReturnStatement:
    source: Source
    value: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class ExitStatement:
    source: Source


@dataclass(frozen=True, slots=True, eq=False)
class EmptyStatement:
    source: Source


# --- declarations ----------------------------------------------------------------------------

Direction = Literal["", "in", "out", "inout"]


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """A parameter of anything that is called or constructed; `direction` "" is directionless."""

    source: Source
    annotations: Annotations
    direction: Direction
    type: TypeRef
    name: str
    default: Expression | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TypeParameter:
    source: Source
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class ConstantDeclaration:
    source: Source
    annotations: Annotations
    type: TypeRef
    name: str
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class VariableDeclaration:
    source: Source
    annotations: Annotations
    type: TypeRef
    name: str
    value: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class ActionDeclaration:
    source: Source
    annotations: Annotations
    name: str
    parameters: tuple[Parameter, ...]
    body: BlockStatement


@dataclass(frozen=True, slots=True, eq=False)
class FunctionDeclaration:
    source: Source
    annotations: Annotations
    return_type: TypeRef
    name: str
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]
    body: BlockStatement


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class ExternDeclaration:
    source: Source
    annotations: Annotations
    name: str
    type_parameters: tuple[TypeParameter, ...]
    methods: tuple[MethodPrototype, ...]


@dataclass(frozen=True, slots=True, eq=False)
class StructField:
    source: Source
    annotations: Annotations
    type: TypeRef
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class StructDeclaration:
    """A struct, header or header union."""

    source: Source
    annotations: Annotations
    kind: Literal["struct", "header", "header_union"]
    name: str
    type_parameters: tuple[TypeParameter, ...]
    fields: tuple[StructField, ...]


@dataclass(frozen=True, slots=True, eq=False)
class EnumMember:
    source: Source
    name: str
    value: Expression | None = None


@dataclass(frozen=True, slots=True, eq=False)
class EnumDeclaration:
    """A plain enum (`underlying` None) or a serializable one, whose members all have values."""

    source: Source
    annotations: Annotations
    name: str
    underlying: TypeRef | None
    members: tuple[EnumMember, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ErrorDeclaration:
    source: Source
    members: tuple[EnumMember, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MatchKindDeclaration:
    source: Source
    members: tuple[EnumMember, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TypedefDeclaration:
    """`typedef type name;`: another name for the same type."""

    source: Source
    annotations: Annotations
    type: TypeRef | StructDeclaration | EnumDeclaration
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class NewtypeDeclaration:
    """`type type name;`: a new type with the values of another."""

    source: Source
    annotations: Annotations
    type: TypeRef
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class ParserTypeDeclaration:
    source: Source
    annotations: Annotations
    name: str
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ControlTypeDeclaration:
    source: Source
    annotations: Annotations
    name: str
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PackageDeclaration:
    source: Source
    annotations: Annotations
    name: str
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ValueSetDeclaration:
    """`value_set<type>(size) name;`."""

    source: Source
    annotations: Annotations
    type: TypeRef
    size: Expression
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class SelectCase:
    """`keyset: state;`"""

    source: Source
    keyset: Expression
    state: str


@dataclass(frozen=True, slots=True, eq=False)
class DirectTransition:
    source: Source
    state: str


@dataclass(frozen=True, slots=True, eq=False)
class SelectTransition:
    source: Source
    selectors: tuple[Expression, ...]
    cases: tuple[SelectCase, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ParserState:
    """A state; without a transition it goes to reject."""

    source: Source
    annotations: Annotations
    name: str
    statements: tuple[Statement, ...]
    transition: DirectTransition | SelectTransition | None


@dataclass(frozen=True, slots=True, eq=False)
class ParserDeclaration:
    source: Source
    annotations: Annotations
    name: str
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]
    constructor_parameters: tuple[Parameter, ...]
    locals: tuple[LocalDeclaration, ...]
    states: tuple[ParserState, ...]


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class KeyElement:
    """`expression: match_kind;`"""

    source: Source
    annotations: Annotations
    expression: Expression
    match_kind: str


@dataclass(frozen=True, slots=True, eq=False)
class ActionRef:
    """An action in `actions`, `default_action` or an entry. `arguments` None: written without
    parentheses."""

    source: Source
    annotations: Annotations
    action: PathExpression
    arguments: tuple[Argument, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """`[const] [priority = p:] keyset: action;`; the keyset is a TupleKeyset or one expression."""

    source: Source
    annotations: Annotations
    const: bool
    priority: Expression | None
    keyset: Expression
    action: ActionRef


@dataclass(frozen=True, slots=True, eq=False)
class KeyProperty:
    source: Source
    elements: tuple[KeyElement, ...]
    annotations: Annotations = ()


@dataclass(frozen=True, slots=True, eq=False)
class ActionsProperty:
    source: Source
    actions: tuple[ActionRef, ...]
    annotations: Annotations = ()


@dataclass(frozen=True, slots=True, eq=False)
class EntriesProperty:
    source: Source
    const: bool
    entries: tuple[Entry, ...]
    annotations: Annotations = ()


@dataclass(frozen=True, slots=True, eq=False)
class DefaultActionProperty:
    source: Source
    const: bool
    action: ActionRef
    annotations: Annotations = ()


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """All declarations in order, those of included files among them."""

    source: Source
    declarations: tuple[Declaration, ...]
