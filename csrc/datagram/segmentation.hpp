// Many datagrams in one trip through the kernel: UDP_SEGMENT when sending, UDP_GRO when receiving
// (Linux 4.18 and 5.0; de Bruijn and Dumazet, "Optimizing UDP for content delivery: GSO, pacing and
// zerocopy", Linux Plumbers Conference 2018). Shared by the host's transport and the switch's
// ports. It makes no system call but the one that turns coalescing on, and knows nothing of frames.
// Main types: SendPlan; split.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace datagram {

// Datagrams in one message: the kernel's UDP_MAX_SEGMENTS (128 since Linux 6.9).
inline constexpr std::size_t kMaxSegments = 64;
// Bytes in one message: an IPv4 packet less its headers.
inline constexpr std::size_t kMaxMessageBytes = 65535 - 20 - 8;

// Groups neighbouring datagrams of one length into messages for sendmmsg; the last of a group may
// be shorter. The datagrams' memory need not be contiguous.
class SendPlan {
 public:
  explicit SendPlan(std::size_t max_datagrams);

  // Plans `datagrams` from the first on. Without `segment` every message is one datagram. `to` is
  // null for a connected socket. What is returned is valid until the next call.
  std::span<mmsghdr> build(std::span<iovec> datagrams, bool segment, sockaddr_in* to);

  // Datagrams in a planned message.
  [[nodiscard]] std::size_t datagrams_in(std::size_t message) const {
    return messages_[message].msg_hdr.msg_iovlen;
  }

  // Whether this error of a send says that the kernel, the device or the route cannot segment. The
  // caller then goes on without.
  [[nodiscard]] static bool is_refusal(int system_error);

 private:
  // Room for one control message with the segment size, aligned as the kernel wants it.
  struct alignas(cmsghdr) Control {
    std::uint8_t bytes[CMSG_SPACE(sizeof(std::uint16_t))];
  };

  std::vector<mmsghdr> messages_;
  std::vector<Control> controls_;
};

// Asks for coalesced datagrams; false where the kernel cannot.
bool enable_coalescing(int socket);

// Control space a receiver needs for coalescing.
inline constexpr std::size_t kCoalescingControlBytes = CMSG_SPACE(sizeof(int));

// Length of each datagram (but the last) in a received message of `bytes` bytes; `bytes` itself
// when it is a single one.
std::size_t segment_length(const msghdr& header, std::size_t bytes);

// Calls `take(span)` for each datagram of a received message, at least once.
template <typename Take>
void split(const msghdr& header, std::size_t bytes, Take&& take) {
  const auto* data = static_cast<const std::uint8_t*>(header.msg_iov->iov_base);
  const std::size_t length = segment_length(header, bytes);
  do {
    const std::size_t part = bytes < length ? bytes : length;
    take(std::span<const std::uint8_t>(data, part));
    data += part;
    bytes -= part;
  } while (bytes > 0);
}

}  // namespace datagram
