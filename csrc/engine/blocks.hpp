// How an array is cut into blocks of at most INA_LANES lanes: all full but the last.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pycollective {

class Blocks {
 public:
  // `count` elements, `size` of them in a full block.
  Blocks(std::size_t count, std::size_t size) : count_(count), size_(size) {}

  [[nodiscard]] std::uint32_t number() const {
    return static_cast<std::uint32_t>((count_ + size_ - 1) / size_);
  }
  [[nodiscard]] std::size_t length(std::uint32_t block) const {
    return std::min(size_, count_ - block * size_);
  }
  template <typename T>
  [[nodiscard]] std::span<T> of(T* array, std::uint32_t block) const {
    return {array + block * size_, length(block)};
  }

 private:
  std::size_t count_;
  std::size_t size_;
};

}  // namespace pycollective
