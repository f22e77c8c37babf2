// A switch port that is a UDP socket: each datagram carries one frame, from its Ethernet header on
// (docs/protocol.md, section 5). What leaves at the port goes to the address it last heard from.
// Receives and sends in batches of one system call. Knows nothing of what frames mean.
// Main types: UdpPort, PortCounts.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "datagram/segmentation.hpp"
#include "switch/pcap.hpp"
#include "switch/pipeline.hpp"

namespace p4emu {

struct PortCounts {
  std::uint64_t rx_frames = 0;
  std::uint64_t rx_bytes = 0;
  std::uint64_t tx_frames = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t rx_kernel_drops = 0;  // receive buffer overflows (SO_RXQ_OVFL)
  std::uint64_t rx_truncated = 0;     // datagrams longer than a frame may be
  std::uint64_t tx_no_peer = 0;       // nobody has been heard from yet
  std::uint64_t tx_queue_full = 0;    // the socket took no more
  std::uint64_t tx_errors = 0;        // any other refusal, such as a frame beyond the MTU
};

class UdpPort {
 public:
  // Messages taken in one system call; each may hold many frames where the kernel coalesces.
  static constexpr std::size_t kMessages = 16;
  // Frames given in one system call.
  static constexpr std::size_t kSendBatch = 256;

  // Binds to `host` (an IPv4 address) and `port` (0: any). Throws SwitchError (kInvalidArgument,
  // kUnavailable).
  UdpPort(const std::string& host, std::uint16_t port);
  ~UdpPort();
  UdpPort(const UdpPort&) = delete;
  UdpPort& operator=(const UdpPort&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  // Where it is bound: "127.0.0.1:40001".
  [[nodiscard]] std::string address() const;
  [[nodiscard]] const PortCounts& counts() const { return counts_; }

  // Everything that comes in and goes out is also written there.
  void capture(std::unique_ptr<PcapWriter> writer) { capture_ = std::move(writer); }
  void flush_capture();

  // Takes waiting frames, up to kMessages messages of them; they stay valid until the next call.
  // Never blocks.
  std::span<const std::span<const std::uint8_t>> receive();

  // Queues a frame (copies it); sends what is queued when there is a batch.
  void queue(std::span<const std::uint8_t> frame);
  // Sends what is queued. Never blocks: what the socket does not take is dropped and counted, as a
  // full egress queue of a switch drops.
  void flush();

 private:
  void record(std::span<const std::uint8_t> frame);
  void note_kernel_drops(const msghdr& header);

  int fd_ = -1;
  PortCounts counts_;
  std::unique_ptr<PcapWriter> capture_;

  sockaddr_in peer_{};
  bool has_peer_ = false;

  // Receive side: one buffer of kMaxFrameBytes a message, touched only as far as data comes.
  std::unique_ptr<std::uint8_t[]> rx_memory_;
  std::vector<iovec> rx_vectors_;
  std::vector<mmsghdr> rx_headers_;
  std::vector<sockaddr_in> rx_addresses_;
  std::vector<std::uint8_t> rx_control_;
  std::vector<std::span<const std::uint8_t>> rx_frames_;

  // Send side: frames one after the other.
  std::unique_ptr<std::uint8_t[]> tx_memory_;
  std::size_t tx_used_ = 0;
  std::size_t tx_count_ = 0;
  std::vector<iovec> tx_vectors_;
  datagram::SendPlan tx_plan_{kSendBatch};
  bool segment_ = true;  // until the kernel, the device or the route says that it cannot
};

}  // namespace p4emu
