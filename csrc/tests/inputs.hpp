// Blocks of floats for tests, one of each class that the numeric code treats differently.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace inputs {

enum class Class {
  kNormal,    // gaussian, like gradients
  kMixed,     // magnitudes spread over the whole fp32 range
  kDenormal,  // denormals only
  kHuge,      // near the largest finite number, both signs
  kTiny,      // around the smallest normal number
  kZero,      // both zeros
  kAnyBits,   // uniformly random bits, NaN and infinities among them
};

inline constexpr Class kAll[] = {Class::kNormal, Class::kMixed, Class::kDenormal, Class::kHuge,
                                 Class::kTiny,   Class::kZero,  Class::kAnyBits};

inline float element(Class kind, std::mt19937& random) {
  const auto bits = static_cast<std::uint32_t>(random());
  const float sign = (bits & 1) != 0 ? -1.0F : 1.0F;
  const float unit = static_cast<float>(bits >> 8) * 0x1p-24F;
  switch (kind) {
    case Class::kNormal:
      return std::normal_distribution<float>()(random);
    case Class::kMixed:
      return sign * std::ldexp(1 + unit, static_cast<int>(random() % 250) - 125);
    case Class::kDenormal:
      return std::bit_cast<float>(bits & 0x807fffff);
    case Class::kHuge:
      return sign * std::numeric_limits<float>::max() * (1 - unit * 0x1p-10F);
    case Class::kTiny:
      return sign * std::numeric_limits<float>::min() * (2 * unit);
    case Class::kZero:
      return sign * 0.0F;
    case Class::kAnyBits:
      return std::bit_cast<float>(bits);
  }
  return 0;
}

inline std::vector<float> block(Class kind, std::size_t count, std::mt19937& random) {
  std::vector<float> values(count);
  for (float& value : values) value = element(kind, random);
  return values;
}

}  // namespace inputs
