// The protocol engine of one rank of one job (docs/protocol.md, section 4).
//
// It is sans-IO: it owns no socket, no thread and no clock. Frames come in through on_datagram and
// go out through poll_transmit; time comes in as an argument. The same object code runs over
// sockets and in the simulator. It is not thread-safe: one caller at a time.
//
// The caller's loop:
//   for (;;) {
//     while ((n = engine.poll_transmit(now, frame)) > 0) send(frame, n);
//     while (engine.poll_completion(completion)) report(completion);
//     wait for a frame, for a submit from another thread, or until engine.next_deadline();
//     engine.on_datagram(now, frame) for each frame;  engine.on_timer(now) when the deadline is due
//   }
// poll_transmit must be called after anything else was, because that is where probes and queued
// collectives start; next_deadline speaks of timers only.
//
// Parts: Prober (probe.hpp) finds the switch; Exchange (exchange.hpp) moves the chunks of one
// collective through the slots; an Algorithm (algorithm.hpp) gives and takes their contents. The
// engine itself keeps the queue, the state and the deadlines, and decides what a received frame is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "engine/collective.hpp"
#include "engine/config.hpp"
#include "engine/error.hpp"
#include "engine/statistics.hpp"
#include "engine/time.hpp"

namespace pycollective {

// Identifies a collective of this engine: 1 for the first one submitted, then counting.
using CollectiveId = std::uint64_t;

struct Completion {
  CollectiveId id = 0;
  Error error{};  // code kNone: the output is complete and right
};

enum class State : std::uint8_t {
  kConnecting,  // no probe has been answered yet; collectives may be submitted
  kIdle,
  kRunning,
  kFailed,  // for good: every collective, queued or submitted later, ends with failure()
};

[[nodiscard]] const char* name(State state);

class Engine {
 public:
  // Throws EngineError (kUnsupported) for a configuration that `validate` refuses.
  explicit Engine(const JobConfig& config);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Queues a collective; they run one after the other, in the order of submission, which must be
  // the same on all ranks. Throws EngineError (kUnsupported) for one that cannot be run; the queue
  // is then unchanged.
  CollectiveId submit(const Collective& collective);

  // Takes one received frame, from its Ethernet header on. Anything may be given: what is not for
  // this engine is dropped and counted.
  void on_datagram(Time now, std::span<const std::uint8_t> frame);

  // Lets the timers that are due at `now` go off. Calling it early does nothing.
  void on_timer(Time now);

  // Writes the next frame to send, from its Ethernet header on, and returns its length in bytes; 0
  // when there is nothing to send now. `frame` has room for max_frame_bytes().
  std::size_t poll_transmit(Time now, std::span<std::uint8_t> frame);

  // When on_timer must be called at the latest.
  [[nodiscard]] std::optional<Time> next_deadline() const;

  // Takes the next finished collective out, in the order of submission.
  bool poll_completion(Completion& completion);

  // Ends all collectives with `error` (code kCancelled unless it says otherwise); the engine is
  // failed afterwards.
  void cancel_all(Error error);

  [[nodiscard]] const Statistics& statistics() const;
  [[nodiscard]] State state() const;
  // What failed the engine; kNone unless state() is kFailed.
  [[nodiscard]] const Error& failure() const;
  [[nodiscard]] const JobConfig& config() const;
  // The longest frame it sends or accepts, in bytes from the Ethernet header on.
  [[nodiscard]] std::size_t max_frame_bytes() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace pycollective
