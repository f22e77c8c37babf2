#include "switch/udp_port.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "switch/status.hpp"

namespace p4emu {
namespace {

// Room for bursts of a whole slot pool from several ranks; the kernel halves or caps it as it
// likes.
constexpr int kSocketBufferBytes = 4 << 20;
constexpr std::size_t kControlBytes =
    CMSG_SPACE(sizeof(std::uint32_t)) + datagram::kCoalescingControlBytes;
constexpr std::size_t kSendMemoryBytes = 1 << 20;
// Whole cache lines, and no power of two: messages of a batch do not compete for the same cache
// sets.
constexpr std::size_t kReceiveStride = kMaxFrameBytes + 1 + 17 * 64;

[[noreturn]] void fail(const std::string& what) {
  throw SwitchError(Code::kUnavailable, what + ": " + std::strerror(errno));
}

}  // namespace

UdpPort::UdpPort(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    throw SwitchError(
        Code::kInvalidArgument,
        "a udp port needs an IPv4 address to bind to, such as 127.0.0.1; got '" + host + "'");
  }
  fd_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) fail("cannot open a UDP socket");
  const int buffer = kSocketBufferBytes;
  const int on = 1;
  // The first form goes beyond net.core.rmem_max and wmem_max and needs CAP_NET_ADMIN.
  if (setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)) != 0) {
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
  }
  if (setsockopt(fd_, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)) != 0) {
    setsockopt(fd_, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
  }
  setsockopt(fd_, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on));
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int error = errno;
    close(fd_);
    errno = error;
    fail("cannot bind to udp:" + host + ":" + std::to_string(port));
  }

  datagram::enable_coalescing(fd_);  // without it, a message is a frame

  rx_memory_ = std::make_unique_for_overwrite<std::uint8_t[]>(kMessages * kReceiveStride);
  rx_vectors_.resize(kMessages);
  rx_headers_.resize(kMessages);
  rx_addresses_.resize(kMessages);
  rx_control_.resize(kMessages * kControlBytes);
  rx_frames_.reserve(kMessages * datagram::kMaxSegments);
  tx_memory_ = std::make_unique_for_overwrite<std::uint8_t[]>(kSendMemoryBytes);
  tx_vectors_.resize(kSendBatch);
}

UdpPort::~UdpPort() { close(fd_); }

std::string UdpPort::address() const {
  sockaddr_in bound{};
  socklen_t size = sizeof(bound);
  getsockname(fd_, reinterpret_cast<sockaddr*>(&bound), &size);
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &bound.sin_addr, text, sizeof(text));
  return std::string(text) + ":" + std::to_string(ntohs(bound.sin_port));
}

void UdpPort::note_kernel_drops(const msghdr& header) {
  for (const cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr;
       part = CMSG_NXTHDR(const_cast<msghdr*>(&header), const_cast<cmsghdr*>(part))) {
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SO_RXQ_OVFL) {
      std::uint32_t drops = 0;  // the socket's total so far
      std::memcpy(&drops, CMSG_DATA(part), sizeof(drops));
      counts_.rx_kernel_drops = drops;
    }
  }
}

std::span<const std::span<const std::uint8_t>> UdpPort::receive() {
  rx_frames_.clear();
  for (std::size_t i = 0; i < kMessages; ++i) {
    rx_vectors_[i] = {&rx_memory_[i * kReceiveStride], kMaxFrameBytes};
    rx_headers_[i] = {};
    msghdr& header = rx_headers_[i].msg_hdr;
    header.msg_name = &rx_addresses_[i];
    header.msg_namelen = sizeof(sockaddr_in);
    header.msg_iov = &rx_vectors_[i];
    header.msg_iovlen = 1;
    header.msg_control = &rx_control_[i * kControlBytes];
    header.msg_controllen = kControlBytes;
  }
  const int count = recvmmsg(fd_, rx_headers_.data(), kMessages, MSG_DONTWAIT, nullptr);
  for (int i = 0; i < count; ++i) {
    const msghdr& header = rx_headers_[i].msg_hdr;
    if ((header.msg_flags & MSG_TRUNC) != 0) {
      ++counts_.rx_truncated;
      continue;
    }
    peer_ = rx_addresses_[i];
    has_peer_ = true;
    datagram::split(header, rx_headers_[i].msg_len, [this](std::span<const std::uint8_t> frame) {
      ++counts_.rx_frames;
      counts_.rx_bytes += frame.size();
      rx_frames_.push_back(frame);
    });
  }
  if (count > 0) note_kernel_drops(rx_headers_[count - 1].msg_hdr);
  return rx_frames_;
}

void UdpPort::queue(std::span<const std::uint8_t> frame) {
  if (!has_peer_) {
    ++counts_.tx_no_peer;
    return;
  }
  if (tx_count_ == kSendBatch || tx_used_ + frame.size() > kSendMemoryBytes) flush();
  std::uint8_t* place = &tx_memory_[tx_used_];
  std::memcpy(place, frame.data(), frame.size());
  tx_vectors_[tx_count_] = {place, frame.size()};
  ++tx_count_;
  // Frames begin on cache lines, so that copies are aligned.
  tx_used_ = std::min((tx_used_ + frame.size() + 63) / 64 * 64, kSendMemoryBytes);
}

void UdpPort::flush() {
  std::size_t done = 0;
  while (done < tx_count_) {
    const std::span<mmsghdr> messages =
        tx_plan_.build(std::span(tx_vectors_).subspan(done, tx_count_ - done), segment_, &peer_);
    const int sent =
        sendmmsg(fd_, messages.data(), static_cast<unsigned>(messages.size()), MSG_DONTWAIT);
    if (sent > 0) {
      for (int message = 0; message < sent; ++message) {
        for (std::size_t n = tx_plan_.datagrams_in(message); n > 0; --n, ++done) {
          ++counts_.tx_frames;
          counts_.tx_bytes += tx_vectors_[done].iov_len;
        }
      }
    } else if (errno == EINTR) {
      continue;
    } else if (errno == EAGAIN || errno == ENOBUFS) {
      counts_.tx_queue_full += tx_count_ - done;
      break;
    } else if (datagram::SendPlan::is_refusal(errno) && tx_plan_.datagrams_in(0) > 1) {
      segment_ = false;
    } else {
      // The first of the rest cannot be sent; the others may.
      ++counts_.tx_errors;
      ++done;
    }
  }
  tx_count_ = 0;
  tx_used_ = 0;
}

}  // namespace p4emu
