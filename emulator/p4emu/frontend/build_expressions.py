"""Syntax tree construction for expressions, types and lists; see build.py."""

from __future__ import annotations

from typing import Any

from p4emu.frontend import ast
from p4emu.frontend.diagnostics import Diagnostics
from p4emu.frontend.scopes import TypeNames
from p4emu.frontend.source import Source

MAX_DEPTH = 300
"""Depth of an expression: an operator counts 1 in a chain like a + b + c, all else counts 3.

Later stages walk expressions recursively; this keeps them within Python's stack.
"""

MAX_WIDTH = 1 << 16
"""Bits of `bit<W>` and of integer literals; far beyond any header field."""

MAX_DIGITS = 20_000
"""Characters of an integer literal, about what MAX_WIDTH bits need in decimal."""

Values = Any


class ExpressionBuilder:
    """Actions for expressions, types and lists.

    Parameters
    ----------
    names
        The parser's scopes, which actions of declarations change.
    diagnostics
        Gets what the grammar cannot refuse.
    """

    def __init__(self, names: TypeNames, diagnostics: Diagnostics) -> None:
        self.names = names
        self.diagnostics = diagnostics
        self._depths: dict[int, int] = {}

    # --- lists and plain values

    def empty(self, v: Values) -> list[Any]:
        return []

    def single(self, v: Values) -> list[Any]:
        return [v[0]]

    def append(self, v: Values) -> list[Any]:
        v[0].append(v[1])
        return v[0]  # type: ignore[no-any-return]

    def append_separated(self, v: Values) -> list[Any]:
        v[0].append(v[2])
        return v[0]  # type: ignore[no-any-return]

    def nothing(self, v: Values) -> None:
        return None

    def first(self, v: Values) -> Any:
        return v[0]

    def second(self, v: Values) -> Any:
        return v[1]

    def third(self, v: Values) -> Any:
        return v[2]

    def named_expression(self, v: Values) -> ast.NamedExpression:
        return ast.NamedExpression(v[0].source, v[0].text, v[2])

    # --- types

    def type_name(self, v: Values) -> ast.NamedTypeRef:
        return ast.NamedTypeRef(v[0].source, v[0].text)

    def absolute_type_name(self, v: Values) -> ast.NamedTypeRef:
        return ast.NamedTypeRef(v[1].source, v[1].text, True)

    def list_type(self, v: Values) -> ast.ListTypeRef:
        return ast.ListTypeRef(v[0].source, v[2])

    def tuple_type(self, v: Values) -> ast.TupleTypeRef:
        return ast.TupleTypeRef(v[0].source, tuple(v[2]))

    def header_stack_type(self, v: Values) -> ast.StackTypeRef:
        return ast.StackTypeRef(v[0].source, v[0], v[2])

    def specialized_type(self, v: Values) -> ast.SpecializedTypeRef:
        return ast.SpecializedTypeRef(v[0].source, v[0], tuple(v[2]))

    def simple_type(self, v: Values) -> ast.SimpleTypeRef:
        return ast.SimpleTypeRef(v[0].source, v[0].text)

    def plain_bit_type(self, v: Values) -> ast.BitTypeRef:
        return ast.BitTypeRef(v[0].source, None, False)

    def bit_type(self, v: Values) -> ast.BitTypeRef:
        return ast.BitTypeRef(v[0].source, v[2], v[0].text == "int")

    def varbit_type(self, v: Values) -> ast.VarbitTypeRef:
        return ast.VarbitTypeRef(v[0].source, v[2])

    # --- names and literals

    def path(self, v: Values) -> ast.PathExpression:
        return ast.PathExpression(v[0].source, v[0].text)

    def absolute_path(self, v: Values) -> ast.PathExpression:
        return ast.PathExpression(v[1].source, v[1].text, True)

    def this(self, v: Values) -> ast.ThisExpression:
        return ast.ThisExpression(v[0].source)

    def integer(self, v: Values) -> ast.IntLiteral:
        source, text = v[0].source, v[0].text.replace("_", "")
        width: int | None = None
        signed = False
        if len(text) > MAX_DIGITS:
            self.diagnostics.error(source, f"number with more than {MAX_DIGITS} digits")
            return ast.IntLiteral(source, 0)
        for letter in "ws":
            before, found, after = text.partition(letter)
            if found:
                width, signed, text = int(before), letter == "s", after
                break
        base = {"0x": 16, "0d": 10, "0o": 8, "0b": 2}.get(text[:2].lower())
        digits = text if base is None else text[2:]
        if not digits:
            self.diagnostics.error(source, f"'{v[0].text}' has no digits")
            return ast.IntLiteral(source, 0)
        if width is not None and not 1 <= width <= MAX_WIDTH:
            self.diagnostics.error(source, f"the width of a number must be 1 to {MAX_WIDTH} bits")
            width = MAX_WIDTH
        try:
            value = int(digits, base or 10)
        except ValueError:  # Python's own limit on decimal digits
            self.diagnostics.error(source, "decimal number too long", "write it in hexadecimal")
            value = 0
        return ast.IntLiteral(source, value, width, signed, base or 10)

    def true(self, v: Values) -> ast.BoolLiteral:
        return ast.BoolLiteral(v[0].source, True)

    def false(self, v: Values) -> ast.BoolLiteral:
        return ast.BoolLiteral(v[0].source, False)

    def string(self, v: Values) -> ast.StringLiteral:
        return ast.StringLiteral(v[0].source, v[0].text)

    def concatenated_string(self, v: Values) -> ast.StringLiteral:
        return ast.StringLiteral(v[0].source, v[0].value + v[1].text)

    def invalid_header(self, v: Values) -> ast.InvalidHeaderExpression:
        return ast.InvalidHeaderExpression(v[0].source)

    def default_value(self, v: Values) -> ast.DefaultValueExpression:
        return ast.DefaultValueExpression(v[0].source)

    def dont_care(self, v: Values) -> ast.DontCare:
        return ast.DontCare(v[0].source)

    # --- operators

    def _deeper(self, node: Any, *parts: Any, step: int = 3) -> Any:
        """`node`, once its depth is known to be within bounds."""
        depths = self._depths
        depth = step + max([depths.get(id(part), 0) for part in parts], default=0)
        if depth > MAX_DEPTH:
            self.diagnostics.fatal(node.source, "expression is nested too deeply")
        depths[id(node)] = depth
        return node

    def binary(self, v: Values) -> ast.BinaryExpression:
        left, operator, right = v
        node = ast.BinaryExpression(operator.source, operator.text, left, right)
        depths = self._depths
        depth = max(1 + depths.get(id(left), 0), 3 + depths.get(id(right), 0))
        if depth > MAX_DEPTH:
            self.diagnostics.fatal(node.source, "expression is nested too deeply")
        depths[id(node)] = depth
        return node

    def unary(self, v: Values) -> Any:
        return self._deeper(ast.UnaryExpression(v[0].source, v[0].text, v[1]), v[1])

    def conditional(self, v: Values) -> Any:
        node = ast.ConditionalExpression(v[1].source, v[0], v[2], v[4])
        return self._deeper(node, v[0], v[2], v[4])

    def cast(self, v: Values) -> Any:
        return self._deeper(ast.CastExpression(v[0].source, v[1], v[3]), v[3])

    def mask(self, v: Values) -> ast.MaskExpression:
        return ast.MaskExpression(v[1].source, v[0], v[2])

    def range(self, v: Values) -> ast.RangeExpression:
        return ast.RangeExpression(v[1].source, v[0], v[2])

    # --- members, calls

    def member(self, v: Values) -> Any:
        return self._deeper(ast.MemberExpression(v[2].source, v[0], v[2].text), v[0])

    def type_member(self, v: Values) -> ast.MemberExpression:
        base = ast.TypeNameExpression(v[0].source, v[0])
        return ast.MemberExpression(v[2].source, base, v[2].text)

    def error_member(self, v: Values) -> ast.MemberExpression:
        type_ = ast.SimpleTypeRef(v[0].source, "error")
        base = ast.TypeNameExpression(v[0].source, type_)
        return ast.MemberExpression(v[2].source, base, v[2].text)

    def index(self, v: Values) -> Any:
        return self._deeper(ast.IndexExpression(v[1].source, v[0], v[2]), v[0], v[2])

    def slice(self, v: Values) -> Any:
        node = ast.SliceExpression(v[1].source, v[0], v[2], v[4])
        return self._deeper(node, v[0], v[2], v[4])

    def call(self, v: Values) -> ast.CallExpression:
        callee, _, arguments = v[:3]
        node = ast.CallExpression(_name_source(callee), callee, (), tuple(arguments))
        return self._deeper(node, callee, *(a.value for a in arguments))  # type: ignore[no-any-return]

    def generic_call(self, v: Values) -> ast.CallExpression:
        callee, _, types, _, _, arguments = v[:6]
        node = ast.CallExpression(_name_source(callee), callee, tuple(types), tuple(arguments))
        return self._deeper(node, callee, *(a.value for a in arguments))  # type: ignore[no-any-return]

    def constructor_call(self, v: Values) -> ast.ConstructorCallExpression:
        node = ast.ConstructorCallExpression(v[0].source, v[0], tuple(v[2]))
        return self._deeper(node, *(a.value for a in v[2]))  # type: ignore[no-any-return]

    def argument(self, v: Values) -> ast.Argument:
        return ast.Argument(v[0].source, None, v[0])

    def named_argument(self, v: Values) -> ast.Argument:
        return ast.Argument(v[0].source, v[0].text, v[2])

    def ignored_argument(self, v: Values) -> ast.Argument:
        return ast.Argument(v[0].source, None, ast.DontCare(v[0].source))

    def named_ignored_argument(self, v: Values) -> ast.Argument:
        return ast.Argument(v[0].source, v[0].text, ast.DontCare(v[2].source))

    # --- lists

    def list_expression(self, v: Values) -> ast.ListExpression:
        elements = v[1]
        rest = bool(elements) and isinstance(elements[-1], ast.DefaultValueExpression)
        if rest:
            elements = elements[:-1]
        node = ast.ListExpression(v[0].source, tuple(elements), rest)
        return self._deeper(node, *elements)  # type: ignore[no-any-return]

    def struct_expression(self, v: Values) -> ast.StructExpression:
        node = ast.StructExpression(v[0].source, tuple(v[1]))
        return self._deeper(node, *(f.value for f in v[1]))  # type: ignore[no-any-return]

    def open_struct_expression(self, v: Values) -> ast.StructExpression:
        node = ast.StructExpression(v[0].source, tuple(v[1]), True)
        return self._deeper(node, *(f.value for f in v[1]))  # type: ignore[no-any-return]

    def tuple_keyset(self, v: Values) -> ast.TupleKeyset:
        return ast.TupleKeyset(v[0].source, (v[1], *v[3]))

    def single_keyset(self, v: Values) -> ast.TupleKeyset:
        return ast.TupleKeyset(v[0].source, (v[1],))


def _name_source(callee: ast.Expression) -> Source:
    return callee.source
