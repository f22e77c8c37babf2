#include "numeric/reference.hpp"

#include <algorithm>
#include <cmath>

namespace pycollective::numeric::reference {

BlockExponent block_exponent(std::span<const float> values) {
  BlockExponent block;
  for (float value : values) {
    if (!std::isfinite(value)) {
      block.special = true;
    } else if (value != 0) {
      block.exponent = std::max({block.exponent, std::ilogb(value), kMinBlockExponent});
    }
  }
  return block;
}

std::int32_t quantize(float value, int exponent, int headroom) {
  if (!std::isfinite(value)) return 0;
  // Exact in fp64; nearbyint rounds half to even.
  const double scaled = std::ldexp(static_cast<double>(value), 30 - headroom - exponent);
  return static_cast<std::int32_t>(std::nearbyint(scaled));
}

float dequantize(std::int32_t sum, int exponent, int headroom) {
  return static_cast<float>(std::ldexp(static_cast<double>(sum), exponent - 30 + headroom));
}

}  // namespace pycollective::numeric::reference
