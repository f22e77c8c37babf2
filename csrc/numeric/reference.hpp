// The kernels again, one element at a time and in the words of docs/protocol.md: what the fast ones
// are tested against. Not used in the engine.
#pragma once

#include <cstdint>
#include <span>

#include "numeric/block_float.hpp"

namespace pycollective::numeric::reference {

[[nodiscard]] BlockExponent block_exponent(std::span<const float> values);
// One value as a lane, as a host integer.
[[nodiscard]] std::int32_t quantize(float value, int exponent, int headroom);
// One sum as a value.
[[nodiscard]] float dequantize(std::int32_t sum, int exponent, int headroom);

}  // namespace pycollective::numeric::reference
