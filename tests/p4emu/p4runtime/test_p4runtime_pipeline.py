"""Sending programs to a running switch, and asking which one it runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from p4.v1 import p4runtime_pb2 as p4rt
from p4runtime_rig import OBJECTS, Client, Config, Names, lpm

import p4emu
from p4emu.p4runtime import Server, make_bundle

Kind = p4rt.GetForwardingPipelineConfigRequest
SOURCE = OBJECTS.read_text()
# The same but for one name.
OTHER = SOURCE.replace("lpm_table", "routes").encode()


@pytest.fixture
def empty() -> Iterator[Client]:
    """A primary client of a switch without a program."""
    with p4emu.Switch(None) as switch:
        server = Server(switch, "127.0.0.1:0")
        with Client(server.start()) as client:
            client.arbitrate()
            yield client
        server.stop()


@pytest.fixture
def p4info(program: p4emu.Program) -> Any:
    return program.p4info


def _refused(call: Any, *args: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call(*args)
    return caught.value.code(), caught.value.details()


def test_a_switch_without_a_program_says_so_until_one_is_committed(
    empty: Client, p4info: Any, names: Names
) -> None:
    for call, args in [
        (empty.get_pipeline, ()),
        (empty.read, (names.entry("I.lpm_table"),)),
        (empty.insert, (names.entry("I.lpm_table"),)),
    ]:
        code, message = _refused(call, *args)
        assert code == grpc.StatusCode.FAILED_PRECONDITION
        assert "SetForwardingPipelineConfig" in message
    empty.set_pipeline(Config.VERIFY_AND_COMMIT, p4info, OBJECTS.read_bytes())
    assert empty.get_pipeline().p4info == p4info
    assert len(empty.read(names.entry("I.const_table"))) == 2


def test_the_config_comes_back_in_the_parts_asked_for(client: Client, p4info: Any) -> None:
    client.set_pipeline(Config.VERIFY_AND_COMMIT, p4info, OBJECTS.read_bytes())
    config = OBJECTS.read_bytes()
    for kind, has_info, has_config in [
        (Kind.ALL, True, True),
        (Kind.COOKIE_ONLY, False, False),
        (Kind.P4INFO_AND_COOKIE, True, False),
        (Kind.DEVICE_CONFIG_AND_COOKIE, False, True),
    ]:
        answer = client.get_pipeline(kind)
        assert answer.cookie.cookie == 77
        assert answer.HasField("p4info") == has_info
        assert answer.p4_device_config == (config if has_config else b"")
    assert _refused(client.get_pipeline, 9)[0] == grpc.StatusCode.INVALID_ARGUMENT


def test_the_program_a_switch_started_with_is_told(client: Client, p4info: Any) -> None:
    answer = client.get_pipeline()
    assert (answer.p4info, answer.p4_device_config) == (p4info, OBJECTS.read_bytes())
    assert not answer.HasField("cookie")


def test_commit_begins_with_empty_tables_and_keeps_ports(
    client: Client, names: Names, p4info: Any, switch: p4emu.Switch
) -> None:
    bound = switch.add_port(1, "udp:127.0.0.1:0")
    entry = names.entry("I.lpm_table", lpm(1, b"\x0a\0\0\0", 8), action=names.action("I.drop"))
    client.insert(entry)
    client.set_pipeline(Config.VERIFY, p4info, OBJECTS.read_bytes())
    assert client.read(names.entry("I.lpm_table")) == [entry]  # verifying changes nothing
    client.set_pipeline(Config.VERIFY_AND_COMMIT, p4info, OBJECTS.read_bytes())
    assert client.read(names.entry("I.lpm_table")) == []
    assert switch.ports()[1].address == bound


def test_a_saved_program_runs_when_it_is_committed(
    client: Client, names: Names, p4info: Any, tmp_path: Any
) -> None:
    (tmp_path / "other.p4").write_bytes(OTHER)
    other, config = make_bundle(tmp_path / "other.p4")
    entry = names.entry("I.lpm_table", action=names.action("I.drop"))
    client.set_pipeline(Config.VERIFY_AND_SAVE, other, config)
    assert client.get_pipeline().p4info == p4info
    assert client.read(names.entry("I.lpm_table")) == []
    code, message = _refused(client.insert, entry)
    assert (code, "COMMIT" in message) == (grpc.StatusCode.FAILED_PRECONDITION, True)
    assert _refused(client.set_pipeline, Config.COMMIT, other)[0] == (
        grpc.StatusCode.INVALID_ARGUMENT
    )
    client.set_pipeline(Config.COMMIT)
    assert client.get_pipeline().p4info == other
    assert client.read(Names(other).entry("I.routes")) == []
    assert _refused(client.set_pipeline, Config.COMMIT)[0] == grpc.StatusCode.FAILED_PRECONDITION


def test_reconciling_commits_only_where_nothing_is_lost(empty: Client, p4info: Any) -> None:
    empty.set_pipeline(Config.RECONCILE_AND_COMMIT, p4info, OBJECTS.read_bytes())
    assert empty.get_pipeline().p4info == p4info
    code, message = _refused(
        empty.set_pipeline, Config.RECONCILE_AND_COMMIT, p4info, OBJECTS.read_bytes()
    )
    assert (code, "VERIFY_AND_COMMIT" in message) == (grpc.StatusCode.UNIMPLEMENTED, True)


def test_a_program_with_errors_is_refused_with_the_compilers_message(
    client: Client, p4info: Any, names: Names
) -> None:
    wrong = SOURCE.replace("hdr.key.small: exact", "hdr.key.smell: exact").encode()
    code, message = _refused(client.set_pipeline, Config.VERIFY_AND_COMMIT, p4info, wrong)
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    line = wrong[: wrong.index(b"smell")].count(b"\n") + 1
    assert f"\nprogram.p4:{line}:" in message
    assert "^" in message
    assert len(client.read(names.entry("I.const_table"))) == 2  # the old one goes on


@pytest.mark.parametrize("quoted", ['"{}"', "<{}>"])
def test_a_program_cannot_include_files_of_the_switchs_machine(
    client: Client, p4info: Any, tmp_path: Path, quoted: str
) -> None:
    """Otherwise compiler messages, which show lines, would let clients read them."""
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret\n")
    for name in (secret, f"../../../../../../../../..{secret}", tmp_path / "no such file"):
        text = f"#include {quoted.format(name)}\n{SOURCE}"
        code, message = _refused(client.set_pipeline, Config.VERIFY, p4info, text.encode())
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert f"program.p4:1:2: error: file '{name}' not found" in message
        assert "the secret" not in message


def test_a_program_too_large_for_the_machine_is_refused_and_the_old_one_goes_on(
    client: Client, names: Names, p4info: Any
) -> None:
    # Half a TiB; a P4Info need not have all objects of the program.
    declared = SOURCE.replace("register<bit<20>>", "register<bit<2048>>(2000000000) huge;\n    "
                              "register<bit<20>>")  # fmt: skip
    huge = declared.replace("only_packets.count", "huge.write(0, 0);\n        only_packets.count")
    code, message = _refused(client.set_pipeline, Config.VERIFY_AND_COMMIT, p4info, huge.encode())
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED, message
    assert "less than the program's registers and counters (476.8 GiB) need" in message, message
    registers = SOURCE.replace("register<bit<20>>(16)", "register<bit<20>>(4000000000)").encode()
    code, message = _refused(client.set_pipeline, Config.VERIFY_AND_COMMIT, p4info, registers)
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "error: a size must be at most 2147483647, not 4000000000" in message
    assert len(client.read(names.entry("I.const_table"))) == 2


def test_a_p4info_of_another_program_is_refused(client: Client, p4info: Any) -> None:
    code, message = _refused(client.set_pipeline, Config.VERIFY, p4info, OTHER)
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "has the table I.lpm_table, the program does not" in message
    wider = SOURCE.replace("bit<12> small", "bit<16> small").replace("bit<4> nib", "bit<8> nib")
    code, message = _refused(client.set_pipeline, Config.VERIFY, p4info, wider.encode())
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "hdr.key.small: 12 bit exact" in message
    assert "hdr.key.small: 16 bit exact" in message


def test_ids_are_the_clients_p4infos(client: Client, p4info: Any, names: Names) -> None:
    renumbered = p4info.__class__()
    renumbered.CopyFrom(p4info)
    (table,) = (t for t in renumbered.tables if t.preamble.name == "I.lpm_table")
    table.preamble.id = 0x02000001
    client.set_pipeline(Config.VERIFY_AND_COMMIT, renumbered, OBJECTS.read_bytes())
    entry = p4rt.Entity()
    entry.CopyFrom(names.entry("I.lpm_table", action=names.action("I.drop")))
    entry.table_entry.table_id = 0x02000001
    client.insert(entry)
    assert client.read(entry) == [entry]
    assert _refused(client.read, names.entry("I.lpm_table"))[0] == grpc.StatusCode.NOT_FOUND


def test_configs_that_are_incomplete_or_garbage_are_refused(client: Client, p4info: Any) -> None:
    no_kind = p4info.__class__()
    no_kind.CopyFrom(p4info)
    no_kind.tables[0].match_fields[0].match_type = 0
    twice = p4info.__class__()
    twice.CopyFrom(p4info)
    twice.tables[1].preamble.id = twice.tables[0].preamble.id
    no_action = p4info.__class__()
    no_action.CopyFrom(p4info)
    no_action.tables[0].action_refs[0].id = 99
    code = OBJECTS.read_bytes()
    for action, info, config in [
        (Config.UNSPECIFIED, p4info, code),
        (Config.VERIFY, None, b""),
        (Config.VERIFY, p4info, b""),
        (Config.VERIFY, p4info, b"\x00\xff" * 50),
        (Config.VERIFY, p4info, b"PK\x03\x04"),
        (Config.VERIFY, no_kind, code),
        (Config.VERIFY, twice, code),
    ]:
        found, message = _refused(client.set_pipeline, action, info, config)
        assert found == grpc.StatusCode.INVALID_ARGUMENT, message
    found, message = _refused(client.set_pipeline, Config.VERIFY, no_action, code)
    assert found == grpc.StatusCode.NOT_FOUND
    assert "0x63" in message


def test_only_the_primary_sets_programs(address: str, p4info: Any) -> None:
    with Client(address, 3) as backup:
        found, _ = _refused(backup.set_pipeline, Config.VERIFY, p4info, OBJECTS.read_bytes())
        assert found == grpc.StatusCode.PERMISSION_DENIED
