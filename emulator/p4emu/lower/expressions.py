"""Lowers expressions: to places where they name storage, to values otherwise.

`operand` gives whichever an expression is, `value` loads it, `expr` is for scalars, `place` for
what is written to. Side effects inside expressions (calls) are emitted before the statement that
contains the expression, in the order of evaluation that P4 prescribes: whatever was evaluated
before a side effect is saved, and `&&`, `||` and `?:` whose parts have side effects become Ifs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p4emu.frontend import ast
from p4emu.frontend.program import CheckedProgram
from p4emu.frontend.source import Source
from p4emu.frontend.types import ApplyResultType, Type
from p4emu.ir.nodes import Assign, Bits, Const, Expr, Program, Read, Stmt, Var
from p4emu.lower import fold, shapes
from p4emu.lower.emit import Emitter
from p4emu.lower.errors import error, unsupported
from p4emu.lower.scope import OBJECTS, Binding, Frame
from p4emu.lower.values import (
    BitRange,
    BoolBit,
    ChosenPlace,
    HeaderPlace,
    Place,
    Record,
    StackPlace,
    StructPlace,
    UnionPlace,
    Value,
    equal,
    load,
)

PLACES = (Var, StructPlace, HeaderPlace, BitRange, BoolBit, UnionPlace, StackPlace, ChosenPlace)
_INDEX = Bits(32)


class Expressions(Emitter):
    """An `Emitter` that reads the syntax tree's expressions in the current `frame`."""

    def __init__(
        self,
        checked: CheckedProgram,
        program: Program,
        allocator: shapes.Allocator,
        frame: Frame,
    ) -> None:
        super().__init__(program)
        self.checked = checked
        self.allocator = allocator
        self.frame = frame
        self._constants = checked.tables.constants
        self._conversions = checked.tables.conversions
        self._literals: dict[ast.Expression, Value] = {}

    # --- what later layers add ---

    def call(self, call: ast.CallExpression) -> Value | Place | None:
        """Emits a call and gives its result; None for void."""
        raise NotImplementedError

    def table_result(self, call: ast.CallExpression, member: str, source: Source) -> Expr:
        """Emits `table.apply()` and gives its `hit` or `miss`."""
        raise NotImplementedError

    def stack_member(self, stack: StackPlace, member: str, source: Source) -> Value | Place:
        """`next`, `last` or `lastIndex` of a stack; parsers only."""
        raise unsupported(source, f"`{member}` of a header stack outside of a parser")

    # --- types ---

    def substituted(self, type_: Type) -> Type:
        """A type of the front end with the activation's type arguments in it."""
        return shapes.substitute(type_, self.frame.types) if self.frame.types else type_

    def type_of(self, expression: ast.Expression) -> Type:
        return self.substituted(self.checked.type_of(expression))

    # --- entry points ---

    def operand(self, expression: ast.Expression) -> Value | Place:
        """The place an expression names, or its value."""
        constant = self._constants.get(expression)
        if constant is not None:
            known = self._literals.get(expression)
            if known is None:
                known = shapes.constant_value(
                    constant, self.type_of(expression), self.checked.errors, expression.source
                )
                if not self.frame.types:
                    self._literals[expression] = known
            return known
        handler = _OPERANDS.get(type(expression))
        if handler is None:
            raise unsupported(expression.source, "this kind of expression")
        result = handler(self, expression)
        target = self._conversions.get(expression)
        if target is not None:
            value = load(result) if isinstance(result, PLACES) else result
            return shapes.convert(value, self.substituted(target), expression.source)
        return result

    def value(self, expression: ast.Expression) -> Value:
        """The value of an expression."""
        result = self.operand(expression)
        return load(result) if isinstance(result, PLACES) else result

    def expr(self, expression: ast.Expression) -> Expr:
        """The value of a scalar expression."""
        result = self.operand(expression)
        if isinstance(result, Var):
            return Read(result)
        value = load(result) if isinstance(result, PLACES) else result
        if isinstance(value, Record):
            raise unsupported(expression.source, "an aggregate here")
        return value

    def place(self, expression: ast.Expression) -> Place:
        """The place an l-value names."""
        result = self.operand(expression)
        if not isinstance(result, PLACES):
            raise error(expression.source, "this cannot be assigned to")
        return result

    def compile_time(self, expression: ast.Expression, what: str) -> Const:
        """The value of a scalar that must be known at compile time."""
        with self.nested() as emitted:
            value = self.expr(expression)
        if emitted or not isinstance(value, Const):
            raise error(expression.source, f"{what} must be known at compile time")
        return value

    def resolve(self, expression: ast.Expression) -> Binding:
        """The object, instance, place or value that a name stands for."""
        if not isinstance(expression, ast.PathExpression):
            raise unsupported(expression.source, "an object that is not given by its name")
        declaration = self.checked.declaration(expression)
        binding = self.frame.find(declaration)
        if binding is None:
            raise unsupported(expression.source, f"the use of `{expression.name}` here")
        return binding

    # --- order of evaluation ---

    def save_before(self, mark: int, value: Value | Place) -> Value:
        """The value as it was at position `mark` of the current body."""
        later = self.out[mark:]
        del self.out[mark:]
        saved = self.saved(load(value) if isinstance(value, PLACES) else value)
        self.out.extend(later)
        return saved

    def expr_pair(self, first: ast.Expression, second: ast.Expression) -> tuple[Expr, Expr]:
        """Two scalars, evaluated in this order."""
        left = self.expr(first)
        mark = len(self.out)
        right = self.expr(second)
        if len(self.out) != mark and not isinstance(left, Const):
            left = self._scalar(self.save_before(mark, left))
        return left, right

    @staticmethod
    def _scalar(value: Value) -> Expr:
        assert not isinstance(value, Record)
        return value

    # --- names and members ---

    def _path(self, expression: ast.PathExpression) -> Value | Place:
        declaration = self.checked.declaration(expression)
        binding = self.frame.find(declaration)
        if binding is None:
            if isinstance(declaration, ast.ConstantDeclaration):
                return self.value(declaration.value)
            raise unsupported(expression.source, f"the use of `{expression.name}` here")
        if isinstance(binding, OBJECTS):
            raise unsupported(expression.source, f"`{expression.name}` as a value")
        return binding

    def _member(self, expression: ast.MemberExpression) -> Value | Place:
        base_node = expression.base
        if isinstance(base_node, ast.CallExpression) and isinstance(
            self.checked.own_type(base_node), ApplyResultType
        ):
            return self.table_result(base_node, expression.member, expression.source)
        base = self.operand(base_node)
        return self._member_of(base, expression)

    def _member_of(self, base: Value | Place, expression: ast.MemberExpression) -> Value | Place:
        member = expression.member
        if isinstance(base, (StructPlace, HeaderPlace, UnionPlace, Record)):
            if member in base.fields:
                return base.fields[member]
            if isinstance(base, Record) and base.valid is not None:
                # A field of an invalid header has no particular value.
                return shapes.default_value(self.type_of(expression), expression.source)
        elif isinstance(base, StackPlace):
            if member == "size":
                return Const(len(base.elements), _INDEX)
            return self.stack_member(base, member, expression.source)
        elif isinstance(base, ChosenPlace):
            options = []
            for option in base.options:
                inner = self._member_of(option, expression)
                assert isinstance(inner, PLACES)
                options.append(inner)
            return ChosenPlace(base.index, tuple(options))
        raise unsupported(expression.source, f"member `{member}` here")

    def _index(self, expression: ast.IndexExpression) -> Value | Place:
        base = self.operand(expression.base)
        mark = len(self.out)
        index = self.expr(expression.index)
        if len(self.out) != mark and not isinstance(base, PLACES):
            base = self.save_before(mark, base)
        if isinstance(index, Const):
            if isinstance(base, StackPlace):
                if 0 <= index.value < len(base.elements):
                    return base.elements[index.value]
                raise error(
                    expression.index.source,
                    f"index {index.value} is outside of a stack of {len(base.elements)} elements",
                )
            if isinstance(base, (StructPlace, Record)) and str(index.value) in base.fields:
                return base.fields[str(index.value)]
        if not isinstance(index.type, Bits):
            raise unsupported(expression.index.source, "an index that is not a number")
        if isinstance(base, StackPlace) and not isinstance(index, Const):
            number = self._scalar(self.simple(fold.cast(index, _INDEX), "index"))
            return ChosenPlace(number, base.elements)
        raise unsupported(expression.source, "this index")

    def _slice(self, expression: ast.SliceExpression) -> Value | Place:
        base = self.operand(expression.base)
        hi = self.compile_time(expression.high, "the bounds of a slice").value
        lo = self.compile_time(expression.low, "the bounds of a slice").value
        return self._slice_of(base, hi, lo)

    def _slice_of(self, base: Value | Place, hi: int, lo: int) -> Value | Place:
        if isinstance(base, Var):
            return BitRange(base, hi, lo)
        if isinstance(base, BitRange):
            return BitRange(base.var, base.lo + hi, base.lo + lo)
        if isinstance(base, ChosenPlace):
            options = []
            for option in base.options:
                inner = self._slice_of(option, hi, lo)
                assert isinstance(inner, PLACES)
                options.append(inner)
            return ChosenPlace(base.index, tuple(options))
        assert not isinstance(base, (*PLACES, Record))
        return fold.slice_(base, hi, lo)

    # --- operators ---

    def _unary(self, expression: ast.UnaryExpression) -> Value:
        operand = self.expr(expression.operand)
        return operand if expression.operator == "+" else fold.unary(expression.operator, operand)

    def _binary(self, expression: ast.BinaryExpression) -> Value:
        operator = expression.operator
        if operator in ("&&", "||"):
            return self._logic(expression)
        if operator in ("==", "!="):
            return self._equality(expression)
        left, right = self.expr_pair(expression.left, expression.right)
        return self.apply_operator(operator, left, right)

    def apply_operator(self, operator: ast.BinaryOperator, left: Expr, right: Expr) -> Expr:
        """`left operator right` on scalars."""
        if operator == "++":
            return fold.concat(left, right)
        if operator in ("<<", ">>") and isinstance(right.type, Bits) and right.type.signed:
            # The checker admits only constants here, and none that is negative.
            right = fold.cast(right, Bits(right.type.width))
        return fold.binary(operator, left, right)

    def _equality(self, expression: ast.BinaryExpression) -> Expr:
        left = self.value(expression.left)
        mark = len(self.out)
        right = self.value(expression.right)
        if len(self.out) != mark:
            left = self.save_before(mark, left)
        same = (
            equal(left, right)
            if isinstance(left, Record)
            else fold.binary("==", left, self._scalar(right))
        )
        if expression.operator == "==":
            return same
        if isinstance(left, Record):
            return fold.unary("!", same)
        return fold.binary("!=", left, self._scalar(right))

    def _logic(self, expression: ast.BinaryExpression) -> Expr:
        left = self.expr(expression.left)
        is_and = expression.operator == "&&"
        if isinstance(left, Const) and bool(left.value) != is_and:
            return left
        with self.nested() as body:
            right = self.expr(expression.right)
        if not body:
            return fold.binary("&&" if is_and else "||", left, right)
        result = self.local("condition", fold.TRUE.type)
        self.emit(Assign(result, left))
        body.append(Assign(result, right))
        self.emit_if(Read(result), body if is_and else (), () if is_and else body)
        return Read(result)

    def _conditional(self, expression: ast.ConditionalExpression) -> Value:
        condition = self.expr(expression.condition)
        if isinstance(condition, Const):
            return self.value(expression.then if condition.value else expression.otherwise)
        with self.nested() as then_body:
            then = self.value(expression.then)
        with self.nested() as else_body:
            otherwise = self.value(expression.otherwise)
        if not then_body and not else_body:
            return _mux(condition, then, otherwise)
        result = self.allocator.place(
            self.type_of(expression), "choice", "local", expression.source
        )
        bodies: list[list[Stmt]] = []
        for body, value in ((then_body, then), (else_body, otherwise)):
            with self.nested() as whole:
                whole.extend(body)
                self.store(result, value)
            bodies.append(whole)
        self.emit_if(condition, *bodies)
        return load(result)

    def _cast(self, expression: ast.CastExpression) -> Value:
        value = self.value(expression.operand)
        type_ = self.substituted(self.checked.type_of_ref(expression.type))
        return shapes.convert(value, type_, expression.source)

    # --- aggregates ---

    def _list(self, expression: ast.ListExpression) -> Value:
        named = [(str(number), element) for number, element in enumerate(expression.elements)]
        return self._record(named, expression)

    def _struct(self, expression: ast.StructExpression) -> Value:
        return self._record([(field.name, field.value) for field in expression.fields], expression)

    def _record(
        self,
        named: list[tuple[str, ast.Expression]],
        expression: ast.ListExpression | ast.StructExpression,
    ) -> Value:
        fields: dict[str, Value] = {}
        for name, element in named:
            mark = len(self.out)
            value = self.value(element)
            if len(self.out) != mark:
                for earlier, saved in fields.items():
                    fields[earlier] = self.save_before(mark, saved)
            fields[name] = value
        record = Record(fields)
        if expression.default_rest:
            return shapes.fill(record, self.type_of(expression), expression.source)
        return record

    def _default(self, expression: ast.DefaultValueExpression) -> Value:
        return shapes.default_value(self.type_of(expression), expression.source)

    def _invalid(self, expression: ast.InvalidHeaderExpression) -> Value:
        return Record({}, fold.FALSE)

    def _call(self, expression: ast.CallExpression) -> Value | Place:
        result = self.call(expression)
        if result is None:
            raise error(expression.source, "this call has no value")
        return result


def _mux(condition: Expr, then: Value, otherwise: Value) -> Value:
    """condition ? then : otherwise, field by field."""
    if not isinstance(then, Record):
        assert not isinstance(otherwise, Record)
        return fold.mux(condition, then, otherwise)
    assert isinstance(otherwise, Record)
    valid = None
    if then.valid is not None and otherwise.valid is not None:
        valid = fold.mux(condition, then.valid, otherwise.valid)
    # The fields of an invalid header literal are missing: any value will do for them.
    names = then.fields if len(then.fields) >= len(otherwise.fields) else otherwise.fields
    fields = {
        name: _mux(
            condition,
            then.fields.get(name, otherwise.fields.get(name)),  # type: ignore[arg-type]
            otherwise.fields.get(name, then.fields.get(name)),  # type: ignore[arg-type]
        )
        for name in names
    }
    return Record(fields, valid)


_OPERANDS: dict[type, Callable[[Expressions, Any], Value | Place]] = {
    ast.PathExpression: Expressions._path,
    ast.MemberExpression: Expressions._member,
    ast.IndexExpression: Expressions._index,
    ast.SliceExpression: Expressions._slice,
    ast.CallExpression: Expressions._call,
    ast.UnaryExpression: Expressions._unary,
    ast.BinaryExpression: Expressions._binary,
    ast.ConditionalExpression: Expressions._conditional,
    ast.CastExpression: Expressions._cast,
    ast.ListExpression: Expressions._list,
    ast.StructExpression: Expressions._struct,
    ast.DefaultValueExpression: Expressions._default,
    ast.InvalidHeaderExpression: Expressions._invalid,
}
