// What a caller holds of a collective that runs: its number, whether it is done, and how it ended.
//
// A handle is completed once, by the driver's thread, and may be waited for by any number of
// threads. It owns no buffers and outlives its driver. Waiting is a futex and not a condition
// variable: a handle that is copied by fork() while some thread waits for it can still be
// destroyed in the child. Main type: Handle.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "engine/error.hpp"

namespace pycollective::transport {

class Handle {
 public:
  explicit Handle(std::uint64_t id) : id_(id) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  // Counted from 1 in the order of submission to one driver; 0 when it was never submitted.
  std::uint64_t id() const { return id_; }

  bool done() const { return state_.load(std::memory_order_acquire) == kDone; }

  // Sleeps until the collective is done or the timeout (none: for ever) has passed; true when done.
  bool wait(std::optional<std::chrono::nanoseconds> timeout) const;

  // How it ended; ErrorCode::kNone for a result. Only to be read when done.
  const Error& error() const { return error_; }

  // Called once, by whoever runs the engine.
  void complete(Error error);

 private:
  static constexpr std::uint32_t kPending = 0;
  static constexpr std::uint32_t kAwaited = 1;  // pending, and somebody sleeps
  static constexpr std::uint32_t kDone = 2;

  const std::uint64_t id_;
  mutable std::atomic<std::uint32_t> state_{kPending};
  Error error_;
};

}  // namespace pycollective::transport
