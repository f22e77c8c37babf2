"""The numeric kernels as Python sees them, against NumPy's own arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pycollective import _core

floats32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(floats32, max_size=40))
def test_the_block_exponent_is_the_largest_of_its_elements(values: list[float]) -> None:
    array = np.array(values, dtype=np.float32)
    nonzero = np.abs(array[array != 0]).astype(np.float64)
    exponents = np.maximum(np.floor(np.log2(nonzero)), -126)
    expected = int(exponents.max()) if nonzero.size else -127
    assert _core.block_exponent(array) == (expected, False)


@given(st.lists(floats32, min_size=1, max_size=40), st.integers(0, 5), st.integers(0, 20))
def test_quantizing_rounds_half_to_even(values: list[float], headroom: int, above: int) -> None:
    array = np.array(values, dtype=np.float32)
    exponent = min(_core.block_exponent(array)[0] + above, 127)
    lanes = np.frombuffer(_core.quantize(array, exponent, headroom), dtype=">i4")
    exact = array.astype(np.float64) * 2.0 ** (30 - headroom - exponent)
    assert (lanes == np.rint(exact)).all()


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=40), st.integers(-100, 90))
def test_dequantizing_rounds_once(lanes: list[int], exponent: int) -> None:
    raw = np.array(lanes, dtype=">i4").tobytes()
    values = _core.dequantize(raw, exponent, 2)
    exact = np.array(lanes, dtype=np.float64) * 2.0 ** (exponent - 28)
    assert (values == exact.astype(np.float32)).all()
    assert values.dtype == np.float32


def test_special_values_are_noticed_and_travel_as_zero() -> None:
    array = np.array([1.5, np.nan, -np.inf], dtype=np.float32)
    assert _core.block_exponent(array) == (0, True)
    lanes = np.frombuffer(_core.quantize(array, 0, 0), dtype=">i4")
    assert lanes.tolist() == [3 << 29, 0, 0]


def test_headroom_is_enough_for_every_world() -> None:
    assert [_core.headroom_bits(n) for n in (1, 2, 3, 4, 5, 8, 9, 32)] == [0, 1, 2, 2, 3, 3, 4, 5]
    with pytest.raises(ValueError, match="1 to 32"):
        _core.headroom_bits(33)


def test_parameters_out_of_range_are_refused() -> None:
    array = np.ones(4, dtype=np.float32)
    with pytest.raises(ValueError, match="exponent is -127 to 127"):
        _core.quantize(array, 128, 0)
    with pytest.raises(ValueError, match="headroom is 0 to 5"):
        _core.quantize(array, 0, 6)
    with pytest.raises(ValueError, match="-1 is too small"):
        _core.quantize(array, -1, 0)
    with pytest.raises(ValueError, match="4 bytes each"):
        _core.dequantize(b"123", 0, 0)


def test_other_dtypes_and_strides_are_not_converted_silently() -> None:
    with pytest.raises(TypeError):
        _core.quantize(np.ones(4), 0, 0)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        _core.quantize(np.ones(8, dtype=np.float32)[::2], 0, 0)
