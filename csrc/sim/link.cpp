#include "sim/link.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace pycollective::sim {
namespace {

p4emu::ImpairmentConfig impairment_of(const LinkConfig& config) {
  return {.loss = config.loss,
          .duplicate = config.duplicate,
          .hold = config.hold,
          .hold_frames = config.hold_frames,
          .hold_limit = config.hold_limit,
          .corrupt = config.corrupt};
}

}  // namespace

Link::Link(const LinkConfig& config, std::uint64_t seed, std::uint64_t stream)
    : config_(config), impairment_(impairment_of(config), seed, stream) {}

void Link::configure(const LinkConfig& config) {
  config_ = config;
  impairment_.configure(impairment_of(config));
}

void Link::send(Time now, const Frame& frame, Outcome& outcome) {
  ++statistics.sent;
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
  impairment_.pass(arrival, frame, [&](std::span<const std::uint8_t> arriving) {
    ++statistics.delivered;
    outcome.deliveries.push_back({arrival, Frame(arriving.begin(), arriving.end())});
  });
  const std::uint64_t held_before = statistics.held;
  count_impairment();
  for (std::uint64_t i = held_before; i < statistics.held; ++i) {
    outcome.expiries.push_back(arrival + config_.hold_limit);
  }
}

std::vector<Frame> Link::expire(Time now) {
  std::vector<Frame> frames;
  impairment_.expire(now, [&](std::span<const std::uint8_t> frame) {
    ++statistics.delivered;
    frames.emplace_back(frame.begin(), frame.end());
  });
  return frames;
}

void Link::count_impairment() {
  const p4emu::ImpairmentCounts& counts = impairment_.counts();
  statistics.lost = counts.lost;
  statistics.duplicated = counts.duplicated;
  statistics.held = counts.held;
  statistics.corrupted = counts.corrupted;
}

}  // namespace pycollective::sim
