#include "numeric/lanes.hpp"

#include <cstring>

#include "numeric/byte_order.hpp"
#include "wire/multiversion.hpp"

namespace pycollective::numeric {
namespace {

PC_MULTIVERSION void swap_words(const std::uint8_t* from, std::size_t count, std::uint8_t* to) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t word;
    std::memcpy(&word, from + 4 * i, sizeof(word));
    word = big_endian(word);
    std::memcpy(to + 4 * i, &word, sizeof(word));
  }
}

}  // namespace

void store_int32(std::span<const std::int32_t> values, std::uint8_t* lanes) {
  swap_words(reinterpret_cast<const std::uint8_t*>(values.data()), values.size(), lanes);
}

void load_int32(const std::uint8_t* lanes, std::span<std::int32_t> values) {
  swap_words(lanes, values.size(), reinterpret_cast<std::uint8_t*>(values.data()));
}

std::size_t store_bytes(std::span<const std::uint8_t> bytes, std::uint8_t* lanes) {
  if (bytes.empty()) return 0;
  const std::size_t count = (bytes.size() + 3) / 4;
  std::memset(lanes + 4 * (count - 1), 0, 4);
  std::memcpy(lanes, bytes.data(), bytes.size());
  return count;
}

void load_bytes(const std::uint8_t* lanes, std::span<std::uint8_t> bytes) {
  if (!bytes.empty()) std::memcpy(bytes.data(), lanes, bytes.size());
}

void clear_lanes(std::uint8_t* lanes, std::size_t first, std::size_t last) {
  if (first < last) std::memset(lanes + 4 * first, 0, 4 * (last - first));
}

}  // namespace pycollective::numeric
