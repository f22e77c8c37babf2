"""Counters and registers: arrays of cells, read and modified by index.

P4Runtime Specification, sections 9.4 and 9.7. Writing needs an index, reading without one gives all
cells. What encode makes, decode takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from p4.v1 import p4runtime_pb2 as p4rt

from p4emu.errors import SwitchError
from p4emu.p4runtime.schema import RegisterInfo
from p4emu.p4runtime.tables import decode_counts, encode_counts, require_modify
from p4emu.p4runtime.target import Target
from p4emu.p4runtime.values import decode, decode_signed, encode, encode_signed


def write_counter(target: Target, kind: int, message: Any) -> None:
    """MODIFY a cell of a counter."""
    require_modify(kind, "a counter entry")
    counter = target.schema.counter(message.counter_id)
    size = target.switch.counter_size(counter.name)
    index = _index(message, f"counter {counter.name}", size)
    target.switch.write_counter(counter.name, index, decode_counts(message.data))


def read_counters(target: Target, message: Any) -> Iterator[Any]:
    """The cells a request asks for."""
    known = target.schema.counters
    number = message.counter_id
    for counter in [target.schema.counter(number)] if number else list(known.values()):
        size = target.switch.counter_size(counter.name)
        for index in _indices(message, f"counter {counter.name}", size):
            entity = p4rt.Entity()
            answer = entity.counter_entry
            answer.counter_id, answer.index.index = counter.id, index
            value = target.switch.read_counter(counter.name, index)
            answer.data.CopyFrom(encode_counts(counter, value))
            yield entity


def write_register(target: Target, kind: int, message: Any) -> None:
    """MODIFY a cell of a register."""
    require_modify(kind, "a register entry")
    register = target.schema.register(message.register_id)
    what = f"register {register.name}"
    _require_bits(register)
    index = _index(message, what, target.switch.register_size(register.name))
    found = message.data.WhichOneof("data")
    if found != "bitstring":
        raise SwitchError("INVALID_ARGUMENT", f"{what} holds bit strings, got {found or 'no data'}")
    value = (decode_signed if register.signed else decode)(
        message.data.bitstring, register.width, what
    )
    target.switch.write_register(register.name, index, value)


def read_registers(target: Target, message: Any) -> Iterator[Any]:
    """The cells a request asks for."""
    known = target.schema.registers
    number = message.register_id
    for register in [target.schema.register(number)] if number else list(known.values()):
        _require_bits(register)
        size = target.switch.register_size(register.name)
        indices = _indices(message, f"register {register.name}", size)
        if message.HasField("index"):
            values = [target.switch.read_register(register.name, indices[0])]
        else:
            values = target.switch.read_registers(register.name)
        for index, value in zip(indices, values, strict=True):
            entity = p4rt.Entity()
            answer = entity.register_entry
            answer.register_id, answer.index.index = register.id, index
            answer.data.bitstring = (
                encode_signed(value, register.width) if register.signed else encode(value)
            )
            yield entity


def _index(message: Any, what: str, size: int) -> int:
    if not message.HasField("index"):
        raise SwitchError("INVALID_ARGUMENT", f"{what}: writing needs an index")
    index: int = message.index.index
    if not 0 <= index < size:
        raise SwitchError("OUT_OF_RANGE", f"{what}: index {index} is not in 0..{size - 1}")
    return index


def _indices(message: Any, what: str, size: int) -> range:
    if not message.HasField("index"):
        return range(size)
    index = _index(message, what, size)
    return range(index, index + 1)


def _require_bits(register: RegisterInfo) -> None:
    if register.width == 0:
        raise SwitchError(
            "UNIMPLEMENTED",
            f"register {register.name}: only elements of type bit<W> and int<W> are supported",
        )
