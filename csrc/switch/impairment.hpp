// What a bad cable does to frames in one direction: loses them, doubles them, holds them back until
// later frames have passed, changes their bits. Decided by a seed alone, so that a run can be
// repeated. No I/O and no clock: switch ports give it the time, and so does the simulator, whose
// links add delay and rate. Main types: ImpairmentConfig, Impairment.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "switch/random.hpp"

namespace p4emu {

// Longest run of bits that corruption touches. The ones-complement sums of IPv4 and UDP notice
// every change that is confined to 15 consecutive bits; wider damage is what a link's own CRC is
// for.
inline constexpr std::uint32_t kBurstBits = 15;

// Probabilities are for each frame, and independent of each other.
struct ImpairmentConfig {
  double loss = 0;
  double duplicate = 0;
  double hold = 0;  // held back until 1 to `hold_frames` later frames have passed
  std::uint32_t hold_frames = 50;
  std::chrono::nanoseconds hold_limit{2'000'000};  // or until this long has passed
  double corrupt = 0;                              // a burst of 1 to kBurstBits changed bits

  // Whether it does anything at all.
  [[nodiscard]] bool active() const { return loss > 0 || duplicate > 0 || hold > 0 || corrupt > 0; }
};

struct ImpairmentCounts {
  std::uint64_t lost = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t held = 0;
  std::uint64_t corrupted = 0;
};

class Impairment {
 public:
  using Time = std::chrono::nanoseconds;  // since any origin; it must not go back
  using Frame = std::span<const std::uint8_t>;

  // `stream` tells impairments of one seed apart.
  Impairment(const ImpairmentConfig& config, std::uint64_t seed, std::uint64_t stream = 0)
      : config_(config), random_(seed, stream) {}
  // A good cable.
  Impairment() : Impairment({}, 0) {}

  // Frames that are held back stay so, on the terms they were held back on.
  void configure(const ImpairmentConfig& config) { config_ = config; }
  void reseed(std::uint64_t seed, std::uint64_t stream = 0) { random_ = Random(seed, stream); }

  // A frame goes in; `out` is called for each that comes out, in order: a duplicate, the frame, and
  // behind it the earlier ones it lets go. Frames are valid during the call of `out` only.
  template <std::invocable<Frame> Out>
  void pass(Time now, Frame frame, Out&& out);

  // Lets go of what has been held back for its `hold_limit`.
  template <std::invocable<Frame> Out>
  void expire(Time now, Out&& out);

  // When `expire` has something to do, if it ever will.
  [[nodiscard]] std::optional<Time> next_deadline() const;
  [[nodiscard]] std::size_t held() const { return held_.size(); }
  [[nodiscard]] const ImpairmentConfig& config() const { return config_; }
  [[nodiscard]] const ImpairmentCounts& counts() const { return counts_; }

 private:
  struct Held {
    Time deadline;
    std::uint64_t remaining;  // frames that have still to pass
    std::vector<std::uint8_t> frame;
  };
  // What is to happen to one frame.
  struct Fate {
    bool lost, duplicated, corrupted, held, copy_held;
    std::uint64_t frames, copy_frames;
  };

  Fate draw();
  void hold(Time now, std::uint64_t frames, Frame frame);
  // The frame with changed bits, in memory of this object.
  Frame corrupt(Frame frame);
  // Takes those out of the held frames that satisfy the predicate, in the order they came.
  template <typename Due>
  std::vector<Held> take(Due&& due);

  ImpairmentConfig config_;
  Random random_;
  std::vector<Held> held_;
  std::vector<std::uint8_t> damaged_;
  ImpairmentCounts counts_;
};

template <typename Due>
std::vector<Impairment::Held> Impairment::take(Due&& due) {
  std::vector<Held> taken;
  std::erase_if(held_, [&](Held& held) {
    if (!due(held)) return false;
    taken.push_back(std::move(held));
    return true;
  });
  return taken;
}

template <std::invocable<Impairment::Frame> Out>
void Impairment::pass(Time now, Frame frame, Out&& out) {
  const Fate fate = draw();
  const std::vector<Held> released = take([](Held& held) { return --held.remaining == 0; });
  if (fate.lost) {
    ++counts_.lost;
  } else {
    if (fate.duplicated) {
      ++counts_.duplicated;
      fate.copy_held ? hold(now, fate.copy_frames, frame) : out(frame);
    }
    if (fate.corrupted && !frame.empty()) {
      ++counts_.corrupted;
      frame = corrupt(frame);
    }
    fate.held ? hold(now, fate.frames, frame) : out(frame);
  }
  for (const Held& late : released) out(Frame(late.frame));
}

template <std::invocable<Impairment::Frame> Out>
void Impairment::expire(Time now, Out&& out) {
  for (const Held& late : take([now](const Held& held) { return held.deadline <= now; })) {
    out(Frame(late.frame));
  }
}

}  // namespace p4emu
