// What an engine has seen and done since it was made. Plain numbers; every frame that comes in adds
// to frames_received and, unless it is `results`, `statuses`, `probe_replies` or `nacks`, to the
// one counter that says why it was dropped.
#pragma once

#include <array>
#include <cstdint>

#include "engine/time.hpp"
#include "wire/frame.hpp"

namespace pycollective {

struct Statistics {
  std::uint64_t frames_sent = 0;  // probes and repeats included
  std::uint64_t bytes_sent = 0;   // whole frames, from the Ethernet header on
  std::uint64_t probes_sent = 0;
  std::uint64_t retransmissions = 0;

  std::uint64_t frames_received = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t results = 0;   // results that finished a chunk
  std::uint64_t statuses = 0;  // answers to a repeat of a chunk that is not complete
  std::uint64_t probe_replies = 0;
  std::uint64_t nacks = 0;
  std::uint64_t ecn_echoes = 0;  // results that carried a congestion mark (also in `results`)

  // Dropped, by reason. `malformed` has one counter for each wire::FrameError.
  std::array<std::uint64_t, wire::kFrameErrors> malformed{};
  std::uint64_t foreign_opcode = 0;  // what hosts send, not what they receive
  std::uint64_t foreign_job = 0;     // another job
  std::uint64_t foreign_rank = 0;    // for another rank
  std::uint64_t foreign_epoch = 0;   // from another incarnation of the job
  std::uint64_t duplicates = 0;      // of a result that has already been taken
  std::uint64_t stale = 0;           // about a chunk, collective or probe of the past
  std::uint64_t unexpected = 0;      // right place, but cannot be an answer to what was sent

  std::uint64_t collectives_completed = 0;  // without an error
  std::uint64_t collectives_failed = 0;
  Duration smoothed_rtt{};  // 0 until the first sample
  Duration rto{};           // for a chunk that is sent now
};

}  // namespace pycollective
