"""Controls, actions and functions inlined: what is copied, what is not, how they are left."""

from __future__ import annotations

import pytest
from lower_rig import Rig, section

from p4emu.frontend.diagnostics import CompileError
from p4emu.ir.nodes import Register

LANE = """
control Lane(in bit<32> row, in bit<32> keep, inout bit<32> value, inout bit<32> overflow) {
    register<bit<32>>(16) cells;
    apply {
        bit<32> stored;
        cells.read(stored, row);
        bit<32> left = stored & keep;
        bit<32> before = value;
        value = left + value;
        overflow = overflow | (left ^ before);
        cells.write(row, value);
    }
}
"""


def test_a_lane_is_its_statements_and_nothing_else(rig: Rig) -> None:
    local = "Lane() first; Lane() second;"
    body = """
        bit<32> row = (bit<32>)hdr.a.x;
        bit<32> keep = m.flag ? 32w0 : 0xffffffff;
        bit<32> one = 1;
        bit<32> two = 2;
        bit<32> overflow = 0;
        first.apply(row, keep, one, overflow);
        second.apply(row, keep, two, overflow);
    """
    program = rig.program(body, local=local, top=LANE)
    assert section(program, "ingress")[5:] == [
        "stored = In.first.cells[row]",
        "left = (stored & keep)",
        "before = one",
        "one = (left + one)",
        "overflow = (overflow | (left ^ before))",
        "In.first.cells[row] = one",
        "stored~2 = In.second.cells[row]",
        "left~2 = (stored~2 & keep)",
        "before~2 = two",
        "two = (left~2 + two)",
        "overflow = (overflow | (left~2 ^ before~2))",
        "In.second.cells[row] = two",
    ]
    assert [type(r) for r in program.registers] == [Register, Register]
    assert [r.name for r in program.registers] == ["In.first.cells", "In.second.cells"]


# --- copying -----------------------------------------------------------------------------------

FUNCTIONS = """
void set(in bit<8> from, inout bit<8> to) { to = 5; to = to + from; }
void both(inout bit<8> p, inout bit<8> q) { p = p + 1; q = q + p; }
void give(out bit<8> p) { p = 9; }
"""


def test_an_in_argument_that_the_call_changes_is_copied(rig: Rig) -> None:
    assert rig.ingress("set(m.x, m.x);", top=FUNCTIONS) == [
        "from = meta.x",
        "meta.x = 8w5",
        "meta.x = (meta.x + from)",
    ]


def test_an_in_argument_that_the_call_cannot_change_is_not(rig: Rig) -> None:
    assert rig.ingress("set(m.y, m.x);", top=FUNCTIONS) == [
        "meta.x = 8w5",
        "meta.x = (meta.x + meta.y)",
    ]


def test_overlapping_out_arguments_are_copied_back_in_order(rig: Rig) -> None:
    assert rig.ingress("both(m.x, m.x);", top=FUNCTIONS) == [
        "p = meta.x",
        "q = meta.x",
        "p = (p + 8w1)",
        "q = (q + p)",
        "meta.x = p",
        "meta.x = q",
    ]


def test_a_bit_range_is_copied_back(rig: Rig) -> None:
    assert rig.ingress("give(m.z[15:8]);", top=FUNCTIONS) == ["p = 8w9", "meta.z[15:8] = p"]


def test_an_ignored_out_argument_goes_nowhere(rig: Rig) -> None:
    assert rig.ingress("give(_);", top=FUNCTIONS) == ["p = 8w9"]


def test_an_action_argument_is_copied_because_actions_see_everything(rig: Rig) -> None:
    local = "action act(in bit<8> v) { m.x = 1; m.y = v; }"
    assert rig.ingress("act(m.x);", local=local) == ["v = meta.x", "meta.x = 8w1", "meta.y = v"]
    assert rig.ingress("act(3);", local=local) == ["meta.x = 8w1", "meta.y = 8w3"]


def test_an_out_header_starts_invalid(rig: Rig) -> None:
    top = "void fresh(out h_t h) { h.x = 1; }"
    assert rig.ingress("fresh(hdr.b);", top=top) == ["hdr.b.setInvalid", "hdr.b.x = 8w1"]


def test_arguments_are_evaluated_in_order(rig: Rig) -> None:
    top = """
        bit<8> bump(inout bit<8> v) { v = v + 1; return v; }
        void store(in bit<8> a, in bit<8> b, out bit<8> c) { c = a - b; }
    """
    assert rig.ingress("store(m.x, bump(m.x), m.y);", top=top) == [
        "tmp = meta.x",
        "meta.x = (meta.x + 8w1)",
        "bump.result = meta.x",
        "meta.y = (tmp - bump.result)",
    ]


def test_a_generic_function_is_specialised(rig: Rig) -> None:
    top = "T pick<T>(in bool first, in T a, in T b) { T r = a; if (!first) { r = b; } return r; }"
    assert rig.ingress("m.z = pick<bit<16>>(m.flag, 1, m.z);", top=top) == [
        "r = 16w1",
        "if !meta.flag",
        "  r = meta.z",
        "pick.result = r",
        "meta.z = pick.result",
    ]


# --- return and exit ---------------------------------------------------------------------------


def test_a_return_at_the_end_needs_no_block(rig: Rig) -> None:
    assert rig.ingress("m.x = 1; return; m.y = 2;") == ["meta.x = 8w1"]


def test_an_early_return_leaves_its_own_call_only(rig: Rig) -> None:
    local = "action act() { if (m.flag) { return; } m.x = 1; }"
    lines = rig.ingress("act(); m.y = 2;", local=local)
    label = lines[0].removeprefix("block ")
    assert lines == [
        f"block {label}",
        "  if meta.flag",
        f"    leave {label}",
        "  meta.x = 8w1",
        "meta.y = 8w2",
    ]


def test_exit_leaves_the_whole_block(rig: Rig) -> None:
    top = "control Inner(inout metadata_t m) { apply { if (m.flag) { exit; } m.x = 1; } }"
    assert rig.ingress("inner.apply(m); m.y = 2;", local="Inner() inner;", top=top) == [
        "block In.exit",
        "  if meta.flag",
        "    leave In.exit",
        "  meta.x = 8w1",
        "  meta.y = 8w2",
    ]


def test_exit_copies_out_arguments_on_its_way(rig: Rig) -> None:
    local = "action act(inout bit<8> v) { v = 1; if (m.flag) { exit; } v = 2; }"
    lines = rig.ingress("act(m.x); m.y = 3;", local=local)
    label = lines[3].strip().removeprefix("block ")
    assert lines == [
        "block In.exit",
        "  v = meta.x",
        "  exiting = false",
        f"  block {label}",
        "    v = 8w1",
        "    if meta.flag",
        "      exiting = true",
        f"      leave {label}",
        "    v = 8w2",
        "  meta.x = v",
        "  if exiting",
        "    leave In.exit",
        "  meta.y = 8w3",
    ]


# --- instances ---------------------------------------------------------------------------------


def test_names_follow_the_instances_and_name_annotations(rig: Rig) -> None:
    top = """
        control Leaf() { register<bit<8>>(2) plain; @name("other") register<bit<8>>(2) r;
                         @name(".top") register<bit<8>>(2) s; apply {} }
        control Node() { Leaf() one; @name("deux") Leaf() two; apply { one.apply(); } }
    """
    local = 'Node() node; @name(".top2") register<bit<8>>(2) mine;'
    with pytest.raises(CompileError, match=r"two objects have the control-plane name `top`"):
        rig.program(local=local, top=top)
    program = rig.program(local=local, top=top.replace('@name(".top")', ""))
    assert {r.name for r in program.registers} == {
        "In.node.one.plain",
        "In.node.one.other",
        "In.node.one.s",
        "In.node.deux.plain",
        "In.node.deux.other",
        "In.node.deux.s",
        "top2",
    }


def test_constructor_parameters_are_constants_of_the_instance(rig: Rig) -> None:
    top = """
        control Sized(inout metadata_t m)(bit<32> size, bool wide) {
            register<bit<8>>(size * 2) cells;
            apply {
                if (wide) { m.z = (bit<16>)size; } else { m.x = (bit<8>)size + 1; }
            }
        }
    """
    program = rig.program(
        "a.apply(m); b.apply(m);", local="Sized(4, true) a; Sized(8, false) b;", top=top
    )
    assert [(r.name, r.size) for r in program.registers] == [
        ("In.a.cells", 8),
        ("In.b.cells", 16),
    ]
    assert section(program, "ingress") == ["meta.z = 16w4", "meta.x = 8w9"]


def test_an_instance_applied_twice_keeps_one_table(rig: Rig) -> None:
    top = """
        control Inner(in bit<8> key, out bit<8> result) {
            action set(bit<8> v) { result = v + key; }
            table t { key = { key: exact; } actions = { set; NoAction; }
                      default_action = NoAction; }
            apply { t.apply(); }
        }
    """
    program = rig.program(
        "inner.apply(m.x, m.y); inner.apply(m.y, m.x);", local="Inner() inner;", top=top
    )
    assert section(program, "ingress") == [
        "key = meta.x",
        "apply In.inner.t",
        "meta.y = result",
        "key = meta.y",
        "apply In.inner.t",
        "meta.x = result",
    ]
    assert section(program, "table In.inner.t")[:3] == [
        "key key: exact = key",
        "action 0 In.inner.set(bit<8> v)",
        "  result = (v + key)",
    ]


def test_an_unnamed_instance_has_its_types_name(rig: Rig) -> None:
    top = "control Inner() { register<bit<8>>(2) r; apply { r.write(0, 1); } }"
    program = rig.program("Inner.apply();", top=top)
    assert section(program, "ingress") == ["In.Inner.r[32w0] = 8w1"]


# --- statements --------------------------------------------------------------------------------


def test_a_switch_on_a_value(rig: Rig) -> None:
    body = """
        switch (hdr.a.x) {
            1:
            2: { m.x = 1; }
            3: { }
            default: { m.x = 2; }
        }
    """
    assert rig.ingress(body) == [
        "switch hdr.a.x",
        "  case 1, 2",
        "    meta.x = 8w1",
        "  case 3",
        "  default",
        "    meta.x = 8w2",
    ]


def test_a_constant_condition_leaves_one_branch(rig: Rig) -> None:
    assert rig.ingress("if (1 == 2) { m.x = 1; } else { m.x = 2; }") == ["meta.x = 8w2"]


def test_an_empty_then_branch_becomes_a_negated_condition(rig: Rig) -> None:
    assert rig.ingress("if (m.flag) { } else { m.x = 2; }") == ["if !meta.flag", "  meta.x = 8w2"]
