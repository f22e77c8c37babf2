"""Parsers: states, select, packet_in, subparsers, header stacks, unions."""

from __future__ import annotations

import pytest
from lower_rig import Rig, section

from p4emu.frontend.diagnostics import CompileError

TYPES = """\
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> x; bit<8> y; bit<16> z; int<8> s; }
header tag_t { bit<7> id; bit<1> last; }
header_union u_t { h_t h; tag_t t; }
struct headers_t { h_t a; h_t b; tag_t[3] tags; u_t u; }
struct metadata_t { bit<8> x; bit<8> y; bit<16> z; bool flag; }
error { BadTag }
"""


def parser(rig: Rig, states: str, *, local: str = "", top: str = "") -> list[str]:
    text = (
        "parser P(packet_in packet, out headers_t hdr, inout metadata_t m,\n"
        "         inout standard_metadata_t standard_metadata) {\n"
        f"{local}\n{states}\n}}"
    )
    return section(rig.program(types=TYPES, parser=text, top=top), "parser")


def test_select_with_every_kind_of_keyset(rig: Rig) -> None:
    lines = parser(
        rig,
        """
        state start {
            packet.extract(hdr.a);
            transition select(hdr.a.x, hdr.a.s) {
                (1, -1): more;
                (4 &&& 12, _): more;
                (5..9, 3): accept;
                default: reject;
            }
        }
        state more { transition accept; }
        """,
    )
    assert lines == [
        "state start",
        "  extract hdr.a",
        "  select hdr.a.x, (bit<8>)hdr.a.s",
        "    0x1, 0xff -> more",
        "    0x4 &&& 0xc, _ -> more",
        "    0x5..0x9, 0x3 -> accept",
        "    _, _ -> reject",
        "state more",
        "  goto accept",
    ]


def test_lookahead_advance_and_verify(rig: Rig) -> None:
    lines = parser(
        rig,
        """
        state start {
            tag_t next_tag = packet.lookahead<tag_t>();
            verify(next_tag.last == 1, error.BadTag);
            packet.advance(8);
            m.x = packet.lookahead<bit<8>>();
            transition select(packet.lookahead<bit<4>>()) { 1: accept; }
        }
        """,
    )
    assert lines == [
        "state start",
        "  lookahead = lookahead<bit<8>>()",
        "  next_tag.setValid",
        "  next_tag.id = lookahead[7:1]",
        "  next_tag.last = lookahead[0:0]",
        "  verify (next_tag.last == 1w1), error 7",
        "  advance 32w8",
        "  lookahead~2 = lookahead<bit<8>>()",
        "  meta.x = lookahead~2",
        "  lookahead~3 = lookahead<bit<4>>()",
        "  select lookahead~3",
        "    0x1 -> accept",
    ]


def test_a_state_without_transition_rejects(rig: Rig) -> None:
    assert parser(rig, "state start { m.x = 1; }")[-1] == "  goto reject"


def test_a_subparser_is_spliced_in(rig: Rig) -> None:
    top = """
        parser Sub(packet_in p, out h_t h, inout bit<8> count) {
            state start { p.extract(h); transition select(h.x) { 0: again; default: accept; } }
            state again { count = count + 1; transition start; }
        }
    """
    lines = parser(
        rig,
        "state start { packet.extract(hdr.a); sub.apply(packet, hdr.b, m.x); m.y = 1;"
        " transition accept; }",
        local="Sub() sub;",
        top=top,
    )
    assert lines == [
        "state start",
        "  extract hdr.a",
        "  hdr.b.setInvalid",
        "  goto start.sub.start",
        "state start.sub.start",
        "  extract hdr.b",
        "  select hdr.b.x",
        "    0x0 -> start.sub.again",
        "    _ -> start.sub.$done",
        "state start.sub.again",
        "  meta.x = (meta.x + 8w1)",
        "  goto start.sub.start",
        "state start.sub.$done",
        "  meta.y = 8w1",
        "  goto accept",
    ]


def test_variables_are_initialised_once_although_start_is_entered_again(rig: Rig) -> None:
    lines = parser(
        rig,
        """
        state start { packet.extract(hdr.a); n = n + 1;
                      transition select(n) { 3: accept; default: start; } }
        """,
        local="bit<8> n = 0;",
    )
    assert lines == [
        "state start",
        "  n = 8w0",
        "  goto start.$again",
        "state start.$again",
        "  extract hdr.a",
        "  n = (n + 8w1)",
        "  select n",
        "    0x3 -> accept",
        "    _ -> start.$again",
    ]


def test_a_stack_is_extracted_element_by_element(rig: Rig) -> None:
    lines = parser(
        rig,
        """
        state start {
            packet.extract(hdr.tags.next);
            transition select(hdr.tags.last.last) { 1: accept; default: start; }
        }
        """,
    )
    assert lines == [
        "state start",
        "  verify (hdr.tags.$next < 32w3), error 3",
        "  switch hdr.tags.$next",
        "    case 0",
        "      extract hdr.tags[0]",
        "    case 1",
        "      extract hdr.tags[1]",
        "    case 2",
        "      extract hdr.tags[2]",
        "  hdr.tags.$next = (hdr.tags.$next + 32w1)",
        "  verify (hdr.tags.$next != 32w0), error 3",
        "  last = (hdr.tags.$next - 32w1)",
        "  select ((last == 32w0) ? hdr.tags[0].last : "
        "((last == 32w1) ? hdr.tags[1].last : hdr.tags[2].last))",
        "    0x1 -> accept",
        "    _ -> start",
    ]


def test_a_union_has_one_valid_member(rig: Rig) -> None:
    lines = parser(rig, "state start { packet.extract(hdr.u.t); transition accept; }")
    assert lines[1:3] == ["  extract hdr.u.t", "  hdr.u.h.setInvalid"]
    body = "hdr.u.h.setValid(); m.flag = hdr.u.isValid();"
    program = rig.program(body, types=TYPES)
    assert section(program, "ingress") == [
        "hdr.u.h.setValid",
        "hdr.u.t.setInvalid",
        "meta.flag = (hdr.u.h.$valid || hdr.u.t.$valid)",
    ]


def test_extracting_a_member_of_the_next_union_moves_the_stack_on(rig: Rig) -> None:
    types = TYPES.replace("u_t u;", "u_t u; u_t[2] us;")
    text = (
        "parser P(packet_in packet, out headers_t hdr, inout metadata_t m,\n"
        "         inout standard_metadata_t standard_metadata) {\n"
        "state start { packet.extract(hdr.us.next.t); transition accept; } }"
    )
    lines = section(rig.program(types=types, parser=text), "parser")
    assert lines[2:] == [
        "  switch hdr.us.$next",
        "    case 0",
        "      extract hdr.us[0].t",
        "      hdr.us[0].h.setInvalid",
        "    case 1",
        "      extract hdr.us[1].t",
        "      hdr.us[1].h.setInvalid",
        "  hdr.us.$next = (hdr.us.$next + 32w1)",
        "  goto accept",
    ]


def test_a_stack_is_shifted(rig: Rig) -> None:
    program = rig.program("hdr.tags.push_front(1);", types=TYPES)
    assert section(program, "ingress")[:7] == [
        "hdr.tags[2].$valid = hdr.tags[1].$valid",
        "hdr.tags[2].id = hdr.tags[1].id",
        "hdr.tags[2].last = hdr.tags[1].last",
        "hdr.tags[1].$valid = hdr.tags[0].$valid",
        "hdr.tags[1].id = hdr.tags[0].id",
        "hdr.tags[1].last = hdr.tags[0].last",
        "hdr.tags[0].setInvalid",
    ]


def test_a_stack_element_is_chosen_at_run_time(rig: Rig) -> None:
    program = rig.program("hdr.tags[m.x].id = 5; m.flag = hdr.tags[1].isValid();", types=TYPES)
    assert section(program, "ingress") == [
        "index = (bit<32>)meta.x",
        "switch index",
        "  case 0",
        "    hdr.tags[0].id = 7w5",
        "  case 1",
        "    hdr.tags[1].id = 7w5",
        "  case 2",
        "    hdr.tags[2].id = 7w5",
        "meta.flag = hdr.tags[1].$valid",
    ]


def test_an_error_in_a_variable_is_checked_against_each(rig: Rig) -> None:
    lines = parser(
        rig,
        """
        state start {
            error e = m.flag ? error.BadTag : error.NoError;
            verify(m.x == 0, e);
            transition accept;
        }
        """,
    )
    assert lines[1:4] == [
        "  e = (meta.flag ? 32w7 : 32w0)",
        "  tmp = !(meta.x == 8w0)",
        "  verify (!tmp || (e != 32w0)), error 0",
    ]
    assert lines[-2] == "  verify (!tmp || (e != 32w7)), error 7"


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ("m.z = (bit<16>)packet.length();", "`length` of packet_in"),
        ("if (m.flag) { sub.apply(packet); }", "applying a parser under a condition"),
    ],
)
def test_what_is_not_supported_is_named(rig: Rig, statements: str, message: str) -> None:
    top = "parser Sub(packet_in p) { state start { transition accept; } }"
    states = f"state start {{ {statements} transition accept; }}"
    with pytest.raises(CompileError, match=message):
        parser(rig, states, local="Sub() sub;", top=top)
