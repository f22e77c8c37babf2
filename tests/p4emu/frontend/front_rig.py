"""Helpers of the front end's tests: small programs around the piece under test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from p4emu.frontend import CheckedProgram, CompileError, ast, check_text

HEADERS = """
#include <core.p4>
#include <v1model.p4>
header eth_t { bit<48> dst; bit<48> src; bit<16> kind; }
header opt_t { bit<8> len; varbit<320> data; }
struct headers_t { eth_t eth; eth_t[3] stack; opt_t opt; }
struct meta_t { bit<8> a; int<8> s; bool flag; bit<32> wide; }
"""

PIPELINE = """
parser P(packet_in packet, out headers_t hdr, inout meta_t meta,
         inout standard_metadata_t standard) {
    state start { transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply {} }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


def accepted(text: str) -> CheckedProgram:
    """The program, which must be free of errors."""
    return check_text(text, "test.p4")


def errors(text: str) -> list[str]:
    """The messages of the errors a program has."""
    with pytest.raises(CompileError) as caught:
        check_text(text, "test.p4")
    return [d.message for d in caught.value.diagnostics if d.severity == "error"]


def in_control(body: str, locals_: str = "") -> str:
    """A program whose ingress control `I` has these local declarations and this body."""
    return (
        f"{HEADERS}\ncontrol I(inout headers_t hdr, inout meta_t meta, "
        f"inout standard_metadata_t standard) {{\n{locals_}\napply {{\n{body}\n}}\n}}\n{PIPELINE}"
    )


def in_parser(body: str, locals_: str = "") -> str:
    """A program with a parser `Q` of these states."""
    return (
        f"{HEADERS}\nparser Q(packet_in packet, out headers_t hdr, inout meta_t meta) {{\n"
        f"{locals_}\n{body}\n}}\n"
    )


def nodes(program: CheckedProgram, kind: type) -> list[Any]:
    """All AST nodes of a kind in the test's own file, in order."""
    found = [n for n in _walk(program.program) if isinstance(n, kind)]
    return [n for n in found if n.source.file == "test.p4"]


def _walk(node: Any) -> Iterator[Any]:
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, tuple) and not hasattr(current, "line"):
            pending.extend(reversed(current))
        elif hasattr(current, "__dataclass_fields__"):
            yield current
            pending.extend(getattr(current, f) for f in reversed(current.__slots__))


def constant(expression: str, type_: str, before: str = "") -> Any:
    """The value of `const type_ c = expression;`."""
    program = accepted(f"{before}\nconst {type_} c = {expression};")
    declaration = program.program.declarations[-1]
    assert isinstance(declaration, ast.ConstantDeclaration)
    return program.constant(declaration.value)
