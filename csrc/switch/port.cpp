#include "switch/port.hpp"

#include <algorithm>
#include <system_error>

namespace p4emu {

PortCounts Port::counts() const {
  return {.io = io_->counts(),
          .receive = sides_[0].counts(),
          .transmit = sides_[1].counts(),
          .capture_errors = capture_errors_};
}

void Port::impair(Direction direction, const ImpairmentConfig& config, std::uint64_t seed) {
  Impairment& impairment = side(direction);
  impairment.configure(config);
  impairment.reseed(seed, static_cast<std::uint64_t>(direction));
  // Frames held back count those that pass, so they are let go in their turn.
  impaired_[static_cast<std::size_t>(direction)] = config.active() || impairment.held() > 0;
}

void Port::send(Time now, std::span<const std::uint8_t> frame) {
  if (capture_ != nullptr) record(frame);
  if (impaired_[1]) {
    side(Direction::kTransmit).pass(now, frame, [&](auto through) { io_->queue(through); });
  } else {
    io_->queue(frame);
  }
}

std::optional<Port::Time> Port::next_deadline() const {
  const std::optional<Time> in = sides_[0].next_deadline();
  const std::optional<Time> out = sides_[1].next_deadline();
  if (!in || !out) return in ? in : out;
  return std::min(*in, *out);
}

void Port::record(std::span<const std::uint8_t> frame) {
  try {
    capture_->write(std::chrono::system_clock::now().time_since_epoch(), frame);
  } catch (const std::system_error&) {
    end_capture();
  }
}

void Port::flush() {
  io_->flush();
  if (capture_ == nullptr) return;
  try {
    capture_->flush();
  } catch (const std::system_error&) {
    end_capture();
  }
}

void Port::end_capture() {
  capture_.reset();
  ++capture_errors_;
}

}  // namespace p4emu
