// One direction of one cable between a host and a switch port: delay, rate, queue, and everything
// a network may do to a frame (lose it, double it, hold it back, change its bits).
//
// A link decides what becomes of a frame when it is put on the wire; it keeps held-back frames and
// knows no clock but the times it is given. Who delivers is the simulation. Main types: LinkConfig,
// Link, Delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/time.hpp"
#include "sim/random.hpp"

namespace pycollective::sim {

// Times are since the start of the simulation.
using Frame = std::vector<std::uint8_t>;

// Probabilities are per frame and independent of each other.
struct LinkConfig {
  Time delay{5'000};             // 5 us, a short path through a kernel
  double bits_per_second = 0;    // 0: frames take no time on the wire
  std::size_t queue_frames = 0;  // frames that may wait for the wire, 0: any number
  double loss = 0;
  double duplicate = 0;
  double hold = 0;  // held back until up to `hold_frames` later frames have passed
  std::uint32_t hold_frames = 50;
  Time hold_limit{10'000'000};  // 10 ms: or until this long has passed, when the link is quiet
  double corrupt = 0;           // a burst of 1 to kBurstBits changed bits
};

// Longest run of bits that corruption touches. The ones-complement sums of IPv4 and UDP notice
// every change that is confined to 15 consecutive bits; wider damage is what a link's own CRC is
// for.
inline constexpr std::uint32_t kBurstBits = 15;

struct LinkStatistics {
  std::uint64_t sent = 0;       // frames given to the link
  std::uint64_t delivered = 0;  // frames that came out, copies included
  std::uint64_t lost = 0;
  std::uint64_t queue_drops = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t held = 0;
  std::uint64_t corrupted = 0;
};

// A frame that comes out of the link at `at`.
struct Delivery {
  Time at;
  Frame frame;
};

// What `Link::send` decided: frames that arrive, and the latest moments at which `Link::expire`
// is to be called for frames that were held back.
struct Outcome {
  std::vector<Delivery> deliveries;
  struct Expiry {
    Time at;
    std::uint64_t token;
  };
  std::vector<Expiry> expiries;
};

class Link {
 public:
  Link(const LinkConfig& config, std::uint64_t seed, std::uint64_t stream);

  // Puts a frame on the wire at `now`; appends to `outcome`.
  void send(Time now, Frame frame, Outcome& outcome);

  // Lets the held-back frame `token` go if it is still there; true when it came out (at once).
  bool expire(std::uint64_t token, Frame& frame);

  void configure(const LinkConfig& config) { config_ = config; }
  std::size_t held() const { return held_.size(); }
  LinkStatistics statistics;

 private:
  struct Held {
    std::uint64_t token;
    std::uint64_t remaining;  // frames that have still to pass
    Frame frame;
  };

  // Delivers or holds one copy of a frame.
  void forward(Time arrival, Frame frame, bool hold, std::uint64_t frames, Outcome& outcome);

  LinkConfig config_;
  Random random_;
  Time free_at_{0};               // when the wire is idle again
  std::vector<Time> departures_;  // of frames that wait for the wire, oldest first
  std::vector<Held> held_;
  std::uint64_t next_token_ = 0;
};

}  // namespace pycollective::sim
