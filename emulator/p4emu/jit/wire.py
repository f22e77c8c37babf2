"""Moves bits between bytes in network order and values: extract, emit, pack.

Arrays of equal fields move as vectors with a byte swap; everything else moves in windows of up to
eight bytes (see `bits`). The callers check bounds; nothing here branches.

Entry points: `extract_header`, `emit_header`, `pack_values`, `first_bits`, `load_bits`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from llvmlite import ir as ll

from p4emu.ir.nodes import Header, Var
from p4emu.jit.bits import WORD, Array, Piece, Window, arrays, cut, windows
from p4emu.jit.frame import I64, Frame, int_type
from p4emu.jit.layout import width_of

# Bytes of the vectors that arrays move in. LLVM splits them where registers are narrower.
VECTOR_BYTES = 64


def i64(value: int) -> Any:
    """An i64 constant."""
    return ll.Constant(I64, value)


def fit(builder: Any, value: Any, width: int) -> Any:
    """Truncate or zero-extend to `width` bits."""
    if value.type.width > width:
        return builder.trunc(value, int_type(width))
    if value.type.width < width:
        return builder.zext(value, int_type(width))
    return value


def shift_left(builder: Any, value: Any, amount: int) -> Any:
    """Shift by a constant, 0 included."""
    return builder.shl(value, ll.Constant(value.type, amount)) if amount else value


def shift_right(builder: Any, value: Any, amount: int) -> Any:
    """Logical shift by a constant, 0 included."""
    return builder.lshr(value, ll.Constant(value.type, amount)) if amount else value


def _swap(frame: Frame, value: Any) -> Any:
    return frame.builder.call(frame.intrinsic("bswap", value.type, 1), [value])


def load_big_endian(frame: Frame, pointer: Any, count: int) -> Any:
    """`count` bytes as a number in the low bits of an integer at least as wide (i64 up to 8)."""
    builder = frame.builder
    value = frame.load(pointer, int_type(count * 8), 1)
    if count == 1:
        return builder.zext(value, I64)
    if count in (2, 4, 8):
        return fit(builder, _swap(frame, value), WORD)
    # bswap exists for whole 16-bit units: swap in a wider integer, from its other end.
    wide = WORD if count < 8 else (count + 1) // 2 * 16
    value = fit(builder, value, wide)
    return _swap(frame, shift_left(builder, value, wide - count * 8))


def store_big_endian(frame: Frame, value: Any, pointer: Any, count: int) -> None:
    """The low `count` (1 to 8) bytes of an i64, most significant first."""
    builder = frame.builder
    if count in (1, 2, 4, 8):
        narrow = fit(builder, value, count * 8)
        builder.store(narrow if count == 1 else _swap(frame, narrow), pointer, align=1)
        return
    swapped = _swap(frame, shift_left(builder, value, WORD - count * 8))
    builder.store(fit(builder, swapped, count * 8), pointer, align=1)


# --- windows -----------------------------------------------------------------------------------


def _overlap(piece: Piece, window: Window) -> tuple[int, int]:
    """Shift of the piece within the window: (left, right), one of them 0 unless it straddles."""
    shift = window.end - piece.end
    return (shift, 0) if shift >= 0 else (0, -shift)


def _compose(frame: Frame, window: Window, value_of: Callable[[Piece], Any]) -> Any:
    """The window's bits as an i64, from the pieces' values (i64, zero-extended)."""
    builder = frame.builder
    total: Any = None
    for piece in window.pieces:
        left, right = _overlap(piece, window)
        value = value_of(piece)
        if piece.start < window.start:  # its first bits are in the window before
            keep = min(piece.end, window.end) - window.start
            kept = (1 << (keep + right)) - 1
            if keep + right < WORD:
                value = builder.and_(value, i64(kept))
        value = shift_left(builder, shift_right(builder, value, right), left)
        total = value if total is None else builder.or_(total, value)
    return total


def _take(frame: Frame, loaded: Any, piece: Piece, window: Window) -> Any:
    """The part of `piece` that is in the window, at its place in the piece (i64)."""
    builder = frame.builder
    left, right = _overlap(piece, window)
    value = shift_left(builder, shift_right(builder, loaded, left), right)
    begin = max(piece.start, window.start)
    width = piece.end - begin
    if width < WORD:
        value = builder.and_(value, i64((1 << width) - 1))
    return value


# --- headers -----------------------------------------------------------------------------------


def extract_header(frame: Frame, header: Header, source: Any) -> None:
    """Set the fields of `header` from the bytes at `source` (which are known to be there)."""
    widths = [width_of(field.type) for field in header.fields]
    for part in arrays(widths):
        fields = header.fields[part.first : part.first + part.count]
        if isinstance(part, Array):
            variables = frame.at(frame.vars, frame.packet_offset(fields[0]))
            _move_array(frame, frame.offset(source, part.start // 8), 1, variables, part, None)
        else:
            _extract_stretch(frame, fields, part.start, source)
    frame.forget(header.fields)


def emit_header(frame: Frame, header: Header, target: Any) -> None:
    """Write the fields of `header` to the bytes at `target`."""
    widths = [width_of(field.type) for field in header.fields]
    for part in arrays(widths):
        fields = header.fields[part.first : part.first + part.count]
        destination = frame.offset(target, part.start // 8)
        if isinstance(part, Array):
            variables = frame.at(frame.vars, frame.packet_offset(fields[0]))
            _move_array(frame, variables, part.width // 8, destination, part, 1)
        else:
            pieces = cut([width_of(field.type) for field in fields])
            _store_windows(frame, pieces, destination, partial(_word, frame, fields))


def _move_array(
    frame: Frame, source: Any, align: int, target: Any, part: Array, target_align: int | None
) -> None:
    element = part.width // 8
    target_align = element if target_align is None else target_align
    done = 0
    while done < part.count:
        count = min(VECTOR_BYTES // element, part.count - done)
        count = 1 << (count.bit_length() - 1)
        type_ = int_type(part.width)
        if count > 1:
            type_ = ll.VectorType(type_, count)
        value = frame.load(frame.offset(source, done * element), type_, align)
        if element > 1:
            value = _swap(frame, value)
        frame.builder.store(value, frame.offset(target, done * element), align=target_align)
        done += count


def _word_place(frame: Frame, var: Var, piece: Piece) -> tuple[Any, int]:
    """Address and bytes of the storage word that holds a piece of a packet variable."""
    slot = frame.layout.slots[var]
    address = frame.at(frame.vars, slot.offset + piece.low // 8)
    return address, min(slot.storage, 8)


def _word(frame: Frame, fields: Sequence[Var], piece: Piece) -> Any:
    address, size = _word_place(frame, fields[piece.item], piece)
    return fit(frame.builder, frame.load(address, int_type(size * 8), size), WORD)


def _extract_stretch(frame: Frame, fields: Sequence[Var], start: int, source: Any) -> None:
    builder = frame.builder
    pieces = cut([width_of(field.type) for field in fields], start)
    partial: dict[Piece, Any] = {}
    for window in windows(pieces):
        pointer = frame.offset(source, window.start // 8)
        loaded = load_big_endian(frame, pointer, (window.end - window.start) // 8)
        for piece in window.pieces:
            value = _take(frame, loaded, piece, window)
            if piece in partial:
                value = builder.or_(partial.pop(piece), value)
            if piece.end > window.end:
                partial[piece] = value
                continue
            address, size = _word_place(frame, fields[piece.item], piece)
            builder.store(fit(builder, value, size * 8), address, align=size)


def _store_windows(
    frame: Frame, pieces: Sequence[Piece], target: Any, value_of: Callable[[Piece], Any]
) -> None:
    for window in windows(pieces):
        value = _compose(frame, window, value_of)
        count = (window.end - window.start) // 8
        store_big_endian(frame, value, frame.offset(target, window.start // 8), count)


# --- values ------------------------------------------------------------------------------------


def _piece_of(builder: Any, value: Any, piece: Piece) -> Any:
    return fit(builder, fit(builder, shift_right(builder, value, piece.low), piece.width), WORD)


def pack_values(frame: Frame, values: Sequence[Any], target: Any) -> None:
    """Write values (iW, most significant bit first, without gaps, zero-padded to bytes)."""
    pieces = cut([value.type.width for value in values])
    _store_windows(
        frame, pieces, target, lambda piece: _piece_of(frame.builder, values[piece.item], piece)
    )


def first_bits(frame: Frame, values: Sequence[Any]) -> Any:
    """The first eight bytes that `pack_values` would write, as a number (i64)."""
    builder = frame.builder
    total = i64(0)
    room = min((sum(value.type.width for value in values) + 7) // 8 * 8, WORD)
    for value in values:
        if room == 0:
            break
        taken = min(value.type.width, room)
        top = fit(builder, shift_right(builder, value, value.type.width - taken), WORD)
        room -= taken
        total = builder.or_(total, shift_left(builder, top, room))
    return total


def load_bits(frame: Frame, pointer: Any, width: int) -> Any:
    """The first `width` bits at `pointer` as an iW; whole bytes of them must be there."""
    count = (width + 7) // 8
    value = load_big_endian(frame, pointer, count)
    return fit(frame.builder, shift_right(frame.builder, value, count * 8 - width), width)
