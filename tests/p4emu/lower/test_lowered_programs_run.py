"""Lowered programs, compiled and given packets: the semantics, not the shape of the IR.

Each program works on a header `io` of five bytes `a b c d e` and a trailer of `tags`; the frame
that leaves shows what the program computed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import p4emu

HEAD = """\
#include <core.p4>
#include <v1model.p4>
header io_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e; }
header tag_t { bit<7> id; bit<1> last; }
struct headers_t { io_t io; tag_t[3] tags; }
struct metadata_t { bit<8> x; }
"""
PARSER = """\
parser P(packet_in packet, out headers_t hdr, inout metadata_t m,
         inout standard_metadata_t standard_metadata) {
    state start { packet.extract(hdr.io); transition accept; }
}
"""
TAIL = """
control V(inout headers_t hdr, inout metadata_t m) { apply {} }
control E(inout headers_t hdr, inout metadata_t m,
          inout standard_metadata_t standard_metadata) { apply {} }
control C(inout headers_t hdr, inout metadata_t m) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), In(), E(), C(), D()) main;
"""
MakeSwitch = Callable[..., p4emu.Switch]


@pytest.fixture
def switch(tmp_path: Path) -> MakeSwitch:
    """A switch that runs the given ingress and sends everything to port 1."""

    def make(body: str, *, local: str = "", top: str = "", parser: str = PARSER) -> p4emu.Switch:
        path = tmp_path / "test.p4"
        path.write_text(
            f"{HEAD}{top}{parser}control In(inout headers_t hdr, inout metadata_t m,\n"
            f"inout standard_metadata_t standard_metadata) {{\n{local}\napply {{\n"
            f"standard_metadata.egress_spec = 1;\n{body}\n}}\n}}{TAIL}",
            encoding="utf-8",
        )
        return p4emu.Switch(p4emu.compile(path))

    return make


def run(switch: p4emu.Switch, *values: int) -> list[int]:
    """The bytes of the one frame that leaves."""
    ((port, frame),) = switch.process(0, bytes(values))
    assert port == 1
    return list(frame)


def test_overlapping_arguments_follow_copy_in_copy_out(switch: MakeSwitch) -> None:
    top = """
        void mix(in bit<8> i, inout bit<8> p, inout bit<8> q) {
            p = p + 1;
            q = q + i + p;
        }
    """
    # p and q both start as a = 10; p becomes 11; q becomes 10 + 10 + 11; q is copied last.
    assert run(switch("mix(hdr.io.a, hdr.io.a, hdr.io.a);", top=top), 10, 0, 0, 0, 0)[0] == 31


def test_side_effects_happen_in_order_and_only_when_reached(switch: MakeSwitch) -> None:
    top = "bit<8> bump(inout bit<8> v) { v = v + 1; return v; }"
    body = """
        hdr.io.b = hdr.io.a + bump(hdr.io.a) + hdr.io.a;
        if (hdr.io.c != 0 && bump(hdr.io.d) == 1) { hdr.io.e = 7; }
    """
    box = switch(body, top=top)
    assert run(box, 5, 0, 0, 0, 0) == [6, 5 + 6 + 6, 0, 0, 0]
    assert run(box, 5, 0, 1, 0, 0) == [6, 5 + 6 + 6, 1, 1, 7]


def test_exit_still_copies_out_and_ends_the_control(switch: MakeSwitch) -> None:
    local = """
        action act(inout bit<8> v) { v = v + 1; if (v == 3) { exit; } v = v + 10; }
    """
    box = switch("act(hdr.io.a); hdr.io.b = 1;", local=local)
    assert run(box, 2, 0, 0, 0, 0)[:2] == [3, 0]
    assert run(box, 5, 0, 0, 0, 0)[:2] == [16, 1]


def test_return_ends_one_action_only(switch: MakeSwitch) -> None:
    local = "action act() { if (hdr.io.a == 1) { return; } hdr.io.b = 9; }"
    box = switch("act(); hdr.io.c = 4;", local=local)
    assert run(box, 1, 0, 0, 0, 0)[:3] == [1, 0, 4]
    assert run(box, 2, 0, 0, 0, 0)[:3] == [2, 9, 4]


def test_one_table_serves_every_apply_of_its_instance(switch: MakeSwitch) -> None:
    top = """
        control Lookup(in bit<8> key, out bit<8> result) {
            action set(bit<8> v) { result = v + key; }
            action stop() { result = 255; exit; }
            table t {
                key = { key: exact; }
                actions = { set; stop; }
                default_action = set(0);
                const entries = { 1: set(10); 2: set(20); 3: stop(); }
            }
            apply { t.apply(); }
        }
    """
    body = "l.apply(hdr.io.a, hdr.io.c); l.apply(hdr.io.b, hdr.io.d); hdr.io.e = 1;"
    box = switch(body, local="Lookup() l;", top=top)
    assert run(box, 1, 2, 0, 0, 0) == [1, 2, 11, 22, 1]
    assert run(box, 7, 3, 0, 0, 0) == [7, 3, 7, 255, 0]
    assert run(box, 3, 1, 0, 5, 0) == [3, 1, 255, 5, 0]


def test_what_a_table_did_is_known_afterwards(switch: MakeSwitch) -> None:
    local = """
        action one() { hdr.io.b = 1; }
        action two() { hdr.io.b = 2; }
        table t {
            key = { hdr.io.a: ternary; }
            actions = { one; two; NoAction; }
            const entries = { 0x10 &&& 0xf0: one(); 0x01 &&& 0x0f: two(); }
        }
    """
    body = """
        switch (t.apply().action_run) {
            one: { hdr.io.c = 11; }
            two: { hdr.io.c = 12; }
            default: { hdr.io.c = 13; }
        }
        if (!t.apply().hit) { hdr.io.d = 1; }
    """
    box = switch(body, local=local)
    assert run(box, 0x11, 0, 0, 0, 0) == [0x11, 1, 11, 0, 0]  # the first entry wins
    assert run(box, 0x21, 0, 0, 0, 0) == [0x21, 2, 12, 0, 0]
    assert run(box, 0x22, 0, 0, 0, 0) == [0x22, 0, 13, 1, 0]


STACK_PARSER = """\
parser P(packet_in packet, out headers_t hdr, inout metadata_t m,
         inout standard_metadata_t standard_metadata) {
    state start { packet.extract(hdr.io); transition tags; }
    state tags {
        packet.extract(hdr.tags.next);
        m.x = m.x + (bit<8>)hdr.tags.last.id;
        transition select(hdr.tags.last.last) { 1: accept; default: tags; }
    }
}
"""


def tag(number: int, last: int = 0) -> int:
    return number << 1 | last


def test_a_stack_is_parsed_indexed_and_shifted(switch: MakeSwitch) -> None:
    body = """
        hdr.io.b = m.x;
        hdr.io.c = (bit<8>)hdr.tags[hdr.io.a].id;
        hdr.tags[hdr.io.a].id = 100;
        hdr.tags.push_front(1);
        hdr.tags[0] = {42, 0};
    """
    box = switch(body, parser=STACK_PARSER)
    assert run(box, 1, 0, 0, 0, 0, tag(5), tag(6, 1), 0xEE) == [
        *(1, 11, 6, 0, 0),
        *(tag(42), tag(5), tag(100, 1)),
        0xEE,
    ]


def test_a_full_stack_is_a_parser_error(switch: MakeSwitch) -> None:
    body = """
        hdr.io.b = standard_metadata.parser_error == error.StackOutOfBounds ? 8w1 : 0;
    """
    box = switch(body, parser=STACK_PARSER)
    tags = (tag(1), tag(2), tag(3), tag(4, 1))
    assert run(box, 0, 0, 0, 0, 0, *tags) == [0, 1, 0, 0, 0, *tags]


def test_a_subparser_runs_with_its_own_variables(switch: MakeSwitch) -> None:
    parser = """\
        parser Sub(packet_in p, inout bit<8> sum, out tag_t t)(bit<8> step) {
            bit<8> rounds = 0;
            state start {
                p.extract(t);
                rounds = rounds + step;
                transition select(t.last, rounds) {
                    (1, _): done;
                    (_, 6..255): reject;
                    default: start;
                }
            }
            state done { sum = sum + rounds; transition accept; }
        }
        parser P(packet_in packet, out headers_t hdr, inout metadata_t m,
                 inout standard_metadata_t standard_metadata) {
            Sub(1) ones;
            Sub(2) twos;
            state start {
                packet.extract(hdr.io);
                ones.apply(packet, m.x, hdr.tags[0]);
                twos.apply(packet, m.x, hdr.tags[1]);
                transition accept;
            }
        }
    """
    box = switch("hdr.io.b = m.x;", parser=parser)
    packet = (0, 0, 0, 0, 0, tag(1), tag(2, 1), tag(3), tag(4), tag(5, 1))
    assert run(box, *packet) == [0, 2 + 6, 0, 0, 0, tag(2, 1), tag(5, 1)]


def test_a_hash_stays_within_its_limit(switch: MakeSwitch) -> None:
    body = """
        hash(hdr.io.b, HashAlgorithm.crc32, 8w3, {hdr.io.a}, 8w10);
        hash(hdr.io.c, HashAlgorithm.crc16, 8w3, {hdr.io.a}, hdr.io.d);
        hash(hdr.io.e, HashAlgorithm.identity, 8w1, {hdr.io.a}, 8w128);
    """
    box = switch(body)
    for value in range(256):
        _, by_constant, by_variable, _, identity = run(box, value, 0, 0, value, 0)
        assert 3 <= by_constant < 13
        assert 3 <= by_variable < 3 + max(value, 1) or value > 252
        assert identity == 1 + value % 128
