"""Whatever the text is, the front end gives a program or a CompileError, and soon."""

from __future__ import annotations

from pathlib import Path

from front_rig import in_control, in_parser
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from p4emu.frontend import CompileError, check_text
from p4emu.p4info import p4info

_PROGRAMS = [
    in_control(
        "if (t.apply().hit) { meta.a = 1 + meta.a; } else { s.apply(hdr.eth); }\n"
        "switch (t.apply().action_run) { a: { mark_to_drop(standard); } default: {} }\n"
        "hash(meta.wide, HashAlgorithm.crc32, 32w0, { hdr.eth.src, meta.a }, 32w8);",
        "action a(bit<8> x) { meta.a = x; }\nregister<bit<32>>(8) r;\n"
        "table t { key = { meta.a: exact; hdr.eth.dst: ternary; } actions = { a; NoAction; }\n"
        "default_action = NoAction(); const entries = { (1, 2 &&& 3): a(4); } size = 4; }\nS() s;",
    ).replace(
        "control I", "control S(inout eth_t e)(bit<8> n) { apply { e.kind = 1; } }\ncontrol I"
    ),
    in_parser(
        "state start { packet.extract(hdr.eth); transition select(hdr.eth.kind) {\n"
        "0x800: next; 1 .. 5: accept; _: reject; } }\n"
        "state next { packet.extract(hdr.stack.next); transition accept; }"
    ),
]
_FRAGMENTS = [
    "{", "}", "(", ")", "<", ">", ">>", "[", "]", ";", ",", ".", "=", "+", "&&&", "..", "...", "_",
    "@", "#", "#if ", "#define ", "\n", " ", "bit", "bit<8>", "int", "tuple<", "struct", "header",
    "control", "parser", "state", "apply", "if", "else", "return", "const", "8w1", "0x", '"', "/*",
    "*/", "//", "error", "enum", "typedef", "type", "extern", "in", "out", "this", "default",
    "\\", "__LINE__", "\x00", "é", "?", ":", "key", "actions", "table", "meta", "hdr", "x", "T",
]  # fmt: skip


def survives(text: str, path: str = "fuzz.p4", **defines: str) -> None:
    """Raises anything but CompileError if the front end does."""
    error = None
    try:
        p4info(check_text(text, path, defines=defines))
    except CompileError as caught:
        error = caught
    assert error is None or (error.diagnostics and str(error))


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
@example("#")
@example("#include")
@example("\\")
@example("@a(")
@example("8w")
def test_any_text(text: str) -> None:
    survives(text)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(_FRAGMENTS), max_size=40))
def test_any_tokens(pieces: list[str]) -> None:
    survives(" ".join(pieces))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_mutated_programs(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(_PROGRAMS))
    start = text.index("struct headers_t")
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(start, len(text)))
        length = data.draw(st.integers(0, 12))
        piece = data.draw(st.one_of(st.just(""), st.sampled_from(_FRAGMENTS)))
        text = text[:place] + piece + text[place + length :]
    survives(text)


def test_the_all_reduce_program_without_any_one_line() -> None:
    path = Path(__file__).resolve().parents[3] / "p4" / "allreduce.p4"
    lines = path.read_text().splitlines()
    for missing in range(20, len(lines), 17):
        text = "\n".join(lines[:missing] + lines[missing + 1 :])
        survives(text, str(path), INA_LANES="16")
