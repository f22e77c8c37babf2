"""Table entries as people write them, and as the run time has them: integers to bytes and back.

A key field is big-endian in whole bytes, fields side by side; action parameters are little-endian
at the offsets of the program's image (`csrc/switch/abi.hpp`). Knows no switch.

Main types: `TableEntry`, `Match`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from p4emu.errors import SwitchError
from p4emu.jit.image import ActionSpec, KeyField, TableSpec

_MAX_ENTRIES = 0xFFFFFFFF
"""The largest table size the run time can be told; more entries than that fit no memory."""


@dataclass(frozen=True, slots=True)
class Match:
    """What one key field of an entry matches.

    exact: `value` alone. lpm, ternary, optional: `value` and `mask` (None: all ones; 0: anything).
    range: `value` is the low bound and `mask` the high one, both included.
    """

    value: int
    mask: int | None = None


@dataclass(frozen=True, slots=True)
class TableEntry:
    """An entry of a table. A larger `priority` wins; exact and LPM tables take none."""

    keys: tuple[Match, ...]
    action: str
    params: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    priority: int = 0


def some(names: Iterable[str], limit: int = 12) -> str:
    names = sorted(names)
    if not names:
        return "none"
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + rest


def check_width(what: str, value: int, width: int) -> None:
    if not 0 <= value < 1 << width:
        raise SwitchError("INVALID_ARGUMENT", f"{what}: {value:#x} does not fit bit<{width}>")


def _field_bytes(key: KeyField) -> int:
    return (key.width + 7) // 8


def table_image(spec: TableSpec) -> dict[str, Any]:
    entries = []
    for entry in spec.entries:
        action = spec.actions[entry.call.action]
        value = b"".join(
            m.value.to_bytes(_field_bytes(k), "big")
            for m, k in zip(entry.keys, spec.key_fields, strict=True)
        )
        mask = b"".join(
            m.mask.to_bytes(_field_bytes(k), "big")
            for m, k in zip(entry.keys, spec.key_fields, strict=True)
        )
        data = _data_bytes(action, entry.call.args)
        entries.append((value, mask, entry.priority, entry.call.action, data))
    default = spec.default
    return {
        "name": spec.name,
        "key": [(key.kind, _field_bytes(key)) for key in spec.key_fields],
        "action_data_bytes": [action.data_bytes for action in spec.actions],
        "initial": (default.action, _data_bytes(spec.actions[default.action], default.args)),
        "entries": entries,
        "size": min(spec.size, _MAX_ENTRIES),
        "counts": spec.has_counter,
        "const_default": spec.const_default,
        "const_entries": spec.const_entries,
    }


def _data_bytes(action: ActionSpec, args: Sequence[int]) -> bytes:
    data = bytearray(action.data_bytes)
    for param, value in zip(action.params, args, strict=True):
        raw = (value & ((1 << param.width) - 1)).to_bytes(param.storage, "little")
        data[param.offset : param.offset + param.storage] = raw
    return bytes(data)


def action_bytes(spec: TableSpec, name: str, params: Mapping[str, int]) -> tuple[int, bytes]:
    names = [action.name for action in spec.actions]
    if name not in names:
        raise SwitchError(
            "INVALID_ARGUMENT", f"table {spec.name} has no action {name!r}; it has {some(names)}"
        )
    number = names.index(name)
    action = spec.actions[number]
    expected = [param.name for param in action.params]
    if sorted(params) != sorted(expected):
        raise SwitchError(
            "INVALID_ARGUMENT",
            f"action {name} takes ({', '.join(expected)}); got ({', '.join(params)})",
        )
    for param in action.params:
        check_width(f"{name}({param.name})", params[param.name], param.width)
    return number, _data_bytes(action, [params[name] for name in expected])


def key_bytes(
    spec: TableSpec, keys: Sequence[Match], priority: int
) -> tuple[bytes, bytes, int, int, bytes]:
    if len(keys) != len(spec.key_fields):
        names = ", ".join(f"{k.name}: {k.kind}" for k in spec.key_fields)
        raise SwitchError(
            "INVALID_ARGUMENT", f"table {spec.name} has the key ({names}); got {len(keys)} fields"
        )
    value, mask = b"", b""
    for match, key in zip(keys, spec.key_fields, strict=True):
        what = f"table {spec.name}, key {key.name}"
        ones = (1 << key.width) - 1
        second = ones if match.mask is None else match.mask
        check_width(what, match.value, key.width)
        check_width(what, second, key.width)
        if key.kind == "exact" and second != ones:
            raise SwitchError("INVALID_ARGUMENT", f"{what}: an exact field takes no mask")
        if key.kind == "optional" and second not in (0, ones):
            raise SwitchError("INVALID_ARGUMENT", f"{what}: the mask is all ones or 0")
        if key.kind == "lpm" and (ones ^ second) & ((ones ^ second) + 1):
            raise SwitchError("INVALID_ARGUMENT", f"{what}: {second:#x} is no prefix")
        if key.kind == "range" and match.value > second:
            raise SwitchError(
                "INVALID_ARGUMENT", f"{what}: the range {match.value}..{second} is empty"
            )
        value += match.value.to_bytes(_field_bytes(key), "big")
        mask += second.to_bytes(_field_bytes(key), "big")
    if not -(2**31) <= priority < 2**31:
        raise SwitchError("INVALID_ARGUMENT", f"priority {priority} does not fit 32 bits")
    return value, mask, priority, 0, b""


def entry_bytes(spec: TableSpec, entry: TableEntry) -> tuple[bytes, bytes, int, int, bytes]:
    value, mask, priority, _, _ = key_bytes(spec, entry.keys, entry.priority)
    return value, mask, priority, *action_bytes(spec, entry.action, entry.params)


def params_from_bytes(action: ActionSpec, data: bytes) -> dict[str, int]:
    return {
        param.name: int.from_bytes(data[param.offset : param.offset + param.storage], "little")
        for param in action.params
    }


def entry_from_bytes(spec: TableSpec, raw: tuple[bytes, bytes, int, int, bytes]) -> TableEntry:
    value, mask, priority, number, data = raw
    keys, at, lpm_alone = [], 0, True
    for key in spec.key_fields:
        end = at + _field_bytes(key)
        first = int.from_bytes(value[at:end], "big")
        second = int.from_bytes(mask[at:end], "big")
        keys.append(Match(first) if key.kind == "exact" else Match(first, second))
        lpm_alone = lpm_alone and key.kind in ("exact", "lpm")
        at = end
    action = spec.actions[number]
    return TableEntry(
        tuple(keys),
        action.name,
        params_from_bytes(action, data),
        # In an LPM table the run time keeps the prefix length there.
        0 if lpm_alone else priority,
    )
