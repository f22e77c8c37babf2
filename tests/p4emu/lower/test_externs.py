"""Externs of v1model: what they become, and that none is ignored in silence."""

from __future__ import annotations

import pytest
from lower_rig import Rig, section

from p4emu.frontend.diagnostics import CompileError


def test_register_read_and_write(rig: Rig) -> None:
    local = "register<bit<8>>(4) r; register<bit<16>>(4) wide;"
    body = """
        r.read(m.x, (bit<32>)hdr.a.x);
        r.write(1, m.x + 1);
        wide.read(m.z, 0);
        r.read(m.z[7:0], 2);
    """
    assert rig.ingress(body, local=local) == [
        "meta.x = In.r[(bit<32>)hdr.a.x]",
        "In.r[32w1] = (meta.x + 8w1)",
        "meta.z = In.wide[32w0]",
        "element = In.r[32w2]",
        "meta.z[7:0] = element",
    ]


def test_counters(rig: Rig) -> None:
    program = rig.program(
        "c.count((bit<32>)hdr.a.x);", local="counter(8, CounterType.packets_and_bytes) c;"
    )
    assert section(program, "ingress") == ["count In.c[(bit<32>)hdr.a.x]"]
    (counter,) = program.counters
    assert (counter.kind, counter.size, counter.table) == ("packets_and_bytes", 8, None)


def test_mark_to_drop(rig: Rig) -> None:
    assert rig.ingress("mark_to_drop(standard_metadata);") == [
        "standard_metadata.egress_spec = 9w0x1ff",
        "standard_metadata.mcast_grp = 16w0",
    ]


def test_a_hash_within_a_power_of_two_needs_no_division(rig: Rig) -> None:
    body = "hash(m.x, HashAlgorithm.crc16, 8w2, {hdr.a.x, hdr.a.z}, 8w16);"
    assert rig.ingress(body) == [
        "hash = crc16(hdr.a.x, hdr.a.z)",
        "meta.x = (bit<8>)(16w2 + (hash & 16w0xf))",
    ]


def test_a_hash_within_a_variable_limit_never_divides_by_zero(rig: Rig) -> None:
    body = "hash(m.z, HashAlgorithm.crc32, 16w0, {hdr.a.x}, m.z);"
    assert rig.ingress(body) == [
        "hash = crc32(hdr.a.x)",
        "max = meta.z",
        "meta.z = (bit<16>)(32w0 + (hash % (((bit<32>)max == 32w0) ? 32w1 : (bit<32>)max)))",
    ]


def test_checksums(rig: Rig) -> None:
    verify = """
        control V(inout headers_t hdr, inout metadata_t m) {
            apply {
                verify_checksum(hdr.a.isValid(), {hdr.a.x, hdr.a.y}, hdr.a.z, HashAlgorithm.csum16);
            }
        }
    """
    compute = """
        control C(inout headers_t hdr, inout metadata_t m) {
            apply {
                update_checksum(true, {hdr.a.x, 8w0}, hdr.a.z, HashAlgorithm.csum16);
            }
        }
    """
    program = rig.program(verify=verify, compute=compute)
    assert section(program, "verify") == [
        "if hdr.a.$valid",
        "  checksum = csum16(hdr.a.x, hdr.a.y)",
        "  if (checksum != hdr.a.z)",
        "    standard_metadata.checksum_error = 1w1",
    ]
    assert section(program, "compute") == [
        "checksum~2 = csum16(hdr.a.x, 8w0)",
        "hdr.a.z = checksum~2",
    ]


def test_the_deparser_emits_the_headers_of_a_struct_in_order(rig: Rig) -> None:
    assert section(rig.program(), "deparser") == ["emit hdr.a", "emit hdr.b"]


def test_log_msg_and_assume_do_nothing(rig: Rig) -> None:
    assert rig.ingress('log_msg("x = {}", {m.x}); assume(m.x == 1);') == []


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("random(m.x, 8w0, 8w7);", "random"),
        ("truncate(32w64);", "truncate"),
        ("clone(CloneType.I2E, 32w5);", "clone"),
        ("resubmit_preserving_field_list(8w1);", "resubmit_preserving_field_list"),
        ("recirculate_preserving_field_list(8w1);", "recirculate_preserving_field_list"),
        ("digest<metadata_t>(1, m);", "digest"),
        ("assert(m.x == 1);", "assert"),
        ("meter(4, MeterType.bytes) mm;", "meter"),
    ],
)
def test_externs_without_support_are_refused_by_name(rig: Rig, statement: str, name: str) -> None:
    local, body = (statement, "") if name == "meter" else ("", statement)
    with pytest.raises(CompileError) as caught:
        rig.program(body, local=local)
    (found,) = caught.value.diagnostics
    assert f"`{name}` is not supported yet" in found.message
    assert found.source.file.endswith("test.p4")
    assert statement.split("(")[0] in found.line


def test_checksums_over_the_payload_are_refused(rig: Rig) -> None:
    compute = """
        control C(inout headers_t hdr, inout metadata_t m) {
            apply {
                update_checksum_with_payload(true, {hdr.a.x}, hdr.a.z, HashAlgorithm.csum16);
            }
        }
    """
    with pytest.raises(CompileError, match="`update_checksum_with_payload` is not supported yet"):
        rig.program(compute=compute)
