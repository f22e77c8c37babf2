"""Bit strings: headers on the wire, lookup keys, hash inputs, cut into loads and stores.

A bit string is a sequence of items of any width, first bit first. `Piece`s are its items cut to at
most 64 bits, in the order of the wire; `Window`s are consecutive spans of whole bytes, at most 64
bits long, that are loaded or stored at once. Pure arithmetic on plans, no LLVM: `wire` emits them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WORD = 64


@dataclass(frozen=True, slots=True)
class Piece:
    """Bits [low, low + width) of item number `item`, at bits [start, start + width)."""

    item: int
    low: int
    width: int
    start: int

    @property
    def end(self) -> int:
        return self.start + self.width


@dataclass(frozen=True, slots=True)
class Window:
    """Bits [start, end) of the string, whole bytes, and the pieces that reach into it."""

    start: int
    end: int
    pieces: tuple[Piece, ...]


def cut(widths: Sequence[int], start: int = 0) -> list[Piece]:
    """Pieces of consecutive items of these widths; the first is at bit `start`.

    Items wider than a word are cut at multiples of 64 from their least significant bit, which is
    how they lie in storage.
    """
    pieces: list[Piece] = []
    for item, width in enumerate(widths):
        low = (width - 1) // WORD * WORD
        high = width
        while low >= 0:
            pieces.append(Piece(item, low, high - low, start))
            start += high - low
            high, low = low, low - WORD
    return pieces


def windows(pieces: Sequence[Piece]) -> list[Window]:
    """Cover adjoining pieces with windows; they begin at a byte, the last may be padded to one.

    A window ends at the last boundary of a piece that is also one of a byte, within 64 bits; when
    there is none it takes what fits and its last piece goes on in the next window.
    """
    result: list[Window] = []
    first = 0
    while first < len(pieces):
        start = result[-1].end if result else pieces[first].start
        best: int | None = None
        reach = first
        while reach < len(pieces) and pieces[reach].end - start <= WORD:
            if (pieces[reach].end - start) % 8 == 0:
                best = reach
            reach += 1
        if reach == len(pieces):  # all the rest fits; pad it
            end = start + (pieces[-1].end - start + 7) // 8 * 8
            result.append(Window(start, end, tuple(pieces[first:])))
            break
        if best is not None:
            end = pieces[best].end
            result.append(Window(start, end, tuple(pieces[first : best + 1])))
            first = best + 1
        else:
            end = start + WORD
            result.append(Window(start, end, tuple(pieces[first : reach + 1])))
            first = reach  # pieces[reach] goes on
    return result


@dataclass(frozen=True, slots=True)
class Array:
    """Items [first, first + count) of `width` bits each: bytes on the wire at bit `start`."""

    first: int
    count: int
    width: int
    start: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """Items [first, first + count) that are no array; whole bytes from bit `start`."""

    first: int
    count: int
    start: int


# Fewer equal items than this are not worth a vector.
_ARRAY_MINIMUM = 8


def arrays(widths: Sequence[int]) -> list[Array | Stretch]:
    """Split a header into arrays of byte-aligned items of 8, 16, 32 or 64 bits and the rest."""
    result: list[Array | Stretch] = []
    position = 0
    stretch_first, stretch_start = 0, 0
    index = 0
    while index < len(widths):
        width = widths[index]
        count = 1
        while index + count < len(widths) and widths[index + count] == width:
            count += 1
        if width in (8, 16, 32, 64) and position % 8 == 0 and count >= _ARRAY_MINIMUM:
            if index > stretch_first:
                result.append(Stretch(stretch_first, index - stretch_first, stretch_start))
            result.append(Array(index, count, width, position))
            stretch_first, stretch_start = index + count, position + count * width
        index += count
        position += count * width
    if len(widths) > stretch_first:
        result.append(Stretch(stretch_first, len(widths) - stretch_first, stretch_start))
    return result
