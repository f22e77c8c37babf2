// The numeric kernels on NumPy arrays, for tests: the same functions that fill and read frames.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/core.hpp"
#include "numeric/block_float.hpp"
#include "wire/ina.hpp"

namespace pycollective::bindings {
namespace {

using FloatArray = py::array_t<float, py::array::c_style>;

std::span<const float> values_of(const FloatArray& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

void check_range(int exponent, int headroom) {
  if (exponent < numeric::kZeroBlockExponent || exponent > numeric::kMaxBlockExponent) {
    throw py::value_error("an exponent is " + std::to_string(numeric::kZeroBlockExponent) + " to " +
                          std::to_string(numeric::kMaxBlockExponent) + "; found " +
                          std::to_string(exponent));
  }
  if (headroom < 0 || headroom > numeric::kMaxHeadroom) {
    throw py::value_error("headroom is 0 to " + std::to_string(numeric::kMaxHeadroom) +
                          " bits; found " + std::to_string(headroom));
  }
}

py::bytes quantize(const FloatArray& array, int exponent, int headroom) {
  check_range(exponent, headroom);
  const auto values = values_of(array);
  const int own = numeric::block_exponent(values).exponent;
  if (exponent < own) {
    throw py::value_error("the block has exponent " + std::to_string(own) + "; " +
                          std::to_string(exponent) + " is too small for it");
  }
  std::vector<std::uint8_t> lanes(values.size() * wire::kLaneBytes);
  numeric::quantize(values, exponent, headroom, lanes.data());
  return {reinterpret_cast<const char*>(lanes.data()), lanes.size()};
}

FloatArray dequantize(const py::bytes& bytes, int exponent, int headroom) {
  check_range(exponent, headroom);
  const std::string_view lanes = bytes;
  if (lanes.size() % wire::kLaneBytes != 0) {
    throw py::value_error("lanes are 4 bytes each; found " + std::to_string(lanes.size()) +
                          " bytes");
  }
  FloatArray values(static_cast<py::ssize_t>(lanes.size() / wire::kLaneBytes));
  numeric::dequantize(reinterpret_cast<const std::uint8_t*>(lanes.data()), exponent, headroom,
                      {values.mutable_data(), static_cast<std::size_t>(values.size())});
  return values;
}

}  // namespace

void bind_numeric(py::module_& module) {
  module.def(
      "headroom_bits",
      [](unsigned world_size) {
        if (world_size < 1 || world_size > kMaxWorldSize) {
          throw py::value_error("a world has 1 to " + std::to_string(kMaxWorldSize) + " ranks");
        }
        return numeric::headroom_bits(world_size);
      },
      py::arg("world_size"));
  // noconvert: another dtype is a mistake in a test of rounding, not something to round first.
  module.def(
      "block_exponent",
      [](const FloatArray& values) {
        const auto block = numeric::block_exponent(values_of(values));
        return std::pair(block.exponent, block.special);
      },
      py::arg("values").noconvert());
  module.def("quantize", &quantize, py::arg("values").noconvert(), py::arg("exponent"),
             py::arg("headroom"));
  module.def("dequantize", &dequantize, py::arg("lanes"), py::arg("exponent"), py::arg("headroom"));
}

}  // namespace pycollective::bindings
