"""Runs compiled IR programs without the C++ run time: packets, state and tables made by ctypes.

`Rig(program)` compiles a program, owns its registers and counters, and answers table lookups from
Python dictionaries. `program(...)` wraps a few statements into a whole program.
"""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from p4emu.ir import verify
from p4emu.ir.nodes import (
    ACCEPT,
    BOOL,
    Bits,
    Bool,
    Emit,
    Extract,
    Goto,
    Header,
    Program,
    State,
    Stmt,
    Type,
    Var,
)
from p4emu.jit import compile_program

ERRORS = [
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
]


class CPacket(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("length", ctypes.c_uint32),
        ("payload", ctypes.c_uint32),
    )


class CState(ctypes.Structure):
    _fields_ = (
        ("tables", ctypes.c_void_p),
        ("registers", ctypes.c_void_p),
        ("counters", ctypes.c_void_p),
    )


LOOKUP_TYPE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint8))
CRC_TYPE = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint8), ctypes.c_uint64)
INGRESS_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
EGRESS_TYPE = ctypes.CFUNCTYPE(
    ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)


def aligned(size: int, alignment: int = 64) -> tuple[Any, int]:
    """Zeroed memory: the object that owns it, and the aligned address in it."""
    memory = ctypes.create_string_buffer(size + alignment)
    address = ctypes.addressof(memory)
    return memory, address + (-address % alignment)


def crc16(data: bytes) -> int:
    """CRC-16/ARC, bit by bit."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0xA001 if crc & 1 else crc >> 1
    return crc


class Rig:
    """One compiled program with its state."""

    def __init__(self, program: Program, checked: bool = True) -> None:
        if checked:
            verify(program)
        self._lookup = LOOKUP_TYPE(self._on_lookup)
        self._crc16 = CRC_TYPE(lambda data, length: crc16(bytes(data[:length])))
        self._crc32 = CRC_TYPE(lambda data, length: zlib.crc32(bytes(data[:length])))
        symbols = {
            "p4emu_table_lookup": self._address(self._lookup),
            "p4emu_crc16": self._address(self._crc16),
            "p4emu_crc32": self._address(self._crc32),
        }
        self.compiled = compile_program(program, symbols=symbols)
        self.image = self.compiled.image
        self._types = {var.name: var.type for var in all_packet_vars(program)}
        self._groups = [aligned(group.total_bytes) for group in self.image.registers]
        self._counters = [
            (ctypes.c_uint64 * (2 * max(counter.size, 1)))() for counter in self.image.counters
        ]
        self._pointers = [
            (ctypes.c_void_p * max(len(values), 1))(*values)
            for values in (
                [index + 1 for index in range(len(self.image.tables))],
                [address for _, address in self._groups],
                [ctypes.addressof(counter) for counter in self._counters],
            )
        ]
        self.state = CState(*(ctypes.addressof(array) for array in self._pointers))
        self._ingress = INGRESS_TYPE(self.compiled.ingress)
        self._egress = EGRESS_TYPE(self.compiled.egress)
        self._vars_memory, self.vars = aligned(self.image.vars_size)
        self.packet = CPacket()
        self._frame: Any = None
        self.keys: list[tuple[str, bytes]] = []
        self.answer: Callable[[str, bytes], bytes] | None = None
        self._entries: list[Any] = []

    @staticmethod
    def _address(function: Any) -> int:
        address = ctypes.cast(function, ctypes.c_void_p).value
        assert address is not None
        return address

    # --- packets ---

    def ingress(self, frame: bytes = b"", values: Mapping[Var, int] | None = None) -> None:
        """Run the first half on a frame; `values` are packet variables set before it."""
        ctypes.memset(self.vars, 0, self.image.vars_size)
        for var, value in (values or {}).items():
            self.set(var, value)
        # Exactly as long as the frame, so that a checker of memory accesses sees one too far.
        self._frame = (ctypes.c_char * max(len(frame), 1)).from_buffer_copy(frame or b"\0")
        self.packet = CPacket(ctypes.addressof(self._frame), len(frame), 0)
        self._ingress(self.vars, ctypes.addressof(self.state), ctypes.addressof(self.packet))

    def egress(self) -> bytes:
        """Run the second half: the emitted headers."""
        guard = b"\xa5" * 16
        out = ctypes.create_string_buffer(self.image.max_header_bytes + len(guard))
        ctypes.memset(out, 0xA5, len(out))
        length = self._egress(
            self.vars,
            ctypes.addressof(self.state),
            ctypes.addressof(self.packet),
            ctypes.addressof(out),
        )
        assert out.raw.endswith(guard), "written beyond max_header_bytes"
        return out.raw[:length]

    # --- variables and state ---

    def get(self, var: Var | str) -> int:
        """A packet variable's value, negative ones as such."""
        name = var if isinstance(var, str) else var.name
        offset, size = self.image.variables[name]
        value = int.from_bytes(ctypes.string_at(self.vars + offset, size), "little")
        type_ = self._types[name]
        width = 1 if isinstance(type_, Bool) else type_.width
        assert value < 1 << width, f"{name} is not zero-extended: {value:#x}"
        if isinstance(type_, Bits) and type_.signed and value >> (width - 1):
            value -= 1 << width
        return value

    def set(self, var: Var | str, value: int) -> None:
        """Set a packet variable."""
        name = var if isinstance(var, str) else var.name
        offset, size = self.image.variables[name]
        type_ = self._types[name]
        width = 1 if isinstance(type_, Bool) else type_.width
        ctypes.memmove(
            self.vars + offset, (value & ((1 << width) - 1)).to_bytes(size, "little"), size
        )

    def register_cell(self, name: str, index: int) -> tuple[int, int]:
        """Address and size of a register element."""
        for group, (_, base) in zip(self.image.registers, self._groups, strict=True):
            for member in group.members:
                if member.name == name:
                    return base + index * group.row_bytes + member.offset, member.storage
        raise KeyError(name)

    def register(self, name: str, index: int) -> int:
        """A register element, as an unsigned number."""
        address, size = self.register_cell(name, index)
        return int.from_bytes(ctypes.string_at(address, size), "little")

    def set_register(self, name: str, index: int, value: int) -> None:
        """Set a register element."""
        address, size = self.register_cell(name, index)
        ctypes.memmove(address, value.to_bytes(size, "little"), size)

    def counter(self, name: str, index: int) -> tuple[int, int]:
        """(packets, bytes) of an indirect counter."""
        number = [spec.name for spec in self.image.counters].index(name)
        cell = self._counters[number]
        return cell[2 * index], cell[2 * index + 1]

    # --- tables ---

    def entry(self, action: int, hit: bool, args: Sequence[int] = (), table: int = 0) -> bytes:
        """An ActionEntry with these arguments; the counter is null."""
        spec = self.image.tables[table].actions[action]
        data = bytearray(spec.data_bytes)
        for param, value in zip(spec.params, args, strict=True):
            data[param.offset : param.offset + param.storage] = value.to_bytes(
                param.storage, "little"
            )
        head = action.to_bytes(4, "little") + int(hit).to_bytes(4, "little") + bytes(8)
        return head + bytes(data)

    def _on_lookup(self, table: int, key: Any) -> int:
        spec = self.image.tables[table - 1]
        data = bytes(key[: spec.key_bytes])
        self.keys.append((spec.name, data))
        assert self.answer is not None
        memory, address = aligned(256, 8)
        raw = self.answer(spec.name, data)
        ctypes.memmove(address, raw, len(raw))
        self._entries.append(memory)
        return address


def all_packet_vars(program: Program) -> list[Var]:
    """Every packet variable, header fields and validities included."""
    found = list(program.packet_vars)
    for header in program.headers:
        found += [*header.fields, header.valid]
    return found


def packet_var(name: str, type_: Type) -> Var:
    return Var(name, type_, "packet")


def local_var(name: str, type_: Type) -> Var:
    return Var(name, type_, "local")


def header(name: str, widths: Sequence[int]) -> Header:
    """A header with fields f0, f1, ... of these widths."""
    fields = tuple(packet_var(f"{name}.f{n}", Bits(width)) for n, width in enumerate(widths))
    return Header(name, fields, packet_var(f"{name}.$valid", BOOL))


PARSER_ERROR = "standard_metadata.parser_error"


def program(
    *,
    headers: Sequence[Header] = (),
    variables: Sequence[Var] = (),
    parser: Sequence[State] | None = None,
    ingress: Sequence[Stmt] = (),
    **parts: Any,
) -> Program:
    """A program that by default extracts all headers and emits them again."""
    parser_error = packet_var(PARSER_ERROR, Bits(32))
    if parser is None:
        body = tuple(Extract(h) for h in headers)
        parser = [State("start", body, Goto(ACCEPT))] if headers else []
    parts.setdefault("deparser", tuple(Emit(h) for h in headers))
    standard = {"parser_error": parser_error, **parts.pop("standard", {})}
    return Program(
        name="test",
        headers=list(headers),
        packet_vars=[*variables, *standard.values()],
        standard=standard,
        errors=list(ERRORS),
        parser={state.name: state for state in parser},
        ingress=tuple(ingress),
        **parts,
    )
