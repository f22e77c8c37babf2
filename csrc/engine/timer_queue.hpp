// One timer a slot, and which of them goes off first: a binary heap that knows where each slot is,
// so that setting and stopping a timer cost O(log W). All memory is taken at the start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/time.hpp"

namespace pycollective {

class TimerQueue {
 public:
  explicit TimerQueue(std::size_t slots) : position_(slots, kNowhere), due_(slots) {
    heap_.reserve(slots);
  }

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  // The slot whose timer goes off first, and when. The queue is not empty.
  [[nodiscard]] std::uint16_t first() const { return heap_.front(); }
  [[nodiscard]] Time first_due() const { return due_[heap_.front()]; }

  // Starts the slot's timer, which is not running.
  void start(std::uint16_t slot, Time due) {
    due_[slot] = due;
    position_[slot] = heap_.size();
    heap_.push_back(slot);
    rise(position_[slot]);
  }

  // Stops the slot's timer if it is running.
  void stop(std::uint16_t slot) {
    const std::size_t hole = position_[slot];
    if (hole == kNowhere) return;
    position_[slot] = kNowhere;
    const std::uint16_t last = heap_.back();
    heap_.pop_back();
    if (last == slot) return;
    put(hole, last);
    rise(hole);
    sink(position_[last]);
  }

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  [[nodiscard]] bool before(std::size_t a, std::size_t b) const {
    return due_[heap_[a]] < due_[heap_[b]];
  }

  void put(std::size_t index, std::uint16_t slot) {
    heap_[index] = slot;
    position_[slot] = index;
  }

  void exchange(std::size_t a, std::size_t b) {
    const std::uint16_t slot = heap_[a];
    put(a, heap_[b]);
    put(b, slot);
  }

  void rise(std::size_t index) {
    while (index > 0 && before(index, (index - 1) / 2)) {
      exchange(index, (index - 1) / 2);
      index = (index - 1) / 2;
    }
  }

  void sink(std::size_t index) {
    for (;;) {
      std::size_t least = index;
      for (std::size_t child : {2 * index + 1, 2 * index + 2}) {
        if (child < heap_.size() && before(child, least)) least = child;
      }
      if (least == index) return;
      exchange(index, least);
      index = least;
    }
  }

  std::vector<std::uint16_t> heap_;
  std::vector<std::size_t> position_;  // by slot: index in the heap
  std::vector<Time> due_;              // by slot
};

}  // namespace pycollective
