"""Table entries over P4Runtime: what a client writes it reads back, and what the switch does."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from p4.v1 import p4runtime_pb2 as p4rt
from p4runtime_rig import (
    Client,
    Names,
    Update,
    exact,
    lpm,
    optional,
    range_,
    ternary,
    update_errors,
)

import p4emu


def everything(names: Names, table: str) -> Any:
    return names.entry(table)


def refusal(client: Client, kind: int, entity: Any) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as caught:
        client.write((kind, entity))
    (error,) = update_errors(caught.value)
    return error


def test_entries_of_every_match_kind_are_read_back_as_written(client: Client, names: Names) -> None:
    forward = names.action("I.forward", b"\x03")
    entries = [
        names.entry("I.exact_table", exact(1, b"\x02\x00\x00\x00\x00\x01"), exact(2, b"\x0f\xff"),
                    action=names.action("I.rewrite", b"\x01", b"\x01\x00")),
        names.entry("I.lpm_table", lpm(1, b"\x0a\x01\x00\x00", 16), action=forward),
        names.entry("I.lpm_table", lpm(1, b"\x0a\x01\x02\x03", 32), action=forward),
        names.entry("I.lpm_table", action=forward),  # the prefix of length 0
        names.entry("I.ternary_table", ternary(1, b"\x0a\x00\x00\x01", b"\xff\x00\x00\xff"),
                    range_(2, b"\x00", b"\x01\x00"), optional(3, b"\x00"),
                    action=forward, priority=7),
        names.entry("I.ternary_table", action=forward, priority=1),  # matches everything
    ]  # fmt: skip
    client.insert(*entries)
    for table in ("I.exact_table", "I.lpm_table", "I.ternary_table"):
        table_id = names[table]
        written = [e for e in entries if e.table_entry.table_id == table_id]
        found = client.read(everything(names, table))
        assert sorted(map(str, found)) == sorted(map(str, written))
    # All tables at once: also those that the program has by itself.
    own = client.read(everything(names, "I.const_table"))
    assert len(own) == 2
    assert all(e.table_entry.is_const for e in own)
    all_found = client.read(p4rt.Entity(table_entry=p4rt.TableEntry()))
    assert sorted(map(str, all_found)) == sorted(map(str, entries + own))


def test_byte_strings_with_leading_zeros_are_understood_and_answered_in_canonical_form(
    client: Client, names: Names
) -> None:
    client.insert(
        names.entry(
            "I.exact_table",
            exact(1, bytes(8) + b"\x01"),
            exact(2, b"\x00\x05"),
            action=names.action("I.forward", b"\x00\x00\x09"),
        )
    )
    (found,) = client.read(everything(names, "I.exact_table"))
    assert [m.exact.value for m in found.table_entry.match] == [b"\x01", b"\x05"]
    assert found.table_entry.action.action.params[0].value == b"\x09"


def test_an_entry_decides_where_frames_go_until_it_is_modified_and_deleted(
    client: Client, names: Names, switch: p4emu.Switch
) -> None:
    frame = bytes.fromhex("02000000000102000000000208000a00000100510007")

    def out() -> list[int]:
        return [port for port, _ in switch.process(1, frame)]

    def entry(port: int) -> Any:
        action = names.action("I.forward", bytes([port]))
        return names.entry(
            "I.exact_table", exact(1, b"\x02\0\0\0\0\x01"), exact(2, b"\x05"), action=action
        )

    # Nibble 1 of the key: the program's own table forwards to port 1.
    assert out() == [1]
    client.insert(entry(5))
    assert out() == [5]
    client.modify(entry(6))
    assert out() == [6]
    client.delete(entry(6))
    assert out() == [1]


def test_a_read_can_ask_for_one_entry_a_priority_or_an_action(client: Client, names: Names) -> None:
    forward, drop = names.action("I.forward", b"\x01"), names.action("I.drop")
    one = names.entry("I.ternary_table", optional(3, b"\x01"), action=forward, priority=1)
    two = names.entry("I.ternary_table", optional(3, b"\x01"), action=drop, priority=2)
    three = names.entry("I.ternary_table", optional(3, b"\x02"), action=forward, priority=2)
    client.insert(one, two, three)

    def found(*matches: Any, **fields: Any) -> list[str]:
        return sorted(map(str, client.read(names.entry("I.ternary_table", *matches, **fields))))

    assert found(optional(3, b"\x01")) == sorted(map(str, [one, two]))
    assert found(optional(3, b"\x01"), priority=2) == [str(two)]
    assert found(priority=2) == sorted(map(str, [two, three]))
    assert found(action=drop) == [str(two)]
    assert found(optional(3, b"\x07")) == []


def test_metadata_comes_back_and_goes_with_its_entry(client: Client, names: Names) -> None:
    entry = names.entry("I.lpm_table", lpm(1, b"\x0a\x00\x00\x00", 8),
                        action=names.action("I.drop"))  # fmt: skip
    plain = p4rt.Entity()
    plain.CopyFrom(entry)
    entry.table_entry.metadata = b"of the client"
    client.insert(entry)
    assert client.read(everything(names, "I.lpm_table")) == [entry]
    client.delete(plain)
    client.insert(plain)
    assert client.read(everything(names, "I.lpm_table")) == [plain]


def test_the_default_entry_is_modified_read_and_reset(client: Client, names: Names) -> None:
    wanted = names.entry("I.lpm_table")
    wanted.table_entry.is_default_action = True
    (initial,) = client.read(wanted)
    assert initial.table_entry.action == names.action("I.drop")

    changed = names.entry("I.exact_table", action=names.action("I.forward", b"\x04"))
    changed.table_entry.is_default_action = True
    client.modify(changed)
    asked = names.entry("I.exact_table")
    asked.table_entry.is_default_action = True
    assert client.read(asked) == [changed]
    assert client.read(names.entry("I.exact_table")) == []

    client.modify(asked)  # without an action: the program's own again
    (reset,) = client.read(asked)
    assert reset.table_entry.action == names.action("I.drop")


def test_direct_counters_are_read_and_set_with_their_entries(
    client: Client, names: Names, switch: p4emu.Switch
) -> None:
    entry = names.entry("I.exact_table", exact(1, b"\x01"), exact(2, b"\x00"),
                        action=names.action("I.forward", b"\x02"))  # fmt: skip
    client.insert(entry)
    frame = bytes.fromhex("00000000000102000000000208000a00000100000007")
    for _ in range(3):
        switch.process(1, frame)

    asked = p4rt.Entity()
    asked.direct_counter_entry.table_entry.table_id = names["I.exact_table"]
    (found,) = client.read(asked)
    counted = found.direct_counter_entry
    assert counted.table_entry.match == entry.table_entry.match
    assert (counted.data.packet_count, counted.data.byte_count) == (3, 3 * len(frame))
    assert client.read(p4rt.Entity(direct_counter_entry=p4rt.DirectCounterEntry())) == [found]

    found.direct_counter_entry.data.packet_count = 100
    client.modify(found)
    with_counts = names.entry("I.exact_table")
    with_counts.table_entry.counter_data.SetInParent()
    (read,) = client.read(with_counts)
    assert read.table_entry.counter_data.packet_count == 100
    (without,) = client.read(names.entry("I.exact_table"))
    assert not without.table_entry.HasField("counter_data")


def test_an_unknown_table_is_not_found_and_the_message_lists_the_tables(
    client: Client, names: Names
) -> None:
    entity = p4rt.Entity()
    entity.table_entry.table_id = 0x02ABCDEF
    code, message = refusal(client, Update.INSERT, entity)
    assert code == "NOT_FOUND"
    assert "0x2abcdef" in message
    assert f"I.lpm_table ({names['I.lpm_table']:#x})" in message
    with pytest.raises(grpc.RpcError) as caught:
        client.read(entity)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    assert "0x2abcdef" in caught.value.details()


def test_each_update_has_its_own_outcome_and_the_good_ones_are_applied(
    client: Client, names: Names
) -> None:
    good = names.entry("I.lpm_table", lpm(1, b"\x0a\x00\x00\x00", 8),
                       action=names.action("I.drop"))  # fmt: skip
    bad = p4rt.Entity()
    bad.table_entry.table_id = 1
    with pytest.raises(grpc.RpcError) as caught:
        client.insert(bad, good, good)
    errors = update_errors(caught.value)
    assert [code for code, _ in errors] == ["NOT_FOUND", "OK", "ALREADY_EXISTS"]
    assert client.read(everything(names, "I.lpm_table")) == [good]
    assert caught.value.details().startswith("2 of 3 updates failed; update 0: NOT_FOUND")


def test_a_batch_too_large_for_its_errors_says_which_failed_first(
    client: Client, names: Names
) -> None:
    entities = [p4rt.Entity(table_entry=p4rt.TableEntry(table_id=i + 1)) for i in range(2000)]
    with pytest.raises(grpc.RpcError) as caught:
        client.insert(*entities)
    assert "2000 of 2000 updates failed" in caught.value.details()
    assert "update 0: NOT_FOUND" in caught.value.details()
    errors = update_errors(caught.value)
    assert 0 < len(errors) < 2000
    assert {code for code, _ in errors} == {"NOT_FOUND"}


def test_a_full_table_and_missing_entries_are_told_apart(client: Client, names: Names) -> None:
    forward = names.action("I.forward", b"\x01")
    entries = [names.entry("I.exact_table", exact(1, bytes([i])), exact(2, b"\x00"), action=forward)
               for i in range(5)]  # fmt: skip
    client.insert(*entries[:3])
    assert refusal(client, Update.INSERT, entries[0])[0] == "ALREADY_EXISTS"
    client.insert(entries[3])
    assert refusal(client, Update.INSERT, entries[4])[0] == "RESOURCE_EXHAUSTED"
    assert refusal(client, Update.MODIFY, entries[4])[0] == "NOT_FOUND"
    assert refusal(client, Update.DELETE, entries[4])[0] == "NOT_FOUND"


FORWARD = ("I.forward", b"\x01")
KEY = (exact(1, b"\x01"), exact(2, b"\x01"))


@pytest.mark.parametrize(
    ("code", "table", "matches", "priority", "action"),
    [
        ("INVALID_ARGUMENT", "I.exact_table", KEY[:1], 0, FORWARD),
        ("INVALID_ARGUMENT", "I.exact_table", (*KEY, KEY[0]), 0, FORWARD),
        ("INVALID_ARGUMENT", "I.exact_table", (*KEY, exact(3, b"\x01")), 0, FORWARD),
        ("INVALID_ARGUMENT", "I.exact_table", KEY, 1, FORWARD),
        ("INVALID_ARGUMENT", "I.exact_table", KEY, 0, None),
        ("INVALID_ARGUMENT", "I.exact_table", KEY, 0, ("I.forward",)),
        ("INVALID_ARGUMENT", "I.exact_table", KEY, 0, ("I.forward", b"\x01", b"\x01")),
        ("INVALID_ARGUMENT", "I.exact_table", KEY, 0, ("I.forward", b"")),
        ("OUT_OF_RANGE", "I.exact_table", KEY, 0, ("I.forward", b"\x02\x00")),
        ("OUT_OF_RANGE", "I.exact_table", (KEY[0], exact(2, b"\x10\x00")), 0, FORWARD),
        ("INVALID_ARGUMENT", "I.exact_table", (KEY[0], exact(2, b"")), 0, FORWARD),
        ("INVALID_ARGUMENT", "I.exact_table", (lpm(1, b"\x01", 48), KEY[1]), 0, FORWARD),
        ("PERMISSION_DENIED", "I.exact_table", KEY, 0, ("I.drop",)),
        ("INVALID_ARGUMENT", "I.lpm_table", (), 0, ("I.multicast", b"\x01")),
        ("INVALID_ARGUMENT", "I.lpm_table", (lpm(1, b"\x01", 31),), 0, ("I.drop",)),
        ("INVALID_ARGUMENT", "I.lpm_table", (lpm(1, b"\x00", 0),), 0, ("I.drop",)),
        ("INVALID_ARGUMENT", "I.lpm_table", (lpm(1, b"\x00", 33),), 0, ("I.drop",)),
        ("INVALID_ARGUMENT", "I.lpm_table", (lpm(1, b"\x00", -1),), 0, ("I.drop",)),
        ("INVALID_ARGUMENT", "I.lpm_table", (p4rt.FieldMatch(field_id=1),), 0, ("I.drop",)),
        ("INVALID_ARGUMENT", "I.ternary_table", (), 0, ("I.drop",)),
        ("INVALID_ARGUMENT", "I.ternary_table", (), -1, ("I.drop",)),
        ("INVALID_ARGUMENT", "I.ternary_table", (ternary(1, b"\x01", b"\x00"),), 1, ("I.drop",)),
        ("INVALID_ARGUMENT", "I.ternary_table", (ternary(1, b"\x01", b"\x02"),), 1, ("I.drop",)),
        ("INVALID_ARGUMENT", "I.ternary_table", (range_(2, b"\x02", b"\x01"),), 1, ("I.drop",)),
        ("INVALID_ARGUMENT", "I.ternary_table", (range_(2, b"\x00", b"\xff\xff"),), 1, ("I.drop",)),
        ("PERMISSION_DENIED", "I.const_table", (exact(1, b"\x03"),), 0, ("I.forward", b"\x01")),
    ],
)  # fmt: skip
def test_what_the_specification_forbids_is_refused(
    client: Client,
    names: Names,
    code: str,
    table: str,
    matches: tuple[Any, ...],
    priority: int,
    action: tuple[Any, ...] | None,
) -> None:
    before = client.read(everything(names, table))
    entity = names.entry(table, *matches, priority=priority,
                         action=names.action(*action) if action else None)  # fmt: skip
    found, message = refusal(client, Update.INSERT, entity)
    assert found == code, message
    assert client.read(everything(names, table)) == before


def test_default_entries_have_rules_of_their_own(client: Client, names: Names) -> None:
    def default(table: str, action: Any, **fields: Any) -> Any:
        entity = names.entry(table, action=action, **fields)
        entity.table_entry.is_default_action = True
        return entity

    drop = names.action("I.drop")
    assert refusal(client, Update.INSERT, default("I.lpm_table", drop))[0] == "INVALID_ARGUMENT"
    assert refusal(client, Update.DELETE, default("I.lpm_table", drop))[0] == "INVALID_ARGUMENT"
    entity = default("I.lpm_table", drop, priority=1)
    assert refusal(client, Update.MODIFY, entity)[0] == "INVALID_ARGUMENT"
    entity = default("I.ternary_table", names.action("I.forward", b"\x01"))
    assert refusal(client, Update.MODIFY, entity)[0] == "PERMISSION_DENIED"
    entity = default("I.lpm_table", names.action("I.forward", b"\x01"))
    assert refusal(client, Update.MODIFY, entity) == (
        "PERMISSION_DENIED",
        "table I.lpm_table: the program allows I.forward only in entries",
    )


def test_actions_the_program_does_not_have_are_not_found(client: Client, names: Names) -> None:
    entity = names.entry("I.lpm_table", action=names.action("I.drop"))
    entity.table_entry.action.action.action_id = 5
    code, message = refusal(client, Update.INSERT, entity)
    assert code == "NOT_FOUND"
    assert "I.drop" in message
