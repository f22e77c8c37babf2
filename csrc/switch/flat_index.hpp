// A hash index from keys of a fixed number of 64-bit words to 32-bit numbers, made for lookups from
// the packet path: a key and its number lie side by side in one array, so that a lookup mostly
// touches one cache line; probing is linear; find allocates nothing. Main type: FlatIndex.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace p4emu {

class FlatIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  explicit FlatIndex(std::size_t words) : words_(words) { resize(kMinimumCells); }

  [[nodiscard]] std::size_t size() const { return size_; }

  [[nodiscard]] std::uint32_t find(const std::uint64_t* key) const {
    for (std::size_t at = hash(key) & mask_;; at = (at + 1) & mask_) {
      const std::uint64_t* cell = cell_at(at);
      if (number_of(cell) == kNone) return kNone;
      if (equal(cell, key)) return number_of(cell);
    }
  }

  // Sets the number of a key, whether it has one or not. `number` is not kNone.
  void assign(const std::uint64_t* key, std::uint32_t number) {
    // At most half full, so that probe sequences stay short.
    if ((size_ + 1) * 2 > mask_ + 1) grow();
    std::size_t at = hash(key) & mask_;
    while (number_of(cell_at(at)) != kNone && !equal(cell_at(at), key)) at = (at + 1) & mask_;
    std::uint64_t* cell = cell_at(at);
    if (number_of(cell) == kNone) {
      std::memcpy(cell, key, words_ * sizeof(std::uint64_t));
      ++size_;
    }
    cell[words_] = number;
  }

  void erase(const std::uint64_t* key) {
    std::size_t hole = hash(key) & mask_;
    while (number_of(cell_at(hole)) != kNone && !equal(cell_at(hole), key)) {
      hole = (hole + 1) & mask_;
    }
    if (number_of(cell_at(hole)) == kNone) return;
    // Backward shift deletion: moves later members of the probe sequence into the hole, so that no
    // tombstones are needed (Knuth, The Art of Computer Programming vol. 3, 6.4, algorithm R).
    for (std::size_t at = (hole + 1) & mask_; number_of(cell_at(at)) != kNone;
         at = (at + 1) & mask_) {
      const std::size_t home = hash(cell_at(at)) & mask_;
      if (((at - home) & mask_) < ((at - hole) & mask_)) continue;
      std::memcpy(cell_at(hole), cell_at(at), (words_ + 1) * sizeof(std::uint64_t));
      hole = at;
    }
    cell_at(hole)[words_] = kNone;
    --size_;
  }

 private:
  static constexpr std::size_t kMinimumCells = 16;

  // Multiplies a word at a time into 128 bits and folds them: every input bit reaches the low bits.
  [[nodiscard]] std::uint64_t hash(const std::uint64_t* key) const {
    std::uint64_t state = 0x9e3779b97f4a7c15ULL;
    for (std::size_t i = 0; i < words_; ++i) {
      __extension__ using Wide = unsigned __int128;
      const Wide product = static_cast<Wide>(state ^ key[i]) * 0xd6e8feb86659fd93ULL;
      state = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
      state += 0x9e3779b97f4a7c15ULL;
    }
    return state ^ (state >> 32);
  }

  [[nodiscard]] const std::uint64_t* cell_at(std::size_t at) const {
    return &cells_[at * (words_ + 1)];
  }
  [[nodiscard]] std::uint64_t* cell_at(std::size_t at) { return &cells_[at * (words_ + 1)]; }
  [[nodiscard]] std::uint32_t number_of(const std::uint64_t* cell) const {
    return static_cast<std::uint32_t>(cell[words_]);
  }

  [[nodiscard]] bool equal(const std::uint64_t* cell, const std::uint64_t* key) const {
    for (std::size_t i = 0; i < words_; ++i) {
      if (cell[i] != key[i]) return false;
    }
    return true;
  }

  void resize(std::size_t cells) {
    // A number of kNone marks an empty cell; what its key is does not matter.
    cells_.assign(cells * (words_ + 1), kNone);
    mask_ = cells - 1;
    size_ = 0;
  }

  void grow() {
    const std::vector<std::uint64_t> before = std::move(cells_);
    resize((mask_ + 1) * 2);
    for (std::size_t at = 0; at < before.size(); at += words_ + 1) {
      if (number_of(&before[at]) != kNone) assign(&before[at], number_of(&before[at]));
    }
  }

  std::size_t words_;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
  std::vector<std::uint64_t> cells_;  // words_ words of key, then the number
};

}  // namespace p4emu
