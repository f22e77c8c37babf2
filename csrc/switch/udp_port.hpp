// The I/O of a port that is a UDP socket: each datagram carries one frame, from its Ethernet header
// on (docs/protocol.md, section 5). What leaves at the port goes to the address it last heard from.
// Receives and sends in batches of one system call. Main type: UdpPort.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "datagram/segmentation.hpp"
#include "switch/port_io.hpp"

namespace p4emu {

class UdpPort final : public PortIo {
 public:
  // Messages taken in one system call; each may hold many frames where the kernel coalesces.
  static constexpr std::size_t kMessages = 16;
  // Frames given in one system call.
  static constexpr std::size_t kSendBatch = 256;

  // Binds to `host` (an IPv4 address) and `port` (0: any). Throws SwitchError (kInvalidArgument,
  // kUnavailable).
  UdpPort(const std::string& host, std::uint16_t port);
  ~UdpPort() override;
  UdpPort(const UdpPort&) = delete;
  UdpPort& operator=(const UdpPort&) = delete;

  [[nodiscard]] int fd() const override { return fd_; }
  [[nodiscard]] std::string address() const override;
  [[nodiscard]] const PortIoCounts& counts() const override { return counts_; }

  // A batch is up to kMessages messages of frames.
  std::span<const std::span<const std::uint8_t>> receive() override;
  void queue(std::span<const std::uint8_t> frame) override;
  void flush() override;

 private:
  void note_kernel_drops(const msghdr& header);

  int fd_ = -1;
  PortIoCounts counts_;
  sockaddr_in peer_{};
  bool has_peer_ = false;

  // Receive side: a buffer for the largest frame a message, touched only as far as data comes.
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
