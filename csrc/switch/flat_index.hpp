// A hash index from fixed-size byte strings to 32-bit numbers, made for lookups from the packet
// path: keys lie side by side in one array, probing is linear, nothing is allocated by find.
// Main type: FlatIndex.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace p4emu {

class FlatIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  explicit FlatIndex(std::size_t key_bytes) : key_bytes_(key_bytes) { rehash(kMinimumCells); }

  [[nodiscard]] std::size_t size() const { return size_; }

  [[nodiscard]] std::uint32_t find(const std::uint8_t* key) const {
    for (std::size_t cell = hash(key) & mask_;; cell = (cell + 1) & mask_) {
      if (values_[cell] == kNone) return kNone;
      if (equal(cell, key)) return values_[cell];
    }
  }

  // Sets the number of a key, whether it has one or not. `value` is not kNone.
  void assign(const std::uint8_t* key, std::uint32_t value) {
    // At most half full, so that probe sequences stay short.
    if ((size_ + 1) * 2 > values_.size()) rehash(values_.size() * 2);
    std::size_t cell = hash(key) & mask_;
    while (values_[cell] != kNone && !equal(cell, key)) cell = (cell + 1) & mask_;
    if (values_[cell] == kNone) {
      std::memcpy(&keys_[cell * key_bytes_], key, key_bytes_);
      ++size_;
    }
    values_[cell] = value;
  }

  void erase(const std::uint8_t* key) {
    std::size_t hole = hash(key) & mask_;
    while (!equal(hole, key)) {
      if (values_[hole] == kNone) return;
      hole = (hole + 1) & mask_;
    }
    if (values_[hole] == kNone) return;
    // Backward shift deletion: moves later members of the probe sequence into the hole, so that no
    // tombstones are needed (Knuth, The Art of Computer Programming vol. 3, 6.4, algorithm R).
    for (std::size_t cell = (hole + 1) & mask_; values_[cell] != kNone; cell = (cell + 1) & mask_) {
      const std::size_t home = hash(&keys_[cell * key_bytes_]) & mask_;
      if (((cell - home) & mask_) < ((cell - hole) & mask_)) continue;
      std::memcpy(&keys_[hole * key_bytes_], &keys_[cell * key_bytes_], key_bytes_);
      values_[hole] = values_[cell];
      hole = cell;
    }
    values_[hole] = kNone;
    --size_;
  }

 private:
  static constexpr std::size_t kMinimumCells = 16;

  // Multiplies 8 bytes at a time into 128 bits and folds them: every input bit reaches the low
  // bits.
  [[nodiscard]] std::uint64_t hash(const std::uint8_t* key) const {
    std::uint64_t state = 0x9e3779b97f4a7c15ULL ^ key_bytes_;
    std::size_t left = key_bytes_;
    while (left > 0) {
      std::uint64_t word = 0;
      const std::size_t take = left < 8 ? left : 8;
      std::memcpy(&word, key, take);
      __extension__ using Wide = unsigned __int128;
      const Wide product = static_cast<Wide>(state ^ word) * 0xd6e8feb86659fd93ULL;
      state = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
      state += 0x9e3779b97f4a7c15ULL;
      key += take;
      left -= take;
    }
    return state ^ (state >> 32);
  }

  [[nodiscard]] bool equal(std::size_t cell, const std::uint8_t* key) const {
    return std::memcmp(&keys_[cell * key_bytes_], key, key_bytes_) == 0;
  }

  void rehash(std::size_t cells) {
    std::vector<std::uint8_t> keys(cells * key_bytes_ + 1);
    std::vector<std::uint32_t> values(cells, kNone);
    keys.swap(keys_);
    values.swap(values_);
    mask_ = cells - 1;
    size_ = 0;
    for (std::size_t cell = 0; cell < values.size(); ++cell) {
      if (values[cell] != kNone) assign(&keys[cell * key_bytes_], values[cell]);
    }
  }

  std::size_t key_bytes_;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
  std::vector<std::uint8_t> keys_;
  std::vector<std::uint32_t> values_;
};

}  // namespace p4emu
