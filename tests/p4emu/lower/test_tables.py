"""Tables: keys, actions, defaults, entries, results."""

from __future__ import annotations

import pytest
from lower_rig import Rig, section

from p4emu.frontend.diagnostics import CompileError
from p4emu.ir.nodes import ActionCall, Entry, KeyMatch

TABLE = """
action forward(bit<9> port) { standard_metadata.egress_spec = port; }
action drop() { mark_to_drop(standard_metadata); }
table route {
    key = { hdr.a.x: exact; hdr.a.z[7:0]: ternary; hdr.a.isValid(): exact; m.y: lpm @name("why"); }
    actions = { forward; drop; }
    default_action = drop();
    size = 99;
}
"""


def test_a_table(rig: Rig) -> None:
    program = rig.program("route.apply();", local=TABLE)
    assert section(program, "ingress") == ["apply In.route"]
    assert section(program, "table In.route") == [
        "key hdr.a.x: exact = hdr.a.x",
        "key hdr.a.z[7:0]: ternary = hdr.a.z[7:0]",
        "key hdr.a.$valid$: exact = (bit<1>)hdr.a.$valid",
        "key why: lpm = meta.y",
        "action 0 In.forward(bit<9> port)",
        "  standard_metadata.egress_spec = port",
        "action 1 In.drop()",
        "  standard_metadata.egress_spec = 9w0x1ff",
        "  standard_metadata.mcast_grp = 16w0",
        "default In.drop()",
        "size 99",
    ]


def test_hit_and_miss_are_conditions(rig: Rig) -> None:
    body = """
        if (route.apply().hit) { m.x = 1; }
        bool missed = route.apply().miss;
        m.flag = missed;
    """
    assert rig.ingress(body, local=TABLE) == [
        "hit = hit apply In.route",
        "if hit",
        "  meta.x = 8w1",
        "hit~2 = hit apply In.route",
        "missed = !hit~2",
        "meta.flag = missed",
    ]


def test_a_switch_on_the_action_that_ran(rig: Rig) -> None:
    body = """
        switch (route.apply().action_run) {
            drop: { m.x = 1; }
            default: { m.x = 2; }
        }
    """
    assert rig.ingress(body, local=TABLE) == [
        "action_run = action apply In.route",
        "switch action_run",
        "  case 1",
        "    meta.x = 8w1",
        "  default",
        "    meta.x = 8w2",
    ]


def test_a_table_without_default_does_nothing_on_a_miss(rig: Rig) -> None:
    local = "action a() { m.x = 1; } table t { key = { m.y: exact; } actions = { a; } }"
    (table,) = rig.program("t.apply();", local=local).tables
    assert [action.name for action in table.actions] == ["In.a", "NoAction"]
    assert table.default == ActionCall(1)
    assert not table.const_default
    assert table.size == 1024


def test_a_constant_default_with_arguments(rig: Rig) -> None:
    local = """
        action set(inout bit<8> to, bit<8> v, int<8> w) { to = v; hdr.a.s = w; }
        table t { actions = { set(m.x); } const default_action = set(m.x, 7, -1); }
    """
    program = rig.program("t.apply();", local=local)
    (table,) = program.tables
    assert table.default == ActionCall(0, (7, -1))
    assert table.const_default
    assert section(program, "table In.t")[:5] == [
        "action 0 In.set(bit<8> v, int<8> w)",
        "  to = meta.x",
        "  to = v",
        "  hdr.a.s = w",
        "  meta.x = to",
    ]


def test_entries_of_every_match_kind(rig: Rig) -> None:
    local = """
        action a(bit<8> v) { m.x = v; }
        action b() { }
        table t {
            key = { hdr.a.x: exact; hdr.a.y: ternary; hdr.a.z: lpm; m.y: range; m.flag: exact;
                    hdr.b.x: optional; }
            actions = { a; b; }
            const entries = {
                (1, 4 &&& 12, 0xff00 &&& 0xff00, 3..5, true, 8): a(9);
                (2, _, _, _, false, _): b();
                (3, 7, 0x1234, 6, true, 1): b;
            }
        }
    """
    (table,) = rig.program("t.apply();", local=local).tables
    ones = KeyMatch(1, 1)
    assert table.const_entries
    assert table.entries == (
        Entry(
            (
                KeyMatch(1, 0xFF),
                KeyMatch(4, 12),
                KeyMatch(0xFF00, 0xFF00),
                KeyMatch(3, 5),
                ones,
                KeyMatch(8, 0xFF),
            ),
            ActionCall(0, (9,)),
            3,
        ),
        Entry(
            (
                KeyMatch(2, 0xFF),
                KeyMatch(0, 0),
                KeyMatch(0, 0),
                KeyMatch(0, 0xFF),
                KeyMatch(0, 1),
                KeyMatch(0, 0),
            ),
            ActionCall(1),
            2,
        ),
        Entry(
            (
                KeyMatch(3, 0xFF),
                KeyMatch(7, 0xFF),
                KeyMatch(0x1234, 0xFFFF),
                KeyMatch(6, 6),
                ones,
                KeyMatch(1, 0xFF),
            ),
            ActionCall(1),
            1,
        ),
    )


def test_a_key_is_named_by_its_text_or_annotation(rig: Rig) -> None:
    local = """
        table t {
            key = { m.x + 1: exact @name("sum"); m.y & 0x0f: exact; hdr.a.z[7:0]: exact; }
            actions = { NoAction; }
        }
    """
    (table,) = rig.program("t.apply();", local=local).tables
    assert [key.name for key in table.keys] == ["sum", "m.y & 0xf", "hdr.a.z[7:0]"]
    with pytest.raises(CompileError, match=r"this key needs a name .*@name"):
        rig.program("t.apply();", local=local.replace('@name("sum")', ""))


def test_priorities_that_are_written_out(rig: Rig) -> None:
    local = """
        action a() { }
        table t {
            key = { hdr.a.x: ternary; }
            actions = { a; }
            largest_priority_wins = false;
            entries = {
                const priority = 10: 1 &&& 1: a();
                priority = 30: 2 &&& 2: a();
                4 &&& 4: a();
            }
        }
    """
    (table,) = rig.program("t.apply();", local=local).tables
    first, second, third = (entry.priority for entry in table.entries)
    assert first > second > third > 0
    assert first - second == 20
    assert not table.const_entries


def test_priorities_by_annotation_are_smallest_first(rig: Rig) -> None:
    local = """
        action a() { }
        table t {
            key = { hdr.a.x: ternary; }
            actions = { a; }
            const entries = {
                1 &&& 1: a() @priority(3);
                2 &&& 2: a();
                4 &&& 4: a() @priority(1);
            }
        }
    """
    (table,) = rig.program("t.apply();", local=local).tables
    first, second, third = (entry.priority for entry in table.entries)
    assert third > second > first > 0


def test_a_direct_counter_belongs_to_its_table(rig: Rig) -> None:
    local = """
        direct_counter(CounterType.bytes) hits;
        action a() { hits.count(); }
        table t { key = { m.x: exact; } actions = { a; } counters = hits; }
    """
    program = rig.program("t.apply();", local=local)
    (counter,) = program.counters
    assert (counter.name, counter.kind, counter.table) == ("In.hits", "bytes", "In.t")
    assert program.tables[0].counter is counter
    assert program.tables[0].actions[0].body == ()


def test_exit_in_an_action_leaves_the_block_around_the_apply(rig: Rig) -> None:
    local = "action stop() { exit; } table t { actions = { stop; } default_action = stop; }"
    program = rig.program("t.apply(); m.x = 1;", local=local)
    assert section(program, "ingress") == [
        "block In.exit",
        "  apply In.t",
        "  meta.x = 8w1",
    ]
    assert section(program, "table In.t")[1] == "  leave In.exit"


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ("implementation = action_profile(4);", "`implementation`"),
        ("meters = speed;", "`meters`"),
    ],
)
def test_table_properties_are_never_ignored(rig: Rig, properties: str, message: str) -> None:
    local = f"""
        action a() {{ }}
        table t {{ key = {{ m.x: exact; }} actions = {{ a; }} {properties} }}
    """
    if "speed" in properties:
        local = f"direct_meter<bit<8>>(MeterType.bytes) speed; {local}"
    with pytest.raises(CompileError, match=r"test\.p4:\d+:\d+: error: .*not supported yet"):
        rig.program("t.apply();", local=local)


def test_an_lpm_mask_must_be_a_prefix(rig: Rig) -> None:
    local = """
        action a() { }
        table t { key = { m.x: lpm; } actions = { a; } const entries = { 1 &&& 5: a(); } }
    """
    with pytest.raises(CompileError, match="mask of an lpm key must be a prefix"):
        rig.program("t.apply();", local=local)
