#include "wire/checksum.hpp"

#include <cstring>

#include "wire/multiversion.hpp"

namespace pycollective::wire {
namespace {

// Sums 32-bit words in 64-bit accumulators, which is a sum of the 16-bit words modulo 0xffff. A
// plain loop over independent words: the compiler vectorises it.
PC_MULTIVERSION std::uint64_t sum_words32(const std::uint8_t* bytes, std::size_t words) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint32_t word;
    std::memcpy(&word, bytes + 4 * i, 4);
    sum += word;
  }
  return sum;
}

}  // namespace

PartialSum sum_words(std::span<const std::uint8_t> bytes) {
  const std::size_t words = bytes.size() / 4;
  std::uint64_t sum = sum_words32(bytes.data(), words);
  std::uint8_t rest[4] = {0, 0, 0, 0};
  const std::size_t tail = bytes.size() - 4 * words;
  if (tail > 0) std::memcpy(rest, bytes.data() + 4 * words, tail);
  std::uint32_t last;
  std::memcpy(&last, rest, 4);
  sum += last;
  return PartialSum(sum);
}

}  // namespace pycollective::wire
