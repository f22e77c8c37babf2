// What an engine must know of its job before it can start, and the limits of those values.
//
// All of it comes from the controller or the user; nothing here is discovered. `validate` says what
// is wrong with a configuration before a single frame is sent.
#pragma once

#include <cstdint>

#include "engine/error.hpp"
#include "engine/time.hpp"
#include "wire/headers.hpp"

namespace pycollective {

// Ranks of one job on one switch: the width of the membership bitmap in its registers.
inline constexpr std::uint16_t kMaxWorldSize = 32;
// Lanes of a frame that the P4 program can be built for; 2048 make a frame of 8,262 bytes, which
// is what still fits a 9,000 byte MTU.
inline constexpr std::uint16_t kMaxLanes = 2048;
// The field `slot` has 15 bits.
inline constexpr std::uint16_t kMaxSlotsPerJob = 1U << 15;

// Timers of docs/protocol.md, section 4.
struct Timers {
  Duration rto_initial = std::chrono::milliseconds(50);
  // A time slice or two of a busy machine: a rank that waits for its core is late, not lost.
  Duration rto_min = std::chrono::milliseconds(20);
  Duration rto_max = std::chrono::milliseconds(500);
  Duration probe_interval = std::chrono::milliseconds(100);
  Duration connect_timeout = std::chrono::seconds(5);
  // For collectives that bring no deadline of their own.
  Duration deadline = std::chrono::seconds(30);
};

struct JobConfig {
  std::uint16_t job = 0;
  std::uint16_t rank = 0;        // below world_size
  std::uint16_t world_size = 1;  // 1 to kMaxWorldSize
  std::uint16_t epoch = 0;       // incarnation of the job on the switch, never 0
  std::uint16_t slots = 1;       // W, the slots in the job's slice of the pool
  std::uint16_t lanes = 256;     // INA_LANES of the switch's program
  wire::MacAddress mac{};
  wire::MacAddress switch_mac{};
  std::uint32_t ipv4 = 0;
  std::uint32_t switch_ipv4 = 0;
  Timers timers{};
  // Number of the first collective: 1, or where a test of wrapping numbers wants to begin.
  std::uint32_t first_sequence = 1;
};

// An error of code kUnsupported that names the field and its limits, or kNone.
[[nodiscard]] Error validate(const JobConfig& config);

}  // namespace pycollective
