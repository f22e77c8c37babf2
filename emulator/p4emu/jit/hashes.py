"""Hash and checksum statements.

The Internet checksum is computed on values, without building the byte string it is defined over:
a ones-complement sum of 16-bit words is a sum modulo 65535, in which a field counts with the weight
of its last bit, 2^((-end) mod 16). So each value is shifted by its alignment and added to a 64-bit
sum, wide ones in pieces of 32 bits, and arrays of packet variables are summed as vectors of 16-bit
words straight from memory. The CRCs do build the bytes, and call the run time.

Entry point: `emit_hash`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir as ll

from p4emu.ir.nodes import Expr, Hash, Read
from p4emu.jit import abi
from p4emu.jit.errors import UnsupportedNodeError
from p4emu.jit.expressions import ExpressionEmitter
from p4emu.jit.frame import I32, I64, Frame
from p4emu.jit.layout import width_of
from p4emu.jit.wire import first_bits, fit, i64, pack_values, shift_left, shift_right

_PIECE_BITS = 32
_VECTOR_WORDS = 16  # 32-bit words a vector
# Arrays shorter than this are summed by element.
_ARRAY_MINIMUM = _VECTOR_WORDS


def emit_hash(frame: Frame, expressions: ExpressionEmitter, stmt: Hash) -> None:
    """Compute `stmt` and set its target."""
    if stmt.algorithm == "csum16":
        result = _checksum(frame, expressions, stmt.data)
    elif stmt.algorithm == "xor16":
        result = _xor16(frame, expressions, stmt.data)
    elif stmt.algorithm == "identity":
        result = first_bits(frame, [expressions.value(part) for part in stmt.data])
    elif stmt.algorithm in ("crc16", "crc32"):
        result = _crc(frame, expressions, stmt)
    else:
        raise UnsupportedNodeError(stmt, f"a hash ({stmt.algorithm})")
    frame.write(stmt.target, fit(frame.builder, result, width_of(stmt.target.type)))


def _crc(frame: Frame, expressions: ExpressionEmitter, stmt: Hash) -> Any:
    values = [expressions.value(part) for part in stmt.data]
    count = (sum(value.type.width for value in values) + 7) // 8
    buffer = frame.buffer(count, stmt.algorithm)
    if values:
        pack_values(frame, values, buffer)
    function = frame.runtime(abi.CRC16 if stmt.algorithm == "crc16" else abi.CRC32)
    return frame.builder.call(function, [buffer, i64(count)])


def _xor16(frame: Frame, expressions: ExpressionEmitter, data: Sequence[Expr]) -> Any:
    builder = frame.builder
    total = i64(0)
    end = 0
    for part in data:
        value = expressions.value(part)
        end += value.type.width
        for piece in _pieces(builder, value):
            total = builder.xor(total, shift_left(builder, piece, -end % 16))
    for distance in (32, 16):
        total = builder.xor(total, shift_right(builder, total, distance))
    return fit(builder, total, 16)


def _pieces(builder: Any, value: Any) -> list[Any]:
    """The value in i64 pieces of at most 32 bits, all at multiples of 16 bits."""
    width = value.type.width
    if width <= _PIECE_BITS:
        return [fit(builder, value, 64)]
    return [
        fit(
            builder,
            fit(builder, shift_right(builder, value, low), min(_PIECE_BITS, width - low)),
            64,
        )
        for low in range(0, width, _PIECE_BITS)
    ]


# --- checksum ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _MemoryArray:
    """Bytes of the variable block that are an array of 16-bit words, whatever their order."""

    offset: int
    size: int
    count: int  # parts of the list it stands for


def _array_at(frame: Frame, data: Sequence[Expr], first: int, end: int) -> _MemoryArray | None:
    """The array of packet variables that `data[first:]` begins with, if it is long enough.

    All elements must have one storage-filling width, a multiple of 16 bits, so that they all end
    at the same place of a 16-bit word, and be neighbours in memory.
    """
    part = data[first]
    if not isinstance(part, Read) or part.var.storage != "packet":
        return None
    width = width_of(part.var.type)
    slots = frame.layout.slots
    if width not in (16, 32, 64):
        return None
    offset = slots[part.var].offset
    count = 1
    while first + count < len(data):
        following = data[first + count]
        if (
            not isinstance(following, Read)
            or following.var.storage != "packet"
            or width_of(following.var.type) != width
            or slots[following.var].offset != offset + count * (width // 8)
        ):
            break
        count += 1
    if count < _ARRAY_MINIMUM:
        return None
    # Whole vectors only; what remains goes by element.
    size = count * (width // 8) // (_VECTOR_WORDS * 4) * (_VECTOR_WORDS * 4)
    return _MemoryArray(offset, size, size // (width // 8)) if size else None


def _checksum(frame: Frame, expressions: ExpressionEmitter, data: Sequence[Expr]) -> Any:
    builder = frame.builder
    total = i64(0)
    end = 0
    index = 0
    while index < len(data):
        array = _array_at(frame, data, index, end)
        if array is not None:
            end += array.size * 8
            total = builder.add(total, shift_left(builder, _sum_array(frame, array), -end % 16))
            index += array.count
            continue
        value = expressions.value(data[index])
        end += value.type.width
        for piece in _pieces(builder, value):
            total = builder.add(total, shift_left(builder, piece, -end % 16))
        index += 1
    return builder.not_(fit(builder, _fold(builder, total), 16))


def _fold(builder: Any, total: Any) -> Any:
    """The 64-bit sum with all carries added back, below 65536."""
    mask = i64(0xFFFF)
    words = [builder.and_(shift_right(builder, total, low), mask) for low in (0, 16, 32, 48)]
    total = builder.add(builder.add(words[0], words[1]), builder.add(words[2], words[3]))
    for _ in range(2):
        total = builder.add(builder.and_(total, mask), shift_right(builder, total, 16))
    return total


# A 32-bit vector lane takes the sum of this many 16-bit words before it could overflow.
_LANE_WORDS = 1 << 16


def _sum_array(frame: Frame, array: _MemoryArray) -> Any:
    """The sum of the array's 16-bit words (i64)."""
    builder = frame.builder
    type_ = ll.VectorType(I32, _VECTOR_WORDS)
    low_mask = ll.Constant(type_, [0xFFFF] * _VECTOR_WORDS)
    sixteen = ll.Constant(type_, [16] * _VECTOR_WORDS)
    step = _VECTOR_WORDS * 4
    total = i64(0)
    for begin in range(0, array.size, _LANE_WORDS // 2 * step):
        lanes: Any = None
        for offset in range(begin, min(array.size, begin + _LANE_WORDS // 2 * step), step):
            pointer = frame.at(frame.vars, array.offset + offset)
            words = frame.load(pointer, type_, 2)
            both = builder.add(builder.and_(words, low_mask), builder.lshr(words, sixteen))
            lanes = both if lanes is None else builder.add(lanes, both)
        wide = builder.zext(lanes, ll.VectorType(I64, _VECTOR_WORDS))
        function = _reduce_add(frame, wide.type)
        total = builder.add(total, builder.call(function, [wide]))
    return total


def _reduce_add(frame: Frame, type_: Any) -> Any:
    name = f"llvm.vector.reduce.add.v{type_.count}i{type_.element.width}"
    known = frame.module.globals.get(name)
    if known is None:
        known = ll.Function(frame.module, ll.FunctionType(type_.element, [type_]), name)
    return known
