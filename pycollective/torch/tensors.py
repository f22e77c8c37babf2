"""Which tensors the network can carry, and how those it cannot read in place are made to fit.

The core reads and writes dense memory at an address. `stage` gives such memory for a tensor: the
tensor's own, or a contiguous copy and what must be copied back. Everything that is wrong with a
tensor is found here, before anything is sent. What `pycollective.arrays` is to NumPy.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch

from pycollective import _core
from pycollective.errors import UnsupportedError

REDUCIBLE: Final = {
    torch.float32: _core.DataType.FLOAT32,
    torch.int32: _core.DataType.INT32,
}
"""What the switch can sum."""


@dataclass(frozen=True)
class Staged:
    """Dense memory that stands for a tensor.

    `copy_back` must be called when the memory has been written; None when it is the tensor's own.
    """

    memory: torch.Tensor
    copy_back: Callable[[], None] | None


def stage(tensor: torch.Tensor, collective: str, *, fill: bool) -> Staged:
    """Dense memory for a tensor, with its values if `fill`.

    Raises
    ------
    UnsupportedError
        For tensors that are not dense CPU tensors.
    """
    _check_dense(tensor, collective)
    plain = tensor.detach()
    if plain.is_contiguous() and not plain.is_conj() and not plain.is_neg():
        return Staged(plain, None)
    memory = torch.empty(plain.shape, dtype=plain.dtype)
    if fill:
        memory.copy_(plain)
    return Staged(memory, lambda: _copy(plain, memory))


def _copy(target: torch.Tensor, source: torch.Tensor) -> None:
    target.copy_(source)


def _check_dense(tensor: torch.Tensor, collective: str) -> None:
    if tensor.device.type != "cpu":
        raise UnsupportedError(
            f"{collective} over pycollective works on CPU tensors, found one on {tensor.device}; "
            "move it with tensor.cpu()"
        )
    if tensor.layout is not torch.strided or tensor.is_quantized:
        what = "quantized" if tensor.is_quantized else tensor.layout
        raise UnsupportedError(
            f"{collective} over pycollective works on dense tensors, found {what}; convert it "
            "with tensor.to_dense() or tensor.dequantize()"
        )


def reducible(tensor: torch.Tensor, collective: str) -> _core.DataType:
    """The core's name of the element type of a tensor that is to be summed.

    Raises
    ------
    UnsupportedError
        For any other dtype than float32 and int32.
    """
    kind = REDUCIBLE.get(tensor.dtype)
    if kind is None:
        raise UnsupportedError(
            f"{collective} over pycollective sums float32 and int32 in the network, found "
            f"{tensor.dtype}; convert it first, as in tensor.float()"
        )
    return kind


def signature(tensor: torch.Tensor) -> int:
    """A hash of dtype and shape: ranks whose calls differ in either notice at the first packet."""
    return zlib.crc32(f"{tensor.dtype} {tuple(tensor.shape)}".encode())


def movable(tensor: torch.Tensor) -> tuple[int, _core.DataType]:
    """Count and type of the elements as which a tensor's bytes are moved unchanged."""
    kind = REDUCIBLE.get(tensor.dtype)
    if kind is None:
        return tensor.numel() * tensor.element_size(), _core.DataType.BYTE
    return tensor.numel(), kind
