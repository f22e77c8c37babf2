"""Types and constant values of expressions."""

from __future__ import annotations

from typing import Any

from p4emu.frontend import ast, fold
from p4emu.frontend.check_conversions import Conversions
from p4emu.frontend.diagnostics import similar
from p4emu.frontend.program import Constant, EnumValue
from p4emu.frontend.types import (
    BOOL,
    DONT_CARE,
    ERROR,
    INT,
    INVALID_HEADER,
    STRING,
    ActionEnumType,
    ApplyResultType,
    BitsType,
    CallableType,
    EnumType,
    IntType,
    ListType,
    MatchKindType,
    NewType,
    SerializableEnumType,
    SetType,
    StackType,
    StructExpressionType,
    StructType,
    TableType,
    TupleType,
    Type,
    VoidType,
)

_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "|+|", "|-|", "&", "|", "^"})
_ORDER = frozenset({"<", "<=", ">", ">="})
_UNCOMPARABLE = (CallableType, TableType, VoidType, ApplyResultType, MatchKindType)


class Expressions(Conversions):
    """The layer of the checker that types expressions.

    `check` gives an expression its own type and, if it has one, its constant value; `check_as`
    also converts it.
    """

    def check(self, e: ast.Expression) -> Type:
        """The own type of an expression; each expression is checked once."""
        # The left spine of a chain a + b + c... is walked here, not recursively: chains are long.
        spine: list[ast.BinaryExpression] = []
        while isinstance(e, ast.BinaryExpression):
            spine.append(e)
            e = e.left
        known = self.tables.types.get(e)
        if known is None:
            known = getattr(self, _METHODS[type(e)])(e)
            self.tables.types[e] = known
        for node in reversed(spine):
            self.check(node.right)
            try:
                known = self._binary(node)
            except fold.TooLarge:
                self.diagnostics.error(node.source, f"the value has more than {fold.MAX_BITS} bits")
                known = DONT_CARE
            self.tables.types[node] = known
        return known

    def check_as(self, e: ast.Expression, wanted: Type, what: str) -> bool:
        """Check an expression and convert it, or report that `what` must have this type."""
        self.check(e)
        return self.require(e, wanted, what)

    def constant_int(self, expression: ast.Expression, what: str) -> int | None:
        self.check(expression)
        type_ = self.tables.types[expression]
        value = self.constant(expression)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if type_ != DONT_CARE:
            self.diagnostics.error(
                expression.source, f"{what} must be an integer known at compile time"
            )
        return None

    def constant_as(self, expression: ast.Expression, type_: Type, what: str) -> Any:
        if not self.check_as(expression, type_, what):
            return None
        value = self.constant(expression)
        if value is None and self.tables.types[expression] != DONT_CARE:
            self.diagnostics.error(expression.source, f"{what} must be known at compile time")
        return value

    # --- literals and names

    def _int_literal(self, e: ast.IntLiteral) -> Type:
        if e.width is None:
            self.tables.constants[e] = e.value
            return INT
        type_ = BitsType(e.width, e.signed)
        if not fold.fits(e.value, type_):
            self.diagnostics.warning(
                e.source, f"{e.value} does not fit into {type_}: its upper bits are lost"
            )
        self.tables.constants[e] = fold.wrap(e.value, type_)
        return type_

    def _bool_literal(self, e: ast.BoolLiteral) -> Type:
        self.tables.constants[e] = e.value
        return BOOL

    def _string_literal(self, e: ast.StringLiteral) -> Type:
        self.tables.constants[e] = e.value
        return STRING

    def _path(self, e: ast.PathExpression) -> Type:
        found = self.lookup(e)
        if not found:
            return DONT_CARE
        declaration = found[0]
        self.tables.declarations[e] = declaration
        if isinstance(declaration, ast.Parameter | ast.VariableDeclaration):
            return self.tables.declared[declaration]
        if isinstance(declaration, ast.ConstantDeclaration):
            value = self.tables.constants.get(declaration.value)
            if value is not None:
                self.tables.constants[e] = value
            return self.tables.declared[declaration]
        if isinstance(declaration, ast.Instantiation):
            construction = self.tables.constructions.get(declaration)
            return DONT_CARE if construction is None else construction.type
        if isinstance(declaration, ast.TableDeclaration):
            return TableType(declaration)
        if isinstance(declaration, ast.ValueSetDeclaration):
            return SetType(self.type_of_ref(declaration.type))
        what = "action" if isinstance(declaration, ast.ActionDeclaration) else "function"
        return CallableType(what)

    def _this(self, e: ast.ThisExpression) -> Type:
        return DONT_CARE

    def _dont_care(self, e: ast.Expression) -> Type:
        return DONT_CARE

    def _invalid_header(self, e: ast.InvalidHeaderExpression) -> Type:
        return INVALID_HEADER

    def _type_name(self, e: ast.TypeNameExpression) -> Type:
        self.diagnostics.error(e.source, "a type is not a value")
        return DONT_CARE

    # --- members and elements

    def _member(self, e: ast.MemberExpression) -> Type:
        if isinstance(e.base, ast.TypeNameExpression):
            return self._type_member(e, e.base)
        base = self.check(e.base)
        if base == DONT_CARE:
            return DONT_CARE
        if isinstance(base, StructType):
            field = base.fields.get(e.member)
            if field is not None:
                value = self.constant(e.base)
                if isinstance(value, tuple):
                    self.tables.constants[e] = value[list(base.fields).index(e.member)]
                return field.type
            hint = similar(e.member, base.fields)
            if e.member in ("isValid", "setValid", "setInvalid"):
                hint = ("a method is called: add '()'",)
            self.diagnostics.error(e.source, f"{base} has no field '{e.member}'", *hint)
            return DONT_CARE
        if isinstance(base, StackType):
            if e.member in ("next", "last"):
                if self.place != "parser":
                    self.diagnostics.error(e.source, f"'{e.member}' exists only in parsers")
                return base.element
            if e.member in ("lastIndex", "size"):
                if e.member == "size":
                    self.tables.constants[e] = base.size
                return BitsType(32)
        if isinstance(base, ApplyResultType):
            if e.member in ("hit", "miss"):
                return BOOL
            if e.member == "action_run":
                return ActionEnumType(base.declaration)
        if isinstance(base, StructExpressionType) and isinstance(e.base, ast.StructExpression):
            for named in e.base.fields:
                if named.name == e.member:
                    return self.tables.types[named.value]
        self.diagnostics.error(e.source, f"{base} has no member '{e.member}'")
        return DONT_CARE

    def _type_member(self, e: ast.MemberExpression, base: ast.TypeNameExpression) -> Type:
        type_ = self.type_of_ref(base.type)
        self.tables.types[base] = type_
        if type_ == ERROR:
            if e.member not in self.errors:
                self.diagnostics.error(
                    e.source,
                    f"'{e.member}' is no member of error",
                    *similar(e.member, self.errors),
                )
            self.tables.constants[e] = EnumValue(ERROR, e.member)
            return ERROR
        if isinstance(type_, EnumType):
            if e.member not in type_.members:
                self.diagnostics.error(
                    e.source, f"{type_} has no '{e.member}'", *similar(e.member, type_.members)
                )
            self.tables.constants[e] = EnumValue(type_, e.member)
            return type_
        if isinstance(type_, SerializableEnumType):
            if e.member in type_.values:
                self.tables.constants[e] = type_.values[e.member]
            elif not any(m.name == e.member for m in type_.declaration.members):
                self.diagnostics.error(
                    e.source, f"{type_} has no '{e.member}'", *similar(e.member, type_.values)
                )
            return type_
        if type_ != DONT_CARE:
            self.diagnostics.error(e.source, f"{type_} has no member '{e.member}'")
        return DONT_CARE

    def _index(self, e: ast.IndexExpression) -> Type:
        base = self.check(e.base)
        index = self.check(e.index)
        value = self.constant(e.index)
        if base == DONT_CARE or index == DONT_CARE:
            return DONT_CARE
        if isinstance(index, SerializableEnumType) and self.convert(e.index, index.underlying):
            index = index.underlying
        if not isinstance(index, BitsType | IntType):
            self.diagnostics.error(e.index.source, f"an index must be an integer, not {index}")
            return DONT_CARE
        if isinstance(base, StackType):
            self._bounds(e, value, base.size)
            if isinstance(index, IntType):
                self.convert(e.index, BitsType(32))
            return base.element
        if isinstance(base, TupleType):
            if not isinstance(value, int):
                self.diagnostics.error(
                    e.index.source, "the index of a tuple must be known at compile time"
                )
                return DONT_CARE
            if not self._bounds(e, value, len(base.elements)):
                return DONT_CARE
            whole = self.constant(e.base)
            if isinstance(whole, tuple):
                self.tables.constants[e] = whole[value]
            return base.elements[value]
        if isinstance(base, ListType):
            return base.element
        self.diagnostics.error(
            e.source,
            f"{base} has no elements",
            *(("bits are taken with [high:low]",) if isinstance(base, BitsType) else ()),
        )
        return DONT_CARE

    def _bounds(self, e: ast.IndexExpression, value: Constant | None, size: int) -> bool:
        if isinstance(value, int) and not 0 <= value < size:
            self.diagnostics.error(
                e.index.source, f"index {value} is out of range: 0 to {size - 1}"
            )
            return False
        return True

    def _slice(self, e: ast.SliceExpression) -> Type:
        base = self.check(e.base)
        if isinstance(base, SerializableEnumType):
            self.convert(e.base, base.underlying)
            base = base.underlying
        if isinstance(base, NewType):
            base = base.underlying
        high = self.constant_int(e.high, "the high end of a slice")
        low = self.constant_int(e.low, "the low end of a slice")
        if base == DONT_CARE or high is None or low is None:
            return DONT_CARE
        if not isinstance(base, BitsType | IntType):
            self.diagnostics.error(e.source, f"{base} has no bits to take")
            return DONT_CARE
        limit = base.width if isinstance(base, BitsType) else fold.MAX_BITS
        if not 0 <= low <= high < limit:
            what = "the high end comes first" if low > high else f"{base} has bits 0 to {limit - 1}"
            self.diagnostics.error(e.source, f"bad slice [{high}:{low}]: {what}")
            return DONT_CARE
        value = self.constant(e.base)
        if isinstance(value, int):
            self.tables.constants[e] = fold.bits(value, high, low)
        return BitsType(high - low + 1)

    # --- operators

    def _unary(self, e: ast.UnaryExpression) -> Type:
        type_ = self.check(e.operand)
        if isinstance(type_, SerializableEnumType) and e.operator != "!":
            self.convert(e.operand, type_.underlying)
            type_ = type_.underlying
        if type_ == DONT_CARE:
            return DONT_CARE
        good = type_ == BOOL if e.operator == "!" else isinstance(type_, BitsType | IntType)
        if not good:
            wanted = "a bool" if e.operator == "!" else "an integer"
            self.diagnostics.error(e.source, f"'{e.operator}' needs {wanted}, not {type_}")
            return DONT_CARE
        value = self.constant(e.operand)
        if value is not None:
            try:
                folded = fold.unary(e.operator, value, type_)
            except fold.TooLarge:
                folded = None
            if folded is not None:
                self.tables.constants[e] = folded
        return type_

    def _binary(self, e: ast.BinaryExpression) -> Type:
        """Both operands are checked."""
        left, right = self.tables.types[e.left], self.tables.types[e.right]
        if left == DONT_CARE or right == DONT_CARE:
            return BOOL if e.operator in _ORDER or e.operator in ("==", "!=") else DONT_CARE
        operator = e.operator
        if operator in ("&&", "||"):
            return self._logic(e)
        if operator in ("==", "!="):
            return self._equality(e, left, right)
        if isinstance(left, SerializableEnumType):
            self.convert(e.left, left.underlying)
            left = left.underlying
        if isinstance(right, SerializableEnumType):
            self.convert(e.right, right.underlying)
            right = right.underlying
        if operator in ("<<", ">>"):
            return self._shift(e, left, right)
        if operator == "++":
            if left == STRING and right == STRING:
                return self._folded(e, STRING, STRING)
            if isinstance(left, BitsType) and isinstance(right, BitsType):
                self._fold(e, left, right)
                return BitsType(left.width + right.width, left.signed)
            side, type_ = (e.left, left) if not isinstance(left, BitsType) else (e.right, right)
            self.diagnostics.error(
                side.source,
                f"'++' joins bits, not {type_}",
                *(("give the number a width, as in 8w1",) if isinstance(type_, IntType) else ()),
            )
            return DONT_CARE
        both = self._same_width(e, left, right)
        if both is None or (operator in ("|+|", "|-|") and isinstance(both, IntType)):
            self._mismatch(e, left, right)
            return BOOL if operator in _ORDER else DONT_CARE
        if operator in ("/", "%"):
            divisor = self.constant(e.right)
            if divisor == 0:
                self.diagnostics.error(e.right.source, "division by zero")
                return DONT_CARE
            if isinstance(both, BitsType) and both.signed:
                self.diagnostics.error(e.source, f"'{operator}' is not defined for {both}")
                return DONT_CARE
        self._fold(e, both, both)
        return BOOL if operator in _ORDER else both

    def _same_width(self, e: ast.BinaryExpression, left: Type, right: Type) -> Type | None:
        """The common type of two numbers, after converting an `int` to the other's; else None."""
        if not isinstance(left, BitsType | IntType) or not isinstance(right, BitsType | IntType):
            return None
        if left == right:
            return left
        if isinstance(left, IntType) and self.convert(e.left, right):
            return right
        if isinstance(right, IntType) and self.convert(e.right, left):
            return left
        return None

    def _mismatch(self, e: ast.BinaryExpression, left: Type, right: Type) -> None:
        hints: tuple[str, ...] = ()
        if isinstance(left, BitsType) and isinstance(right, BitsType):
            hints = (f"convert one side, as in ({left})...",)
        self.diagnostics.error(
            e.source, f"'{e.operator}' cannot be applied to {left} and {right}", *hints
        )

    def _logic(self, e: ast.BinaryExpression) -> Type:
        for side in (e.left, e.right):
            type_ = self.tables.types[side]
            if type_ != BOOL:
                self.diagnostics.error(
                    side.source,
                    f"'{e.operator}' needs a bool, not {type_}",
                    *(
                        (f"for bits use '{e.operator[0]}', or compare with 0",)
                        if isinstance(type_, BitsType)
                        else ()
                    ),
                )
                return BOOL
        # A side that decides is enough: the other has no value to disagree with.
        left, right = self.constant(e.left), self.constant(e.right)
        decides = e.operator == "||"
        if left is not None and (bool(left) == decides or right is not None):
            self.tables.constants[e] = bool(left) if bool(left) == decides else bool(right)
        return BOOL

    def _equality(self, e: ast.BinaryExpression, left: Type, right: Type) -> Type:
        if left != right:
            if isinstance(left, SerializableEnumType) and not isinstance(
                right, SerializableEnumType
            ):
                self.convert(e.left, left.underlying)
                left = left.underlying
            elif isinstance(right, SerializableEnumType) and not isinstance(
                left, SerializableEnumType
            ):
                self.convert(e.right, right.underlying)
                right = right.underlying
        if left != right and not (self.convert(e.right, left) or self.convert(e.left, right)):
            self._mismatch(e, left, right)
            return BOOL
        if isinstance(self.type_of(e.left), _UNCOMPARABLE):
            self.diagnostics.error(e.source, f"values of {left} cannot be compared")
            return BOOL
        self._fold(e, self.type_of(e.left), self.type_of(e.right))
        return BOOL

    def _shift(self, e: ast.BinaryExpression, left: Type, right: Type) -> Type:
        if not isinstance(left, BitsType | IntType) or not isinstance(right, BitsType | IntType):
            self._mismatch(e, left, right)
            return DONT_CARE
        if isinstance(right, BitsType) and right.signed:
            self.diagnostics.error(e.right.source, f"the distance must be unsigned, not {right}")
            return left
        value = self.constant(e.right)
        if isinstance(value, int) and value < 0:
            self.diagnostics.error(e.right.source, f"cannot shift by {value}")
            return left
        if isinstance(left, IntType) and value is None:
            self.diagnostics.error(
                e.left.source,
                "a number without a width can only be shifted by a constant",
                "give it a width, as in 32w1",
            )
            return DONT_CARE
        if isinstance(value, int) and isinstance(right, IntType):
            if isinstance(left, BitsType) and value >= left.width:
                self.diagnostics.warning(e.source, f"shifts all {left.width} bits out")
            self.convert(e.right, BitsType(max(1, value.bit_length())))
        return self._folded(e, left, right)

    def _folded(self, e: ast.BinaryExpression, type_: Type, right: Type) -> Type:
        self._fold(e, type_, right)
        return type_

    def _fold(self, e: ast.BinaryExpression, type_: Type, right_type: Type) -> None:
        left, right = self.constant(e.left), self.constant(e.right)
        if left is None or right is None:
            return
        value = fold.binary(e.operator, left, right, type_, right_type)
        if value is not None:
            self.tables.constants[e] = value

    def _conditional(self, e: ast.ConditionalExpression) -> Type:
        self.check_as(e.condition, BOOL, "the condition")
        then, otherwise = self.check(e.then), self.check(e.otherwise)
        if then == DONT_CARE:
            return otherwise
        if otherwise == DONT_CARE or then == otherwise or self.convert(e.otherwise, then):
            result = then
        elif self.convert(e.then, otherwise):
            result = otherwise
        else:
            self.diagnostics.error(
                e.source, f"the two sides of '?' have different types: {then} and {otherwise}"
            )
            return DONT_CARE
        chosen = self.constant(e.condition)
        if chosen is not None:
            value = self.constant(e.then if chosen else e.otherwise)
            if value is not None:
                self.tables.constants[e] = value
        return result

    def _cast(self, e: ast.CastExpression) -> Type:
        wanted = self.type_of_ref(e.type)
        own = self.check(e.operand)
        if own == DONT_CARE or wanted == DONT_CARE:
            return wanted
        if not self.castable(own, wanted):
            if self.convert(e.operand, wanted):
                value = self.constant(e.operand)
                if value is not None:
                    self.tables.constants[e] = value
                return wanted
            self.diagnostics.error(
                e.source, f"{own} cannot be converted to {wanted}", *_cast_steps(own, wanted)
            )
            return wanted
        value = self.constant(e.operand)
        if isinstance(value, int):
            target = _bits_of(wanted)
            if target == BOOL:
                self.tables.constants[e] = bool(value)
            else:
                self.tables.constants[e] = fold.wrap(int(value), target)
        elif value is not None:
            self.tables.constants[e] = value
        return wanted

    # --- aggregates

    def _list_expression(self, e: ast.ListExpression) -> Type:
        types = tuple(self.check(element) for element in e.elements)
        if not e.default_rest:
            self._aggregate_constant(e, list(e.elements), False)
        return TupleType(types)

    def _struct_expression(self, e: ast.StructExpression) -> Type:
        names: set[str] = set()
        fields = []
        for named in e.fields:
            if named.name in names:
                self.diagnostics.error(named.source, f"'{named.name}' is given twice")
            names.add(named.name)
            fields.append((named.name, self.check(named.value)))
        return StructExpressionType(tuple(fields))

    # --- keysets

    def _keyset_pair(self, e: ast.MaskExpression | ast.RangeExpression) -> Type:
        first, second = (e.value, e.mask) if isinstance(e, ast.MaskExpression) else (e.low, e.high)
        left, right = self.check(first), self.check(second)
        for side, type_ in ((first, left), (second, right)):
            if left != right and isinstance(type_, SerializableEnumType):
                self.convert(side, type_.underlying)
        left, right = self.type_of(first), self.type_of(second)
        if left != right and not self.convert(second, left) and not self.convert(first, right):
            self.diagnostics.error(e.source, f"the two sides differ: {left} and {right}")
        return SetType(self.type_of(first))

    def _tuple_keyset(self, e: ast.TupleKeyset) -> Type:
        return TupleType(tuple(self.check(element) for element in e.elements))

    def _call(self, e: ast.CallExpression) -> Type:
        raise NotImplementedError

    def _constructor_call(self, e: ast.ConstructorCallExpression) -> Type:
        raise NotImplementedError


def _bits_of(type_: Type) -> Type:
    """The type that says how a constant of this type wraps."""
    while isinstance(type_, NewType | SerializableEnumType):
        type_ = type_.underlying
    return type_


def _cast_steps(own: Type, wanted: Type) -> tuple[str, ...]:
    if isinstance(own, BitsType) and isinstance(wanted, BitsType) and own.signed != wanted.signed:
        step = BitsType(wanted.width, own.signed)
        return (f"change width and sign in two steps: ({wanted})({step})...",)
    if isinstance(own, BitsType) and wanted == BOOL:
        return ("compare with 0",)
    return ()


_METHODS: dict[type, str] = {
    ast.IntLiteral: "_int_literal",
    ast.BoolLiteral: "_bool_literal",
    ast.StringLiteral: "_string_literal",
    ast.PathExpression: "_path",
    ast.ThisExpression: "_this",
    ast.TypeNameExpression: "_type_name",
    ast.MemberExpression: "_member",
    ast.IndexExpression: "_index",
    ast.SliceExpression: "_slice",
    ast.CallExpression: "_call",
    ast.ConstructorCallExpression: "_constructor_call",
    ast.UnaryExpression: "_unary",
    ast.ConditionalExpression: "_conditional",
    ast.CastExpression: "_cast",
    ast.ListExpression: "_list_expression",
    ast.StructExpression: "_struct_expression",
    ast.DefaultValueExpression: "_dont_care",
    ast.InvalidHeaderExpression: "_invalid_header",
    ast.DontCare: "_dont_care",
    ast.MaskExpression: "_keyset_pair",
    ast.RangeExpression: "_keyset_pair",
    ast.TupleKeyset: "_tuple_keyset",
}
