// The internet checksum (RFC 1071), as sums that can be added up part by part.
//
// A PartialSum is a ones-complement sum of 16-bit words that is not folded yet. Parts may be summed
// in any order; each part but the last must have an even number of bytes. The words are summed as
// the machine loads them, and swapped once at the end: the sum is the same in either byte order.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace pycollective::wire {

class PartialSum {
 public:
  constexpr PartialSum() = default;

  constexpr PartialSum& operator+=(PartialSum other) {
    // Each side stays below 2^48 (see sum_words), so thousands of parts cannot leave 64 bits.
    sum_ += other.sum_;
    return *this;
  }
  friend constexpr PartialSum operator+(PartialSum a, PartialSum b) { return a += b; }

  // The sum as it stands in a packet, folded to 16 bits, as a host value.
  [[nodiscard]] constexpr std::uint16_t fold() const {
    std::uint64_t sum = sum_;
    while (sum > 0xffff) sum = (sum >> 16) + (sum & 0xffff);
    const auto word = static_cast<std::uint16_t>(sum);
    if constexpr (std::endian::native == std::endian::little) {
      return static_cast<std::uint16_t>((word << 8) | (word >> 8));
    }
    return word;
  }

  // A sum of one 16-bit field given as a host value.
  [[nodiscard]] static constexpr PartialSum of_field(std::uint16_t value) {
    if constexpr (std::endian::native == std::endian::little) {
      value = static_cast<std::uint16_t>((value << 8) | (value >> 8));
    }
    return PartialSum(value);
  }

 private:
  friend PartialSum sum_words(std::span<const std::uint8_t> bytes);
  explicit constexpr PartialSum(std::uint64_t sum) : sum_(sum) {}

  std::uint64_t sum_ = 0;
};

// Sum of the 16-bit words of `bytes` (at most 64 KiB); an odd last byte is padded with zero.
[[nodiscard]] PartialSum sum_words(std::span<const std::uint8_t> bytes);

}  // namespace pycollective::wire
