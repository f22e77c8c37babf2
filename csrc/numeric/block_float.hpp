// Block floating point: how fp32 values travel as signed 32-bit lanes (docs/protocol.md, section
// 4).
//
// A block of values shares one exponent E, agreed between the ranks before the values are sent.
// Each value becomes q = round_half_even(x * 2^(30 - h - E)) with h = ceil(log2 world size) bits of
// headroom; the sum of all ranks' q comes back as q * 2^(E - 30 + h), rounded once to fp32.
//
// No SUM can overflow, whatever the inputs. E is at least every rank's own exponent, so a finite x
// has |x| <= (2 - 2^-23) * 2^E, hence |q| <= 2^(31-h) - 2^(7-h). The right side is a whole number
// for h <= 5 (world size <= 32), so rounding cannot pass it, and world size <= 2^h such numbers sum
// to less than 2^31.
//
// Lanes are written and read big-endian in the frame itself, in one pass. The results are the same
// bits for every vector width and equal to reference.hpp's. Floating point rounding must be to
// nearest, the default.
#pragma once

#include <cstdint>
#include <span>

namespace pycollective::numeric {

// Exponent of a block without a finite non-zero element.
inline constexpr int kZeroBlockExponent = -127;
// Exponent of a block whose largest element is denormal, and the least of all others.
inline constexpr int kMinBlockExponent = -126;
inline constexpr int kMaxBlockExponent = 127;
// Headroom bits for 32 ranks.
inline constexpr int kMaxHeadroom = 5;

// ceil(log2 world_size): 0 for 1 rank, 5 for 32.
[[nodiscard]] constexpr int headroom_bits(unsigned world_size) {
  int bits = 0;
  while ((1U << bits) < world_size) ++bits;
  return bits;
}

struct BlockExponent {
  // The largest floor(log2 |x|) over the finite non-zero elements, at least kMinBlockExponent;
  // kZeroBlockExponent when there are none.
  int exponent = kZeroBlockExponent;
  // Some element is NaN or infinite.
  bool special = false;

  friend bool operator==(const BlockExponent&, const BlockExponent&) = default;
};

[[nodiscard]] BlockExponent block_exponent(std::span<const float> values);

// Writes values.size() lanes (4 bytes each) to `lanes`. NaN and infinities are written as 0.
// Requires kZeroBlockExponent <= exponent <= kMaxBlockExponent, exponent at least
// block_exponent(values).exponent, and 0 <= headroom <= kMaxHeadroom.
void quantize(std::span<const float> values, int exponent, int headroom, std::uint8_t* lanes);

// Reads values.size() lanes and writes what they stand for. A sum beyond the fp32 range becomes an
// infinity, as an IEEE sum would. The same requirements on exponent and headroom.
void dequantize(const std::uint8_t* lanes, int exponent, int headroom, std::span<float> values);

}  // namespace pycollective::numeric
