// One direction of one cable between a host and a switch port: delay, rate, queue, and everything
// a network may do to a frame (lose it, double it, hold it back, change its bits: the impairment
// that switch ports have too).
//
// A link decides what becomes of a frame when it is put on the wire; it keeps held-back frames and
// knows no clock but the times it is given. Who delivers is the simulation. Main types: LinkConfig,
// Link, Delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/time.hpp"
#include "switch/impairment.hpp"

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
  double corrupt = 0;           // a burst of 1 to p4emu::kBurstBits changed bits
};

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

// What `Link::send` decided: frames that arrive, and the moments at which `Link::expire` is to be
// called for frames that were held back.
struct Outcome {
  std::vector<Delivery> deliveries;
  std::vector<Time> expiries;
};

class Link {
 public:
  Link(const LinkConfig& config, std::uint64_t seed, std::uint64_t stream);

  // Puts a frame on the wire at `now`; appends to `outcome`.
  void send(Time now, const Frame& frame, Outcome& outcome);

  // Lets go of the frames whose hold limit has come; they arrive at once.
  std::vector<Frame> expire(Time now);

  void configure(const LinkConfig& config);
  std::size_t held() const { return impairment_.held(); }
  LinkStatistics statistics;

 private:
  void count_impairment();

  LinkConfig config_;
  p4emu::Impairment impairment_;
  Time free_at_{0};               // when the wire is idle again
  std::vector<Time> departures_;  // of frames that wait for the wire, oldest first
};

}  // namespace pycollective::sim
