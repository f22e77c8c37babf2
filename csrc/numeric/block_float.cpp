#include "numeric/block_float.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "numeric/byte_order.hpp"
#include "numeric/scale.hpp"
#include "wire/multiversion.hpp"

namespace pycollective::numeric {
namespace {

constexpr std::uint32_t kMagnitude = 0x7fffffff;
constexpr std::uint32_t kInfinity = 0x7f800000;

struct Magnitudes {
  std::int32_t largest_finite;  // bits of the largest finite |x|
  std::int32_t largest;         // bits of the largest |x|, NaN above infinity
};

// Magnitudes order as their bits do, so both maxima are integer ones. Signed, because that is the
// comparison every vector unit has.
PC_MULTIVERSION Magnitudes magnitudes(const float* values, std::size_t count) {
  std::int32_t largest_finite = 0;
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, values + i, sizeof(bits));
    const auto magnitude = static_cast<std::int32_t>(bits & kMagnitude);
    const std::int32_t finite = magnitude < static_cast<std::int32_t>(kInfinity) ? magnitude : 0;
    largest_finite = std::max(largest_finite, finite);
    largest = std::max(largest, magnitude);
  }
  return {largest_finite, largest};
}

// The product with two factors is exact: the first only moves the exponent within the normal range
// or up from the denormals, and a product that becomes denormal is far below one half.
PC_MULTIVERSION void quantize_lanes(const float* values, std::size_t count, float factor,
                                    float second_factor, std::uint8_t* lanes) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, values + i, sizeof(bits));
    bits = (bits & kInfinity) == kInfinity ? 0 : bits;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    const auto q = static_cast<std::int32_t>(std::rint(value * factor * second_factor));
    const std::uint32_t lane = big_endian(static_cast<std::uint32_t>(q));
    std::memcpy(lanes + 4 * i, &lane, sizeof(lane));
  }
}

// For results that are normal numbers or zero: the conversion to fp32 is the one rounding, the
// product is exact or overflows to infinity.
PC_MULTIVERSION void dequantize_normal(const std::uint8_t* lanes, std::size_t count, float factor,
                                       float* values) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t lane;
    std::memcpy(&lane, lanes + 4 * i, sizeof(lane));
    values[i] = static_cast<float>(static_cast<std::int32_t>(big_endian(lane))) * factor;
  }
}

// For results that may be denormal, where the way through fp32 would round twice: fp64 holds the
// product exactly.
PC_MULTIVERSION void dequantize_denormal(const std::uint8_t* lanes, std::size_t count,
                                         double factor, float* values) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t lane;
    std::memcpy(&lane, lanes + 4 * i, sizeof(lane));
    values[i] = static_cast<float>(
        static_cast<double>(static_cast<std::int32_t>(big_endian(lane))) * factor);
  }
}

}  // namespace

BlockExponent block_exponent(std::span<const float> values) {
  const Magnitudes found = magnitudes(values.data(), values.size());
  BlockExponent block;
  block.special = found.largest >= static_cast<std::int32_t>(kInfinity);
  if (found.largest_finite > 0) {
    // A biased exponent of 0 is a denormal and counts as 1.
    block.exponent = std::max(found.largest_finite >> 23, 1) - 127;
  }
  return block;
}

void quantize(std::span<const float> values, int exponent, int headroom, std::uint8_t* lanes) {
  // -102 to 157: more than one factor holds.
  const int shift = 30 - headroom - exponent;
  const int first = std::min(shift, 127);
  quantize_lanes(values.data(), values.size(), power_of_two(first), power_of_two(shift - first),
                 lanes);
}

void dequantize(const std::uint8_t* lanes, int exponent, int headroom, std::span<float> values) {
  // -157 to 102.
  const int shift = exponent - 30 + headroom;
  if (shift >= -126) {
    dequantize_normal(lanes, values.size(), power_of_two(shift), values.data());
  } else {
    dequantize_denormal(lanes, values.size(), std::ldexp(1.0, shift), values.data());
  }
}

}  // namespace pycollective::numeric
