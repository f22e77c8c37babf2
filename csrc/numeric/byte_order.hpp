// Byte order of whole lanes, in a form that the compiler turns into vector shuffles.
#pragma once

#include <bit>
#include <cstdint>

namespace pycollective::numeric {

// The value whose bytes in memory are `value`'s, most significant first; its own inverse.
[[nodiscard]] constexpr std::uint32_t big_endian(std::uint32_t value) {
  if constexpr (std::endian::native == std::endian::little) return __builtin_bswap32(value);
  return value;
}

}  // namespace pycollective::numeric
