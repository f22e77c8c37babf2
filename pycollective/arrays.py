"""Which arrays the network can carry, and how those it cannot read in place are made to fit.

The core reads and writes C-contiguous memory. `readable` and `writable` give such memory for any
array: the array itself, or a contiguous copy, with what must be copied back afterwards. Everything
that is wrong with an argument is found here, before anything is sent.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pycollective import _core
from pycollective.errors import ConfigurationError, UnsupportedError

Array = npt.NDArray[Any]

_REDUCIBLE: Final[dict[np.dtype[Any], _core.DataType]] = {
    np.dtype(np.float32): _core.DataType.FLOAT32,
    np.dtype(np.int32): _core.DataType.INT32,
}


@dataclass(frozen=True)
class Staged:
    """Contiguous memory that stands for an array.

    `copy_back` must be called when the memory has been written; None when it is the array's own.
    """

    memory: Array
    copy_back: Callable[[], None] | None


def as_array(value: npt.ArrayLike, name: str) -> Array:
    """An array of anything that has a buffer or is one; objects are refused.

    Raises
    ------
    UnsupportedError
        For arrays of Python objects, which are pointers.
    """
    array = np.asarray(value)
    if array.dtype.hasobject:
        raise UnsupportedError(
            f"{name} must hold plain values, found dtype {array.dtype}: objects are pointers and "
            "mean nothing on another rank; convert it to a numeric dtype"
        )
    return array


def reducible(array: Array, name: str) -> _core.DataType:
    """The core's name of the element type of an array that is to be summed.

    Raises
    ------
    UnsupportedError
        For any other dtype than native float32 and int32.
    """
    kind = _REDUCIBLE.get(array.dtype)
    if kind is None:
        raise UnsupportedError(
            f"all-reduce sums float32 and int32 in the network, {name} has dtype {array.dtype}; "
            "convert it first, as in array.astype(numpy.float32)"
        )
    return kind


def signature(array: Array) -> int:
    """A hash of dtype and shape: ranks whose calls differ in either notice at the first packet."""
    return zlib.crc32(f"{array.dtype.str} {array.shape}".encode())


def movable(array: Array) -> _core.DataType:
    """The element type under which an array's bytes are moved unchanged."""
    return _REDUCIBLE.get(array.dtype, _core.DataType.BYTE)


def as_bytes(memory: Array) -> Array:
    """Contiguous memory as a flat array of bytes, or of its own type if the core knows that."""
    flat = memory.reshape(-1)
    return flat if flat.dtype in _REDUCIBLE else flat.view(np.uint8)


def readable(array: Array) -> Array:
    """Contiguous memory with the array's values: the array itself if it is contiguous."""
    return np.ascontiguousarray(array).reshape(array.shape)


def check_writable(array: object, name: str) -> Array:
    """The array, if results can be written into it.

    Raises
    ------
    ConfigurationError
        When it is no array (a list would be copied and the result lost), or read-only.
    """
    if not isinstance(array, np.ndarray):
        raise ConfigurationError(
            f"{name} must be a NumPy array, found {type(array).__name__}: the result is written "
            "into it; pass numpy.asarray(...) of a buffer and keep it"
        )
    if not array.flags.writeable:
        raise ConfigurationError(
            f"{name} is read-only, but the result is written into it; pass a copy"
        )
    return as_array(array, name)


def writable(array: Array) -> Staged:
    """Contiguous memory to receive into; its contents before that are undefined."""
    if array.flags.c_contiguous:
        return Staged(array, None)
    memory = np.empty(array.shape, array.dtype)
    return Staged(memory, lambda: np.copyto(array, memory))
