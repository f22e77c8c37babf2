#include "sim/link.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pycollective::sim {
namespace {

// Changes 1 to kBurstBits consecutive bits; the first and last of the run always change.
void corrupt(Frame& frame, Random& random) {
  const std::uint64_t bits = frame.size() * 8;
  const std::uint64_t length = std::min<std::uint64_t>(1 + random.below(kBurstBits), bits);
  const std::uint64_t first = random.below(bits - length + 1);
  for (std::uint64_t i = 0; i < length; ++i) {
    const std::uint64_t bit = first + i;
    if (i == 0 || i + 1 == length || random.chance(0.5)) {
      frame[bit / 8] ^= static_cast<std::uint8_t>(0x80U >> (bit % 8));
    }
  }
}

}  // namespace

Link::Link(const LinkConfig& config, std::uint64_t seed, std::uint64_t stream)
    : config_(config), random_(seed, stream) {}

void Link::send(Time now, Frame frame, Outcome& outcome) {
  ++statistics.sent;
  // Every frame draws the same numbers, so that one probability does not shift the others' luck.
  const bool lose = random_.chance(config_.loss);
  const bool duplicate = random_.chance(config_.duplicate);
  const bool corrupted = random_.chance(config_.corrupt);
  const bool hold = random_.chance(config_.hold);
  const bool hold_copy = random_.chance(config_.hold);
  const std::uint64_t frames = 1 + random_.below(std::max(config_.hold_frames, 1U));
  const std::uint64_t frames_copy = 1 + random_.below(std::max(config_.hold_frames, 1U));

  Time departure = now;
  if (config_.bits_per_second > 0) {
    std::erase_if(departures_, [now](Time at) { return at <= now; });
    if (config_.queue_frames > 0 && departures_.size() >= config_.queue_frames) {
      ++statistics.queue_drops;
      return;
    }
    const double bits = static_cast<double>(frame.size()) * 8;
    departure = std::max(now, free_at_) +
                Time(static_cast<Time::rep>(std::llround(bits / config_.bits_per_second * 1e9)));
    free_at_ = departure;
    if (config_.queue_frames > 0) departures_.push_back(departure);
  }
  const Time arrival = departure + config_.delay;

  // Frames held back earlier come out behind the one that lets them go.
  std::vector<Frame> released;
  for (Held& held : held_) {
    if (--held.remaining == 0) released.push_back(std::move(held.frame));
  }
  std::erase_if(held_, [](const Held& held) { return held.remaining == 0; });

  if (lose) {
    ++statistics.lost;
  } else {
    if (duplicate) {
      ++statistics.duplicated;
      forward(arrival, frame, hold_copy, frames_copy, outcome);
    }
    if (corrupted) {
      ++statistics.corrupted;
      corrupt(frame, random_);
    }
    forward(arrival, std::move(frame), hold, frames, outcome);
  }
  for (Frame& late : released) {
    ++statistics.delivered;
    outcome.deliveries.push_back({arrival, std::move(late)});
  }
}

void Link::forward(Time arrival, Frame frame, bool hold, std::uint64_t frames, Outcome& outcome) {
  if (!hold) {
    ++statistics.delivered;
    outcome.deliveries.push_back({arrival, std::move(frame)});
    return;
  }
  ++statistics.held;
  outcome.expiries.push_back({arrival + config_.hold_limit, next_token_});
  held_.push_back({next_token_++, frames, std::move(frame)});
}

bool Link::expire(std::uint64_t token, Frame& frame) {
  const auto it = std::find_if(held_.begin(), held_.end(),
                               [token](const Held& held) { return held.token == token; });
  if (it == held_.end()) return false;
  frame = std::move(it->frame);
  held_.erase(it);
  ++statistics.delivered;
  return true;
}

}  // namespace pycollective::sim
