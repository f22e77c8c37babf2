// Moves the chunks of one collective after another through the slots: what to send, when to send it
// again, which received frame finishes which chunk. The transitions are in slot_state.hpp; the
// contents of chunks are the Algorithm's.
//
// Every call costs O(log W) at most and allocates nothing, W being the number of slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/algorithm.hpp"
#include "engine/config.hpp"
#include "engine/ready_queue.hpp"
#include "engine/rtt.hpp"
#include "engine/slot_state.hpp"
#include "engine/slot_stream.hpp"
#include "engine/statistics.hpp"
#include "engine/timer_queue.hpp"
#include "engine/window.hpp"
#include "wire/frame.hpp"

namespace pycollective {

// What became of a frame.
enum class Reception : std::uint8_t {
  kTaken,
  kDuplicate,   // of a result that was taken before
  kStale,       // about a chunk of the past
  kUnexpected,  // cannot be an answer to what was sent
  kMismatch,    // the result says that ranks disagree; nothing was written
};

class Exchange {
 public:
  Exchange(const JobConfig& config, const wire::FrameWriter& writer, Statistics& statistics);

  // Starts a collective. The one before it is finished.
  void begin(Algorithm& algorithm, std::uint32_t sequence, std::uint32_t fingerprint);
  // Whether all chunks of the collective have their results.
  [[nodiscard]] bool finished() const;
  // Ends a finished collective.
  void end();
  // Ends all activity for good.
  void abandon();

  Reception on_result(Time now, const wire::Frame& frame);
  Reception on_status(const wire::InaHeader& header);
  // Whether the header's tag is that of a chunk that has been sent and has no result.
  [[nodiscard]] bool is_outstanding(const wire::InaHeader& header) const;

  void on_timer(Time now);
  // Writes the next frame, or returns 0.
  std::size_t poll_transmit(Time now, std::span<std::uint8_t> frame);
  [[nodiscard]] std::optional<Time> next_deadline() const;

  // The oldest chunk without a result, and the ranks that have contributed to it as far as the
  // switch has said.
  struct Oldest {
    ChunkPlace place;
    std::optional<std::uint32_t> contributed;
  };
  [[nodiscard]] std::optional<Oldest> oldest_unfinished() const;
  // The lowest chunk in which a sum has overflowed.
  [[nodiscard]] const std::optional<ChunkPlace>& overflow() const { return overflow_; }

 private:
  struct Slot {
    SlotState state = SlotState::kIdle;
    bool used = false;  // whether `use` and the tag mean anything
    std::uint16_t repeats = 0;
    std::uint32_t sequence = 0;  // with `chunk` and `use`: the tag of the current or last use
    std::uint32_t chunk = 0;
    Use use = 0;
    Use next = 0;                                // the use that may be released next
    Time sent{};                                 // the first time
    std::optional<std::uint32_t> contributed{};  // bitmap of the last STATUS
    bool answered = false;                       // by a STATUS, since it was last sent
  };

  // Releases the chunk if everything it needs is there; see slot_state.hpp.
  void release(std::uint32_t chunk);
  void release_followers(std::uint32_t chunk, const Unlocked& unlocked);
  std::size_t transmit(std::uint16_t slot, Time now, std::span<std::uint8_t> frame);
  void deliver(std::uint16_t slot, Time now, const wire::InaHeader& header);
  [[nodiscard]] ChunkPlace place_of(const Slot& slot) const;

  enum class TagMatch : std::uint8_t { kCurrent, kOlder, kOther };
  [[nodiscard]] TagMatch match(const wire::InaHeader& header) const;

  JobConfig config_;
  const wire::FrameWriter& writer_;
  Statistics& statistics_;

  Algorithm* algorithm_ = nullptr;
  std::uint32_t sequence_ = 0;
  std::uint32_t fingerprint_ = 0;
  std::uint32_t done_ = 0;  // chunks that have their results
  std::optional<ChunkPlace> overflow_;

  SlotStream stream_;
  std::vector<Slot> slots_;
  ReadyQueue fresh_;    // to be sent for the first time
  ReadyQueue repeats_;  // to be sent again
  TimerQueue timers_;
  RttEstimator rtt_;
  Window window_;
  std::size_t in_flight_ = 0;  // slots that are Sent or Due
};

}  // namespace pycollective
