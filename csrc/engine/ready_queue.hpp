// Slots that wait to be sent, first in, first out, each at most once. All memory is taken at the
// start: a ring of as many entries as there are slots.
//
// An entry is a hint: by the time it is taken out, its slot may have moved on (a result came while
// a repeat was waiting). Whoever takes it out looks at the slot's state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace pycollective {

class ReadyQueue {
 public:
  explicit ReadyQueue(std::size_t slots) : ring_(slots), waits_(slots, false) {}

  [[nodiscard]] bool empty() const { return size_ == 0; }

  void push(std::uint16_t slot) {
    if (waits_[slot]) return;
    waits_[slot] = true;
    ring_[(head_ + size_) % ring_.size()] = slot;
    ++size_;
  }

  std::optional<std::uint16_t> pop() {
    if (size_ == 0) return std::nullopt;
    const std::uint16_t slot = ring_[head_];
    head_ = (head_ + 1) % ring_.size();
    --size_;
    waits_[slot] = false;
    return slot;
  }

 private:
  std::vector<std::uint16_t> ring_;
  std::vector<bool> waits_;  // by slot: is in the ring
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace pycollective
