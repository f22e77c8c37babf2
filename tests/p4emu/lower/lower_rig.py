"""What the tests of lowering share: the fixed pipeline around small pieces of P4, and its IR text.

Statements run in the ingress control of a fixed pipeline, whose headers are `hdr.a` and `hdr.b`
(`bit<8> x; bit<8> y; bit<16> z; int<8> s;`), with metadata `m.x`, `m.y`, `m.z`, `m.flag`.
"""

from __future__ import annotations

from pathlib import Path

from p4emu.frontend import check
from p4emu.ir import dump, verify
from p4emu.ir.nodes import Program
from p4emu.lower import lower

TYPES = """\
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> x; bit<8> y; bit<16> z; int<8> s; }
struct headers_t { h_t a; h_t b; }
struct metadata_t { bit<8> x; bit<8> y; bit<16> z; bool flag; }
"""
PARSER = """\
parser P(packet_in packet, out headers_t hdr, inout metadata_t m,
         inout standard_metadata_t standard_metadata) {
    state start { packet.extract(hdr.a); transition accept; }
}
"""
VERIFY = "control V(inout headers_t hdr, inout metadata_t m) { apply {} }"
EGRESS = """\
control E(inout headers_t hdr, inout metadata_t m,
          inout standard_metadata_t standard_metadata) { apply {} }
"""
COMPUTE = "control C(inout headers_t hdr, inout metadata_t m) { apply {} }"
DEPARSER = "control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }"
MAIN = "V1Switch(P(), V(), In(), E(), C(), D()) main;"


class Rig:
    """Lowers programs from text; `directory` is where their files are written."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "test.p4"

    def text(self, text: str) -> Program:
        """Checks, lowers and verifies a whole program."""
        self._path.write_text(text, encoding="utf-8")
        program = lower(check(self._path))
        verify(program)
        return program

    def program(
        self,
        body: str = "",
        *,
        local: str = "",
        top: str = "",
        types: str = TYPES,
        parser: str = PARSER,
        verify: str = VERIFY,
        compute: str = COMPUTE,
    ) -> Program:
        """The fixed pipeline with ingress statements, its declarations, and others before it."""
        ingress = (
            "control In(inout headers_t hdr, inout metadata_t m,\n"
            "                inout standard_metadata_t standard_metadata) {\n"
            f"{local}\napply {{\n{body}\n}}\n}}"
        )
        parts = (types, top, parser, verify, ingress, EGRESS, compute, DEPARSER, MAIN)
        return self.text("\n".join(parts))

    def ingress(self, body: str, *, local: str = "", top: str = "") -> list[str]:
        """The printed ingress of `program`."""
        return section(self.program(body, local=local, top=top), "ingress")


def section(program: Program, name: str) -> list[str]:
    """The printed lines of a block or of `table NAME`, without declarations of local variables."""
    lines = dump(program).splitlines()
    start = lines.index(name) + 1
    end = next((i for i in range(start, len(lines)) if not lines[i]), len(lines))
    body = [line[2:] for line in lines[start:end]]
    return [line for line in body if not line.startswith("local ")]
