// Frames to and from a switch port as UDP datagrams, one frame a datagram: the encapsulation of
// docs/protocol.md section 5, in batches of sendmmsg and recvmmsg, and where the kernel can do it
// many frames to a message (datagram/segmentation.hpp).
//
// The socket is connected, so the kernel filters strangers and tells of ICMP errors; it is IPv4
// for now. Datagrams are never fragmented: a path too small is an error when the socket is opened
// (or when the path shrinks), not a slow job. Main types: UdpConfig, UdpTransport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/transport.hpp"

namespace pycollective::transport {

// IPv4 and UDP header around each frame.
inline constexpr std::size_t kUdpEncapsulation = 28;

struct UdpConfig {
  std::string remote;         // "HOST:PORT" of the switch port
  std::string local;          // "HOST:PORT" or "HOST" to bind to; empty leaves it to the kernel
  std::size_t max_frame = 0;  // bytes of the largest frame, Ethernet header included
  std::size_t window = 1;     // frames that may be on their way to us at once
  std::optional<std::size_t> mtu;  // bytes an IP packet of the path may have; asked of the kernel
                                   // when absent
};

class UdpTransport final : public Transport {
 public:
  // Opens, binds and connects. Throws TransportError.
  explicit UdpTransport(const UdpConfig& config);
  ~UdpTransport() override;
  UdpTransport(const UdpTransport&) = delete;
  UdpTransport& operator=(const UdpTransport&) = delete;

  std::span<const std::span<const std::uint8_t>> receive() override;
  std::span<std::uint8_t> next_buffer() override;
  void commit(std::size_t length) override;
  SendState flush() override;
  int descriptor() const override { return socket_; }
  std::size_t max_frame() const override { return max_frame_; }
  const TransportStatistics& statistics() const override { return statistics_; }
  std::optional<TransportError> failure() const override { return failure_; }
  std::string peer_condition() const override;

  // Addresses in use, "HOST:PORT".
  const std::string& local_address() const { return local_address_; }
  const std::string& remote_address() const { return remote_address_; }

  // Bytes of receive buffer asked for and given (the kernel caps it at net.core.rmem_max). Less
  // than asked for means that a full window may overflow it, which costs repeats, not correctness.
  std::size_t receive_buffer_wanted() const { return receive_buffer_wanted_; }
  std::size_t receive_buffer() const { return receive_buffer_; }

 private:
  struct Batches;  // message headers and buffers, which need the system's headers

  void fail(TransportError::Kind kind, int system_error, const std::string& doing);
  void check_mtu(std::optional<std::size_t> override_mtu);
  void size_receive_buffer(std::size_t window);
  // Notes an error that is about the path and not about us; false when it is not one of those.
  bool note_path_error(int system_error);

  int socket_ = -1;
  std::size_t max_frame_;
  std::string local_address_;
  std::string remote_address_;
  std::size_t receive_buffer_wanted_ = 0;
  std::size_t receive_buffer_ = 0;
  std::unique_ptr<Batches> batches_;
  std::size_t committed_ = 0;  // frames in the send batch
  std::size_t sent_ = 0;       // of those, already sent
  int last_path_error_ = 0;    // errno of the last ICMP error, 0 once a frame has come in again
  TransportStatistics statistics_;
  std::optional<TransportError> failure_;
};

}  // namespace pycollective::transport
