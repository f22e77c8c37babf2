// Powers of two as fp32 factors, shared by the kernels and their references.
#pragma once

#include <bit>
#include <cstdint>

namespace pycollective::numeric {

// 2^exponent for a normal fp32 result, made from its bits. Requires -126 <= exponent <= 127.
[[nodiscard]] constexpr float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

}  // namespace pycollective::numeric
