"""Implicit conversions, and the few explicit ones that casts add.

The language converts by itself only: `int` to a width, a serializable enum to its underlying type,
and list or structure expressions to the struct, header, tuple or stack that is expected.
"""

from __future__ import annotations

from p4emu.frontend import ast, fold
from p4emu.frontend.check_context import Context
from p4emu.frontend.program import Constant
from p4emu.frontend.types import (
    BOOL,
    DONT_CARE,
    INT,
    BitsType,
    IntType,
    InvalidHeaderType,
    ListType,
    NewType,
    SerializableEnumType,
    StackType,
    StructExpressionType,
    StructType,
    TupleType,
    Type,
    TypeVariable,
)


class Conversions(Context):
    """The layer of the checker that converts values to the type that is wanted."""

    def type_of(self, e: ast.Expression) -> Type:
        """The type of a checked expression after conversions so far."""
        return self.tables.conversions.get(e) or self.tables.types[e]

    def constant(self, e: ast.Expression) -> Constant | None:
        return self.tables.constants.get(e)

    def convert(self, e: ast.Expression, wanted: Type) -> bool:
        """Convert a checked expression; False (and nothing reported) if that is not allowed."""
        own = self.tables.types[e]
        if own == wanted or DONT_CARE in (own, wanted):
            return True
        if isinstance(own, IntType):
            if isinstance(wanted, BitsType):
                self._int_to_bits(e, wanted)
                return True
            return False
        if isinstance(own, SerializableEnumType):
            if own.underlying == wanted:
                self.tables.conversions[e] = wanted
                return True
            return False
        if isinstance(e, ast.ConditionalExpression):
            if self.convert(e.then, wanted) and self.convert(e.otherwise, wanted):
                self.tables.conversions[e] = wanted
                return True
            return False
        if isinstance(own, TupleType) and isinstance(e, ast.ListExpression):
            return self._from_list(e, wanted)
        if isinstance(own, StructExpressionType) and isinstance(e, ast.StructExpression):
            return self._from_fields(e, wanted)
        if isinstance(own, InvalidHeaderType):
            if isinstance(wanted, StructType) and wanted.kind != "struct":
                self.tables.conversions[e] = wanted
                return True
            return False
        return False

    def _int_to_bits(self, e: ast.Expression, wanted: BitsType) -> None:
        self.tables.conversions[e] = wanted
        value = self.tables.constants.get(e)
        if isinstance(value, int):
            if not fold.fits(value, wanted):
                self.diagnostics.warning(
                    e.source, f"{value} does not fit into {wanted}: its upper bits are lost"
                )
            self.tables.constants[e] = fold.wrap(value, wanted)
        elif isinstance(e, ast.ConditionalExpression):
            self.convert(e.then, wanted)
            self.convert(e.otherwise, wanted)

    def _from_list(self, e: ast.ListExpression, wanted: Type) -> bool:
        if isinstance(wanted, StructType) and wanted.kind != "header_union":
            types = [f.type for f in wanted.fields.values()]
        elif isinstance(wanted, TupleType):
            types = list(wanted.elements)
        elif isinstance(wanted, StackType):
            if len(e.elements) > wanted.size:
                return False
            types = [wanted.element] * (wanted.size if e.default_rest else len(e.elements))
        elif isinstance(wanted, ListType):
            types = [wanted.element] * len(e.elements)
        else:
            return False
        if len(e.elements) > len(types) or (len(e.elements) < len(types) and not e.default_rest):
            return False
        if not all(self.convert(x, t) for x, t in zip(e.elements, types, strict=False)):
            return False
        self.tables.conversions[e] = wanted
        self._aggregate_constant(e, list(e.elements), e.default_rest)
        return True

    def _from_fields(self, e: ast.StructExpression, wanted: Type) -> bool:
        if not isinstance(wanted, StructType) or wanted.kind == "header_union":
            return False
        given = {f.name: f.value for f in e.fields}
        if not given.keys() <= wanted.fields.keys():
            return False
        if len(given) < len(wanted.fields) and not e.default_rest:
            return False
        if not all(self.convert(value, wanted.fields[n].type) for n, value in given.items()):
            return False
        self.tables.conversions[e] = wanted
        ordered = [given[name] for name in wanted.fields if name in given]
        self._aggregate_constant(e, ordered, e.default_rest)
        return True

    def _aggregate_constant(
        self, e: ast.Expression, parts: list[ast.Expression], partial: bool
    ) -> None:
        values = [self.tables.constants.get(part) for part in parts]
        if not partial and all(value is not None for value in values):
            self.tables.constants[e] = tuple(v for v in values if v is not None)

    def require(self, e: ast.Expression, wanted: Type, what: str) -> bool:
        """Convert a checked expression or report that `what` needs another type."""
        if self.convert(e, wanted):
            return True
        own = self.tables.types[e]
        self.diagnostics.error(
            e.source, f"{what} must be {wanted}, not {own}", *self._cast_hint(own, wanted)
        )
        return False

    def _cast_hint(self, own: Type, wanted: Type) -> tuple[str, ...]:
        if isinstance(wanted, StructType) and isinstance(own, TupleType):
            return (f"{wanted} has {len(wanted.fields)} fields, the list {len(own.elements)}",)
        if isinstance(wanted, StructType) and isinstance(own, StructExpressionType):
            given = dict(own.fields)
            missing = [name for name in wanted.fields if name not in given]
            extra = [name for name in given if name not in wanted.fields]
            if missing:
                return (f"missing: {', '.join(missing)}",)
            if extra:
                return (f"{wanted} has no field {', '.join(extra)}",)
            return ()
        if own == BOOL and isinstance(wanted, BitsType) and wanted.width > 1:
            return (f"write ({wanted})(bit<1>)...",)
        if self.castable(own, wanted):
            return (f"write ({wanted})... to convert",)
        return ()

    def castable(self, own: Type, wanted: Type) -> bool:
        """Whether an explicit cast may go from one type to the other."""
        if own == wanted or DONT_CARE in (own, wanted):
            return True
        if isinstance(own, TypeVariable) or isinstance(wanted, TypeVariable):
            return False
        if isinstance(own, NewType) and self.castable(own.underlying, wanted):
            return True
        if isinstance(wanted, NewType) and self.castable(own, wanted.underlying):
            return True
        if isinstance(own, SerializableEnumType):
            return self.castable(own.underlying, wanted)
        if isinstance(wanted, SerializableEnumType):
            return self.castable(own, wanted.underlying)
        if isinstance(own, IntType):
            return isinstance(wanted, BitsType) or wanted == BOOL
        if isinstance(own, BitsType):
            if isinstance(wanted, BitsType):
                return own.signed == wanted.signed or own.width == wanted.width
            return wanted == INT or (wanted == BOOL and own == BitsType(1))
        if own == BOOL:
            return wanted == BitsType(1)
        if isinstance(own, StructType) and isinstance(wanted, TupleType | StructType):
            return False
        return False
