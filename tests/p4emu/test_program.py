"""`p4emu.compile`: all stages from a source file, or an error that says where."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import p4emu

REFLECTOR = """
#include <core.p4>
#include <v1model.p4>
#include "mark.p4"
header mark_t { bit<8> value; }
struct headers_t { mark_t mark; }
struct meta_t { }
parser P(packet_in b, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { b.extract(h.mark); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = s.ingress_port; h.mark.value = h.mark.value + MARK; }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out b, in headers_t h) { apply { b.emit(h.mark); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "mark.p4").write_text("#ifndef MARK\n#define MARK 1\n#endif\n")
    path = tmp_path / "reflector.p4"
    path.write_text(REFLECTOR)
    return path


@pytest.mark.parametrize(("defines", "added"), [({}, 1), ({"MARK": "0x20"}, 0x20)])
def test_a_source_file_becomes_a_running_switch(
    source: Path, defines: dict[str, str], added: int
) -> None:
    program = p4emu.compile(source, include=[source.parent / "include"], defines=defines)
    with p4emu.Switch(program) as switch:
        assert switch.process(3, b"\x05rest") == [(3, bytes([5 + added]) + b"rest")]


def test_every_stage_is_timed(source: Path) -> None:
    program = p4emu.compile(source, include=[source.parent / "include"])
    stages = ["front end", "lowering", "generate", "parse", "optimise", "machine code"]
    assert list(program.seconds) == stages
    assert all(seconds > 0 for seconds in program.seconds.values())


def test_a_wrong_program_is_an_error_with_its_place(source: Path) -> None:
    source.write_text(REFLECTOR.replace("h.mark.value + MARK", "h.mark.colour"))
    with pytest.raises(p4emu.CompileError, match=r"reflector\.p4:13:\d+: error: .*colour"):
        p4emu.compile(source, include=[source.parent / "include"])


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(p4emu.CompileError, match=r"nowhere\.p4"):
        p4emu.compile(tmp_path / "nowhere.p4")


def test_checking_a_program_loads_no_compiler() -> None:
    """`p4emu check` starts quickly and works where LLVM does not."""
    code = "import sys, p4emu.frontend; print('llvmlite' in sys.modules)"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.strip() == "False"
