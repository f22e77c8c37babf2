"""Table entries and direct counters: messages to the switch's entries, and back.

P4Runtime Specification, sections 9.1 and 9.4. `decode_*` refuse what the specification forbids, in
the client's terms (ids, field names); what depends on the table's contents the switch refuses.
What encode makes, decode takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2 as p4rt

from p4emu.entries import Match, TableEntry
from p4emu.errors import SwitchError
from p4emu.p4runtime.schema import ActionInfo, CounterInfo, FieldInfo, Schema, TableInfo
from p4emu.p4runtime.target import Target
from p4emu.p4runtime.values import decode, encode
from p4emu.switch import CounterValue

_Key = tuple[tuple[Match, ...], int]


def write_table_entry(target: Target, kind: int, message: Any) -> None:
    """INSERT, MODIFY or DELETE an entry, or MODIFY the default one."""
    table = target.schema.table(message.table_id)
    _refuse_unsupported(table, message)
    if message.is_default_action:
        _write_default(target, kind, table, message)
        return
    keys, priority = decode_key(table, message)
    note = (table.name, keys, priority)
    if kind == p4rt.Update.DELETE:
        target.switch.delete(table.name, keys, priority)
        target.notes.pop(note, None)
        return
    action, params = decode_action(target.schema, table, message, default=False)
    entry = TableEntry(keys, action, params, priority)
    counts = None
    if message.HasField("counter_data"):
        _require_counter(table)
        counts = decode_counts(message.counter_data)
    if kind == p4rt.Update.INSERT:
        target.switch.insert(table.name, entry)
    else:
        target.switch.modify(table.name, entry)
    target.notes[note] = (message.controller_metadata, message.metadata)
    if counts is not None:
        target.switch.write_direct_counter(table.name, keys, priority, counts)


def read_table_entries(target: Target, message: Any) -> Iterator[Any]:
    """The entries a request asks for; unset fields are wildcards."""
    for table in _tables(target.schema, message.table_id):
        if message.is_default_action:
            if message.match or message.priority:
                raise SwitchError(
                    "INVALID_ARGUMENT", "the default entry has neither a match nor a priority"
                )
            entity = _encode_default(target, table)
            if entity is not None:
                yield entity
            continue
        for entry in _entries(target, table, message):
            entity = encode_entry(target, table, entry)
            if not _action_agrees(message, entity.table_entry):
                continue
            if message.HasField("counter_data") and table.counter is not None:
                value = target.switch.read_direct_counter(table.name, entry.keys, entry.priority)
                entity.table_entry.counter_data.CopyFrom(encode_counts(table.counter, value))
            yield entity


def write_direct_counter(target: Target, kind: int, message: Any) -> None:
    """MODIFY the counts of an entry."""
    require_modify(kind, "a direct counter entry")
    table = target.schema.table(message.table_entry.table_id)
    _require_counter(table)
    keys, priority = decode_key(table, message.table_entry)
    value = decode_counts(message.data)
    target.switch.write_direct_counter(table.name, keys, priority, value)


def read_direct_counters(target: Target, message: Any) -> Iterator[Any]:
    """The counts of the entries a request asks for."""
    wanted = message.table_entry
    for table in _tables(target.schema, wanted.table_id):
        if wanted.table_id:
            _require_counter(table)
        if table.counter is None:
            continue
        for entry in _entries(target, table, wanted):
            value = target.switch.read_direct_counter(table.name, entry.keys, entry.priority)
            entity = p4rt.Entity()
            answer = entity.direct_counter_entry
            answer.table_entry.table_id = table.id
            _encode_key(table, entry, answer.table_entry)
            answer.data.CopyFrom(encode_counts(table.counter, value))
            yield entity


# --- keys ----------------------------------------------------------------------------------------


def decode_key(table: TableInfo, message: Any) -> _Key:
    """The matches of a `TableEntry`, one for each field of the key in order, and its priority."""
    given: dict[int, Any] = {}
    known = {field.id for field in table.fields}
    for match in message.match:
        if match.field_id not in known:
            has = ", ".join(f"{field.name} ({field.id})" for field in table.fields)
            raise SwitchError(
                "INVALID_ARGUMENT",
                f"table {table.name} has no key field {match.field_id}; it has {has or 'none'}",
            )
        if match.field_id in given:
            raise SwitchError(
                "INVALID_ARGUMENT", f"table {table.name}: key field {match.field_id} is given twice"
            )
        given[match.field_id] = match
    keys = tuple(_decode_match(table, field, given.get(field.id)) for field in table.fields)
    if table.takes_priority and message.priority <= 0:
        raise SwitchError(
            "INVALID_ARGUMENT",
            f"entries of table {table.name} need a priority above 0, got {message.priority}: its "
            "key has ternary, range or optional fields",
        )
    if not table.takes_priority and message.priority:
        raise SwitchError(
            "INVALID_ARGUMENT",
            f"entries of table {table.name} take no priority, got {message.priority}: its key has "
            "exact and LPM fields only",
        )
    return keys, message.priority


def _decode_match(table: TableInfo, field: FieldInfo, message: Any | None) -> Match:
    what = f"table {table.name}, key {field.name}"
    ones = (1 << field.width) - 1
    if message is None:
        if field.kind == "exact":
            raise SwitchError("INVALID_ARGUMENT", f"{what}: an exact field cannot be left out")
        return Match(0, ones if field.kind == "range" else 0)
    found = message.WhichOneof("field_match_type")
    if found != field.kind:
        raise SwitchError(
            "INVALID_ARGUMENT", f"{what} is matched as {field.kind}, got {found or 'nothing'}"
        )
    if found == "exact":
        return Match(decode(message.exact.value, field.width, what))
    if found == "optional":
        return Match(decode(message.optional.value, field.width, what), ones)
    if found == "range":
        low = decode(message.range.low, field.width, what)
        high = decode(message.range.high, field.width, what)
        if low > high:
            raise SwitchError("INVALID_ARGUMENT", f"{what}: the range {low}..{high} is empty")
        if (low, high) == (0, ones):
            raise SwitchError("INVALID_ARGUMENT", f"{what}: leave out a range that is all values")
        return Match(low, high)
    if found == "lpm":
        value = decode(message.lpm.value, field.width, what)
        length = message.lpm.prefix_len
        if not 0 < length <= field.width:
            raise SwitchError(
                "INVALID_ARGUMENT",
                f"{what}: a prefix has 1 to {field.width} bits, got {length}; leave the field out "
                "to match everything",
            )
        mask = ones ^ (ones >> length)
    else:
        value = decode(message.ternary.value, field.width, what)
        mask = decode(message.ternary.mask, field.width, what)
        if mask == 0:
            raise SwitchError("INVALID_ARGUMENT", f"{what}: leave out a field with mask 0")
    if value & ~mask:
        raise SwitchError(
            "INVALID_ARGUMENT", f"{what}: {value:#x} has bits outside of the mask {mask:#x}"
        )
    return Match(value, mask)


def _encode_key(table: TableInfo, entry: TableEntry, message: Any) -> None:
    for field, match in zip(table.fields, entry.keys, strict=True):
        ones = (1 << field.width) - 1
        mask = ones if match.mask is None else match.mask
        everything = (match.value, mask) == (0, ones) if field.kind == "range" else mask == 0
        if field.kind != "exact" and everything:
            continue
        out = message.match.add(field_id=field.id)
        if field.kind == "exact":
            out.exact.value = encode(match.value)
        elif field.kind == "optional":
            out.optional.value = encode(match.value)
        elif field.kind == "range":
            out.range.low, out.range.high = encode(match.value), encode(mask)
        elif field.kind == "lpm":
            out.lpm.value, out.lpm.prefix_len = encode(match.value & mask), mask.bit_count()
        else:
            out.ternary.value, out.ternary.mask = encode(match.value & mask), encode(mask)
    # The program's own entries have a priority in any table; clients know none without such fields.
    message.priority = entry.priority if table.takes_priority else 0


def _entries(target: Target, table: TableInfo, wanted: Any) -> list[TableEntry]:
    entries = target.switch.entries(table.name)
    if wanted.match:
        if wanted.priority or not table.takes_priority:
            keys, priority = decode_key(table, wanted)
        else:  # any priority: decoded with one that is allowed
            probe = p4rt.TableEntry(match=wanted.match, priority=1)
            keys, priority = decode_key(table, probe)[0], 0
        entries = [entry for entry in entries if _full(table, entry.keys) == _full(table, keys)]
    else:
        priority = wanted.priority
    return [entry for entry in entries if priority in (0, entry.priority)]


def _full(table: TableInfo, keys: tuple[Match, ...]) -> list[tuple[int, int]]:
    """Matches as comparable pairs: whether a mask of ones is written out makes no difference."""
    return [
        (match.value, (1 << field.width) - 1 if match.mask is None else match.mask)
        for field, match in zip(table.fields, keys, strict=True)
    ]


# --- actions -------------------------------------------------------------------------------------


def decode_action(
    schema: Schema, table: TableInfo, message: Any, *, default: bool
) -> tuple[str, dict[str, int]]:
    """Name and parameters of an entry's action."""
    kind = message.action.WhichOneof("type") if message.HasField("action") else None
    if kind is None:
        raise SwitchError("INVALID_ARGUMENT", f"the entry of table {table.name} has no action")
    if kind != "action":
        raise SwitchError("UNIMPLEMENTED", f"table {table.name}: {kind} is not supported")
    given = message.action.action
    action = schema.action(given.action_id)
    if action.id not in table.scopes:
        has = ", ".join(schema.action(number).name for number in table.scopes)
        raise SwitchError(
            "INVALID_ARGUMENT", f"table {table.name} has no action {action.name}; it has {has}"
        )
    refused = p4info_pb2.ActionRef.TABLE_ONLY if default else p4info_pb2.ActionRef.DEFAULT_ONLY
    if table.scopes[action.id] == refused:
        raise SwitchError(
            "PERMISSION_DENIED",
            f"table {table.name}: the program allows {action.name} only "
            f"{'in entries' if default else 'as the default action'}",
        )
    known = {param.id: param for param in action.params}
    params: dict[str, int] = {}
    for param in given.params:
        info = known.get(param.param_id)
        if info is None or info.name in params:
            raise SwitchError(
                "INVALID_ARGUMENT",
                f"action {action.name} {'has no' if info is None else 'got twice the'} parameter "
                f"{param.param_id}; it takes {_signature(action)}",
            )
        params[info.name] = decode(param.value, info.width, f"{action.name}({info.name})")
    if len(params) != len(action.params):
        missing = ", ".join(p.name for p in action.params if p.name not in params)
        raise SwitchError(
            "INVALID_ARGUMENT",
            f"action {action.name} takes {_signature(action)}; missing: {missing}",
        )
    return action.name, params


def _signature(action: ActionInfo) -> str:
    return f"({', '.join(f'{p.name} ({p.id}): bit<{p.width}>' for p in action.params)})"


def _encode_action(schema: Schema, name: str, params: Mapping[str, int], message: Any) -> None:
    action = schema.action_names[name]
    message.action_id = action.id
    for param in action.params:
        message.params.add(param_id=param.id, value=encode(params[param.name]))


def _action_agrees(wanted: Any, entry: Any) -> bool:
    """Whether an entry has the action a request asks for: by id, and by parameters if given."""
    if not wanted.HasField("action"):
        return True
    asked, found = wanted.action.action, entry.action.action
    return asked == found or (not asked.params and asked.action_id == found.action_id)


def encode_entry(target: Target, table: TableInfo, entry: TableEntry) -> Any:
    """The entity of an entry."""
    entity = p4rt.Entity()
    message = entity.table_entry
    message.table_id = table.id
    _encode_key(table, entry, message)
    _encode_action(target.schema, entry.action, entry.params, message.action.action)
    note = target.notes.get((table.name, entry.keys, entry.priority))
    if note is not None:
        message.controller_metadata, message.metadata = note
    message.is_const = table.is_const
    return entity


# --- default entries -----------------------------------------------------------------------------


def _write_default(target: Target, kind: int, table: TableInfo, message: Any) -> None:
    require_modify(kind, "the default entry")
    if message.match or message.priority:
        raise SwitchError(
            "INVALID_ARGUMENT", "the default entry has neither a match nor a priority"
        )
    if message.HasField("counter_data"):
        raise SwitchError("UNIMPLEMENTED", "counts of the default entry are not supported")
    if message.HasField("action"):
        action, params = decode_action(target.schema, table, message, default=True)
        target.switch.set_default(table.name, action, params)
    else:
        target.switch.reset_default(table.name)
    target.notes[(table.name, None, 0)] = (message.controller_metadata, message.metadata)


def _encode_default(target: Target, table: TableInfo) -> Any | None:
    name, params = target.switch.default(table.name)
    if name not in target.schema.action_names:
        return None  # NoAction where the program does not list it: what P4Info cannot name
    entity = p4rt.Entity()
    message = entity.table_entry
    message.table_id, message.is_default_action = table.id, True
    _encode_action(target.schema, name, params, message.action.action)
    note = target.notes.get((table.name, None, 0))
    if note is not None:
        message.controller_metadata, message.metadata = note
    return entity


# --- counts --------------------------------------------------------------------------------------


def decode_counts(message: Any) -> CounterValue:
    """A `CounterData`, whose counts are signed on the wire and never negative."""
    if message.packet_count < 0 or message.byte_count < 0:
        raise SwitchError(
            "INVALID_ARGUMENT",
            f"counts are not negative, got {message.packet_count} packets and "
            f"{message.byte_count} bytes",
        )
    return CounterValue(message.packet_count, message.byte_count)


def encode_counts(counter: CounterInfo, value: CounterValue) -> Any:
    """A `CounterData` with what the counter counts."""
    largest = (1 << 63) - 1
    return p4rt.CounterData(
        packet_count=min(value.packets, largest) if counter.packets else 0,
        byte_count=min(value.bytes, largest) if counter.bytes else 0,
    )


# --- what is refused -----------------------------------------------------------------------------


def require_modify(kind: int, what: str) -> None:
    """Refuse INSERT and DELETE of what is always there."""
    if kind != p4rt.Update.MODIFY:
        raise SwitchError(
            "INVALID_ARGUMENT",
            f"{what} can only be modified, got {p4rt.Update.Type.Name(kind)}",
        )


def _require_counter(table: TableInfo) -> None:
    if table.counter is None:
        raise SwitchError("INVALID_ARGUMENT", f"table {table.name} has no direct counter")


def _refuse_unsupported(table: TableInfo, message: Any) -> None:
    for field in ("meter_config", "meter_counter_data", "time_since_last_hit"):
        if message.HasField(field):
            raise SwitchError("UNIMPLEMENTED", f"table {table.name}: {field} is not supported")
    if message.idle_timeout_ns:
        raise SwitchError("UNIMPLEMENTED", f"table {table.name}: idle_timeout_ns is not supported")


def _tables(schema: Schema, number: int) -> list[TableInfo]:
    return [schema.table(number)] if number else list(schema.tables.values())
