"""The names that the control plane uses for objects and for the keys of tables.

They are those that P4Runtime tools expect: `Ingress.inner.table`, with `@name` annotations applied,
and for a key the expression as it is written.
"""

from __future__ import annotations

from p4emu.frontend import ast
from p4emu.frontend.program import CheckedProgram
from p4emu.frontend.types import StructType
from p4emu.lower.errors import error

_LITERAL_FORMATS = {2: "#b", 8: "#o", 10: "d", 16: "#x"}


def control_plane_name(path: str, name: str, annotations: ast.Annotations) -> str:
    """The full name of an object: `path.name`, with `@name` in place of the name if there is one.

    A `@name` that begins with a dot is the full name.
    """
    for annotation in annotations:
        if annotation.name == "name" and annotation.string is not None:
            if annotation.string.startswith("."):
                return annotation.string[1:]
            name = annotation.string
    return f"{path}.{name}" if path else name


def key_name(checked: CheckedProgram, key: ast.KeyElement) -> str:
    """The name of a table key: its @name, or the text of its expression if that is simple."""
    for annotation in key.annotations:
        if annotation.name == "name" and annotation.string is not None:
            return annotation.string
    text = _text(checked, key.expression)
    if text is None:
        raise error(key.source, 'this key needs a name for the control plane: add @name("...")')
    return text


def _text(checked: CheckedProgram, expression: ast.Expression) -> str | None:
    if isinstance(expression, ast.PathExpression):
        return expression.name
    if isinstance(expression, ast.IntLiteral):
        return format(expression.value, _LITERAL_FORMATS[expression.base])
    if isinstance(expression, ast.MemberExpression):
        return _member_text(checked, expression)
    if isinstance(expression, ast.CallExpression):
        callee = expression.callee
        if isinstance(callee, ast.MemberExpression) and callee.member == "isValid":
            base = _text(checked, callee.base)
            return None if base is None else f"{base}.$valid$"
        return None
    parts: tuple[ast.Expression, ...] = ()
    template = ""
    if isinstance(expression, ast.IndexExpression):
        parts, template = (expression.base, expression.index), "{}[{}]"
    elif isinstance(expression, ast.SliceExpression):
        parts, template = (expression.base, expression.high, expression.low), "{}[{}:{}]"
    elif isinstance(expression, ast.BinaryExpression) and expression.operator == "&":
        parts, template = (expression.left, expression.right), "{} & {}"
    texts = [_text(checked, part) for part in parts]
    return template.format(*texts) if texts and None not in texts else None


def _member_text(checked: CheckedProgram, expression: ast.MemberExpression) -> str | None:
    """`base.member`, or the @name of the field, which is the whole name if it begins with a dot."""
    base = _text(checked, expression.base)
    member = expression.member
    type_ = checked.own_type(expression.base)
    if isinstance(type_, StructType) and member in type_.fields:
        for annotation in type_.fields[member].declaration.annotations:
            if annotation.name == "name" and annotation.string is not None:
                member = annotation.string
    if member.startswith("."):
        return member[1:]
    return None if base is None else f"{base}.{member}"
