// What the host engine needs of a way to a switch port, and nothing more: take a batch of whole
// Ethernet frames, hand over a batch of them, a file descriptor to sleep on, limits and counts.
//
// A transport knows nothing of jobs, collectives or retransmission, starts no thread and never
// blocks. It is used by one thread at a time. Frames may be lost, duplicated and reordered below
// it; that is the engine's business. Main types: Transport, SendState, TransportError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

namespace pycollective::transport {

// Frames sent in one system call or one pass over a ring. 64 frames of 1,094 bytes are 68 KiB,
// which stays in a second-level cache; beyond that the cost of the call is already spread thin.
inline constexpr std::size_t kBatch = 64;

// Why a transport could not be opened or cannot go on. Thrown by opening functions, returned as a
// value by `Transport::failure`.
class TransportError : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t {
    kAddress,  // an address that does not parse, resolve or bind
    kMtu,      // the largest frame does not fit the path; `needed` and `available` in bytes
    kSystem,   // a system call failed; `system_error` is its errno
  };

  TransportError(Kind kind, const std::string& text, int system_error = 0, std::size_t needed = 0,
                 std::size_t available = 0)
      : std::runtime_error(text),
        kind(kind),
        system_error(system_error),
        needed(needed),
        available(available) {}

  Kind kind;
  int system_error;
  std::size_t needed;
  std::size_t available;
};

// Counts since the transport was opened.
struct TransportStatistics {
  std::uint64_t frames_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t frames_received = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t send_calls = 0;
  std::uint64_t receive_calls = 0;
  std::uint64_t send_blocked = 0;  // the socket's buffer was full and sending had to wait
  std::uint64_t send_dropped = 0;  // frames the system would not take; the protocol repeats them
  std::uint64_t oversized = 0;     // frames received that are longer than max_frame, dropped
  std::uint64_t peer_refused = 0;  // the far end said that nobody listens there
  std::uint64_t peer_unreachable = 0;  // the network said that there is no way to the far end
};

enum class SendState : std::uint8_t {
  kSent,     // every frame handed over is on its way (or counted as dropped)
  kBlocked,  // the rest is kept; call `flush` again when the descriptor is writable
  kFailed,   // see `failure`
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Takes what has arrived, or a good part of it. The frames are valid until the next call. An
  // empty span means that nothing is there now or that the transport has failed.
  virtual std::span<const std::span<const std::uint8_t>> receive() = 0;

  // The buffer (max_frame bytes) in which the next frame is to be built, or an empty span when the
  // batch is full and `flush` must come first.
  virtual std::span<std::uint8_t> next_buffer() = 0;

  // The frame in the buffer that `next_buffer` gave is complete and has this length.
  virtual void commit(std::size_t length) = 0;

  // Sends the frames committed so far, without waiting.
  virtual SendState flush() = 0;

  // Readable when `receive` has something, writable when `flush` can go on.
  virtual int descriptor() const = 0;

  // Largest frame, Ethernet header included, that passes whole.
  virtual std::size_t max_frame() const = 0;

  virtual const TransportStatistics& statistics() const = 0;

  // The reason why this transport will never work again, if there is one.
  virtual std::optional<TransportError> failure() const = 0;

  // What is known about the far end, for the text of an error ("nothing listens on ..."); empty
  // when there is nothing to say.
  virtual std::string peer_condition() const = 0;
};

}  // namespace pycollective::transport
