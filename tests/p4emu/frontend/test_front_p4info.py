"""P4Info: names, aliases, ids and fields as p4c gives them.

The ids expected here are those of p4c 1.2.5 for objects of the same names.
"""

from __future__ import annotations

from front_rig import accepted, in_control

from p4emu.p4info import p4info
from p4emu.p4info_symbols import Symbols, one_at_a_time


def test_ids_are_p4c_s() -> None:
    symbols = Symbols()
    names = [
        (2, "ingress.m_filter", 40244407),
        (2, "ingress.m_table", 43296733),
        (1, "NoAction", 21257015),
        (22, "r", 369183714),
        (18, "cIngress.E.c1.stats", 314274935),
        (2, "ingressImpl.c1.t2", 43840731),
    ]
    for prefix, name, _ in names:
        symbols.add(prefix, name)
    assert [symbols.id(prefix, name) for prefix, name, _ in names] == [i for _, _, i in names]


def test_colliding_names_get_different_ids() -> None:
    # Found by search: two names with equal lower 24 bits of their hash.
    seen: dict[int, str] = {}
    for i in range(20_000):
        name = f"t{i}"
        other = seen.setdefault(one_at_a_time(name.encode()) & 0xFFFFFF, name)
        if other != name:
            break
    else:
        raise AssertionError("no collision among these names")
    symbols = Symbols()
    symbols.add(2, name)
    symbols.add(2, other)
    first, second = sorted((name, other))
    assert symbols.id(2, second) == symbols.id(2, first) + 1


def test_aliases_are_the_shortest_unique_suffixes() -> None:
    symbols = Symbols()
    for name in ("a.x.t", "a.y.t", "b", "a.u"):
        symbols.add(2, name)
    assert [symbols.alias(n) for n in ("a.x.t", "a.y.t", "b", "a.u")] == ["x.t", "y.t", "b", "u"]


def test_a_whole_program() -> None:
    program = accepted(
        in_control(
            "t.apply(); sub.apply(meta.wide); helper(1); digest<eth_t>(1, hdr.eth);"
            " c.count(0); r.write(0, 1);",
            """
            counter(16, CounterType.packets_and_bytes) c;
            @name("reg") register<int<32>>(64) r;
            direct_counter(CounterType.bytes) dc;
            meter(8, MeterType.packets) m;
            Sub(32) sub;
            action helper(bit<8> x) { meta.a = x; }
            action set(@id(7) bit<9> port, bool flag) { standard.egress_spec = port; }
            action unused(bit<8> x) {}
            @id(0x1234) table t {
                key = { hdr.eth.dst: exact; meta.wide: lpm @name("wide"); meta.a: ternary;
                        meta.s: range; hdr.eth.isValid(): exact; meta.wide[7:0]: optional; }
                actions = { set; @tableonly helper; }
                size = 64;
                counters = dc;
                support_timeout = true;
            }
            table never { actions = { unused; } }
            """,
        ).replace(
            "control I",
            "control Sub(inout bit<32> x)(bit<32> n) { register<bit<32>>(n) own;"
            " apply { own.read(x, 0); } }\ncontrol I",
        )
    )
    info = p4info(program)
    (table,) = info.tables
    assert (table.preamble.name, table.preamble.alias) == ("I.t", "t")
    assert table.preamble.id == 0x02001234
    assert [
        (m.id, m.name, m.bitwidth, m.MatchType.Name(m.match_type)) for m in table.match_fields
    ] == [
        (1, "hdr.eth.dst", 48, "EXACT"),
        (2, "wide", 32, "LPM"),
        (3, "meta.a", 8, "TERNARY"),
        (4, "meta.s", 8, "RANGE"),
        (5, "hdr.eth.$valid$", 1, "EXACT"),
        (6, "meta.wide[7:0]", 8, "OPTIONAL"),
    ]
    assert table.size == 64
    actions = {a.preamble.name: a for a in info.actions}
    assert set(actions) == {"I.set", "I.helper", "NoAction"}
    assert [(p.id, p.name, p.bitwidth) for p in actions["I.set"].params] == [
        (7, "port", 9),
        (2, "flag", 1),
    ]
    refs = {r.id: r for r in table.action_refs}
    assert (
        refs[actions["I.helper"].preamble.id].scope
        == refs[actions["I.helper"].preamble.id].TABLE_ONLY
    )
    no_action = refs[actions["NoAction"].preamble.id]
    assert no_action.scope == no_action.DEFAULT_ONLY
    assert list(no_action.annotations) == ["@defaultonly"]
    assert table.initial_default_action.action_id == no_action.id
    assert table.idle_timeout_behavior == table.NOTIFY_CONTROL
    (direct,) = info.direct_counters
    assert direct.direct_table_id == table.preamble.id
    assert list(table.direct_resource_ids) == [direct.preamble.id]
    assert direct.spec.Unit.Name(direct.spec.unit) == "BYTES"
    (counter,) = info.counters
    assert (counter.preamble.name, counter.size) == ("I.c", 16)
    assert counter.spec.Unit.Name(counter.spec.unit) == "BOTH"
    (meter,) = info.meters
    assert (meter.preamble.name, meter.size) == ("I.m", 8)
    registers = {r.preamble.name: r for r in info.registers}
    assert {name: r.size for name, r in registers.items()} == {"I.reg": 64, "I.sub.own": 32}
    assert registers["I.reg"].type_spec.bitstring.int.bitwidth == 32
    assert registers["I.sub.own"].preamble.alias == "own"
    (digest,) = info.digests
    assert digest.preamble.name == "eth_t"
    assert [m.name for m in info.type_info.headers["eth_t"].members] == ["dst", "src", "kind"]
    assert info.pkg_info.arch == "v1model"


def test_packet_io_headers_are_named_by_their_annotation() -> None:
    text = in_control("").replace(
        "struct headers_t",
        '@controller_header("packet_in") header pin_t { bit<9> port; @id(5) bit<7> pad; }\n'
        "struct headers_t { pin_t pin; }\nstruct unused_t",
    )
    (header,) = p4info(accepted(text)).controller_packet_metadata
    assert (header.preamble.name, header.preamble.alias) == ("packet_in", "packet_in")
    assert [(m.id, m.name, m.bitwidth) for m in header.metadata] == [(1, "port", 9), (5, "pad", 7)]


def test_translated_types_have_the_controllers_width() -> None:
    text = in_control("t.apply();", "table t { key = { meta.p: exact; } actions = { NoAction; } }")
    text = text.replace(
        "struct meta_t {",
        '@p4runtime_translation("uri", string) type bit<9> port_t;\nstruct meta_t { port_t p; ',
    )
    info = p4info(accepted(text))
    (field,) = info.tables[0].match_fields
    assert (field.bitwidth, field.type_name.name) == (0, "port_t")
    translated = info.type_info.new_types["port_t"].translated_type
    assert translated.uri == "uri"
    assert translated.HasField("sdn_string")


def test_a_program_without_a_pipeline_has_no_objects() -> None:
    assert not p4info(accepted("const bit<8> a = 1;")).ListFields()
