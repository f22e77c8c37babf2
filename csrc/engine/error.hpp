// Errors as values: a code and the fields that say who waited for what and how long. `text` is the
// only place where they become sentences. EngineError carries one out of a call that was wrong
// itself (a bad configuration, an unsupported collective); everything that happens later arrives in
// a Completion.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/time.hpp"

namespace pycollective {

enum class ErrorCode : std::uint8_t {
  kNone,
  kDeadlineExceeded,   // a collective did not finish in time
  kSwitchUnreachable,  // no probe was answered before the connect timeout
  kMismatch,           // ranks called different collectives, or with different sizes or types
  kReductionOverflow,  // a SUM left the signed 32-bit range; the communicator remains usable
  kEpochChanged,       // the switch knows another incarnation of the job
  kBadSlot,            // the switch gives the job fewer slots than the configuration says
  kMtu,                // full frames do not pass, or do not fit the path
  kTransport,          // the transport can carry no frames any more; `detail` says why
  kCancelled,          // ended by cancel_all
  kUnsupported,        // configuration or collective that this engine cannot run
};

// The code's name, as in "deadline_exceeded".
[[nodiscard]] const char* name(ErrorCode code);

// Where in a collective something happened.
struct ChunkPlace {
  std::uint32_t chunk = 0;
  std::uint16_t slot = 0;
  std::uint8_t slot_version = 0;
};

struct Error {
  ErrorCode code = ErrorCode::kNone;
  std::uint16_t job = 0;
  std::uint16_t rank = 0;             // who reports it
  const char* operation = nullptr;    // "all_reduce", ...; null outside of a collective
  std::uint32_t sequence = 0;         // number of the collective; 0 outside of one
  std::optional<ChunkPlace> place{};  // the oldest unfinished chunk, or the one with the fault
  // kDeadlineExceeded: ranks that the switch has nothing from for this chunk, bit 1 << rank.
  // Absent when the switch has not said anything about the chunk.
  std::optional<std::uint32_t> missing_ranks{};
  Duration waited{};                 // since the collective, or the connecting, began
  std::optional<Duration> silent{};  // since the switch was last heard; absent: never heard
  // The value that was required and the one that was found, where `code` is about a value: epochs
  // (kEpochChanged), slots and the refused slot (kBadSlot), bytes of a full frame and of the
  // longest that was answered (kMtu).
  std::uint64_t expected = 0;
  std::uint64_t found = 0;
  // The reason in words: all of it for kUnsupported, kCancelled and kTransport. For others, what
  // the transport knows besides ("nothing listens on 127.0.0.1:5000"), if anything.
  std::string detail{};

  explicit operator bool() const { return code != ErrorCode::kNone; }
  // One sentence: what was expected, what was found, who, and what to do about it.
  [[nodiscard]] std::string text() const;
};

// Thrown for errors of the call itself.
class EngineError : public std::runtime_error {
 public:
  explicit EngineError(Error error) : std::runtime_error(error.text()), error_(std::move(error)) {}
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  Error error_;
};

}  // namespace pycollective
