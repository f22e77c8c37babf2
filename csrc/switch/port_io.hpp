// What a kind of port has to do: take and give frames in batches, without ever blocking. A kind (a
// UDP socket now; rings in shared memory or interfaces later) is one file that implements this and
// knows nothing of programs, captures or impairments. Main types: PortIo, PortIoCounts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace p4emu {

// The largest frame a switch takes or makes, in bytes.
inline constexpr std::size_t kMaxFrameBytes = 65535;

struct PortIoCounts {
  std::uint64_t rx_frames = 0;
  std::uint64_t rx_bytes = 0;
  std::uint64_t tx_frames = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t rx_kernel_drops = 0;  // the receive buffer was full
  std::uint64_t rx_truncated = 0;     // longer than a frame may be
  std::uint64_t tx_no_peer = 0;       // nobody to send to has been heard from yet
  std::uint64_t tx_queue_full = 0;    // the send buffer was full
  std::uint64_t tx_errors = 0;        // any other refusal, such as a frame beyond the MTU
};

class PortIo {
 public:
  virtual ~PortIo() = default;

  // Readable while frames wait.
  [[nodiscard]] virtual int fd() const = 0;
  // Where it is bound, as people write it without the kind: "127.0.0.1:40001".
  [[nodiscard]] virtual std::string address() const = 0;
  [[nodiscard]] virtual const PortIoCounts& counts() const = 0;

  // Takes a batch of waiting frames; they stay valid until the next call.
  virtual std::span<const std::span<const std::uint8_t>> receive() = 0;

  // Queues a frame (copies it); sends what is queued when there is a batch.
  virtual void queue(std::span<const std::uint8_t> frame) = 0;
  // Sends what is queued. What is not taken is dropped and counted, as a full egress queue of a
  // switch drops.
  virtual void flush() = 0;
};

}  // namespace p4emu
