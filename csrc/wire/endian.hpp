// Big-endian integers of fixed size that live in packet headers.
//
// BigEndian<N> is N bytes, has alignment 1 and no padding, so that a struct of them is a header's
// exact layout. Values go in and out by `get` and `set`; there is no implicit conversion, because a
// forgotten byte swap should not compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace pycollective::wire {

template <std::size_t N>
struct BigEndian {
  static_assert(N == 2 || N == 4);
  using Value = std::conditional_t<N == 2, std::uint16_t, std::uint32_t>;

  std::uint8_t bytes[N];

  [[nodiscard]] constexpr Value get() const {
    Value value = 0;
    for (std::uint8_t byte : bytes) value = static_cast<Value>((value << 8) | byte);
    return value;
  }

  constexpr void set(Value value) {
    for (std::size_t i = 0; i < N; ++i) {
      bytes[i] = static_cast<std::uint8_t>(value >> (8 * (N - 1 - i)));
    }
  }
};

using Big16 = BigEndian<2>;
using Big32 = BigEndian<4>;

static_assert(sizeof(Big16) == 2 && alignof(Big16) == 1);
static_assert(sizeof(Big32) == 4 && alignof(Big32) == 1);

}  // namespace pycollective::wire
