#include "switch/impairment.hpp"

#include <algorithm>

namespace p4emu {

Impairment::Fate Impairment::draw() {
  // Every frame draws the same numbers, so that one probability does not shift the others' luck.
  Fate fate{};
  fate.lost = random_.chance(config_.loss);
  fate.duplicated = random_.chance(config_.duplicate);
  fate.corrupted = random_.chance(config_.corrupt);
  fate.held = random_.chance(config_.hold);
  fate.copy_held = random_.chance(config_.hold);
  const std::uint32_t most = std::max(config_.hold_frames, 1U);
  fate.frames = 1 + random_.below(most);
  fate.copy_frames = 1 + random_.below(most);
  return fate;
}

void Impairment::hold(Time now, std::uint64_t frames, Frame frame) {
  ++counts_.held;
  held_.push_back({now + config_.hold_limit, frames, {frame.begin(), frame.end()}});
}

Impairment::Frame Impairment::corrupt(Frame frame) {
  damaged_.assign(frame.begin(), frame.end());
  // The first and the last bit of the run always change.
  const std::uint64_t bits = frame.size() * 8;
  const std::uint64_t length = std::min<std::uint64_t>(1 + random_.below(kBurstBits), bits);
  const std::uint64_t first = random_.below(bits - length + 1);
  for (std::uint64_t i = 0; i < length; ++i) {
    const std::uint64_t bit = first + i;
    if (i == 0 || i + 1 == length || random_.chance(0.5)) {
      damaged_[bit / 8] ^= static_cast<std::uint8_t>(0x80U >> (bit % 8));
    }
  }
  return damaged_;
}

std::optional<Impairment::Time> Impairment::next_deadline() const {
  std::optional<Time> next;
  for (const Held& held : held_) {
    if (!next || held.deadline < *next) next = held.deadline;
  }
  return next;
}

}  // namespace p4emu
