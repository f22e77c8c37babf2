#include "numeric/special.hpp"

#include <bit>
#include <cstring>
#include <limits>

#include "numeric/byte_order.hpp"

// These run for blocks with a NaN or an infinity only, so they are written for clarity.
namespace pycollective::numeric {
namespace {

constexpr std::uint32_t kCountMask = (1U << 10) - 1;

constexpr std::uint32_t code_of(Special kind) {
  switch (kind) {
    case Special::kNone:
      return 0;
    case Special::kNan:
      return kNanCode;
    case Special::kPositiveInfinity:
      return kPositiveInfinityCode;
    case Special::kNegativeInfinity:
      return kNegativeInfinityCode;
  }
  return 0;
}

// By bits, because a compiler that is told there are no NaNs would drop the test.
Special kind_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7f800000) != 0x7f800000) return Special::kNone;
  if ((bits & 0x007fffff) != 0) return Special::kNan;
  return (bits >> 31) != 0 ? Special::kNegativeInfinity : Special::kPositiveInfinity;
}

Special kind_of_sum(std::uint32_t sum) {
  const bool nan = (sum & kCountMask) != 0;
  const bool positive = (sum / kPositiveInfinityCode & kCountMask) != 0;
  const bool negative = (sum / kNegativeInfinityCode & kCountMask) != 0;
  if (nan || (positive && negative)) return Special::kNan;
  if (positive) return Special::kPositiveInfinity;
  return negative ? Special::kNegativeInfinity : Special::kNone;
}

}  // namespace

void classify(std::span<const float> values, std::span<Special> kinds) {
  for (std::size_t i = 0; i < values.size(); ++i) kinds[i] = kind_of(values[i]);
}

void store_codes(std::span<const Special> kinds, std::uint8_t* lanes) {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::uint32_t lane = big_endian(code_of(kinds[i]));
    std::memcpy(lanes + 4 * i, &lane, sizeof(lane));
  }
}

void load_codes(const std::uint8_t* lanes, std::span<Special> kinds) {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    std::uint32_t lane;
    std::memcpy(&lane, lanes + 4 * i, sizeof(lane));
    kinds[i] = kind_of_sum(big_endian(lane));
  }
}

void apply(std::span<const Special> kinds, std::span<float> values) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    switch (kinds[i]) {
      case Special::kNone:
        break;
      case Special::kNan:
        values[i] = std::bit_cast<float>(0x7fc00000U);
        break;
      case Special::kPositiveInfinity:
        values[i] = kInfinity;
        break;
      case Special::kNegativeInfinity:
        values[i] = -kInfinity;
        break;
    }
  }
}

}  // namespace pycollective::numeric
