#include "datagram/segmentation.hpp"

#include <netinet/udp.h>

#include <cerrno>
#include <cstring>

namespace datagram {

SendPlan::SendPlan(std::size_t max_datagrams)
    : messages_(max_datagrams), controls_(max_datagrams) {}

std::span<mmsghdr> SendPlan::build(std::span<iovec> datagrams, bool segment, sockaddr_in* to) {
  std::size_t planned = 0;
  for (std::size_t first = 0; first < datagrams.size();) {
    const std::size_t length = datagrams[first].iov_len;
    std::size_t end = first + 1;
    if (segment && length > 0) {
      std::size_t bytes = length;
      while (end < datagrams.size() && end - first < kMaxSegments &&
             datagrams[end - 1].iov_len == length && datagrams[end].iov_len <= length &&
             datagrams[end].iov_len > 0 && bytes + datagrams[end].iov_len <= kMaxMessageBytes) {
        bytes += datagrams[end++].iov_len;
      }
    }
    mmsghdr& message = messages_[planned];
    message = {};
    msghdr& header = message.msg_hdr;
    header.msg_name = to;
    header.msg_namelen = to != nullptr ? sizeof(sockaddr_in) : 0;
    header.msg_iov = &datagrams[first];
    header.msg_iovlen = end - first;
    if (end - first > 1) {
      Control& control = controls_[planned];
      header.msg_control = control.bytes;
      header.msg_controllen = sizeof(control.bytes);
      cmsghdr* part = CMSG_FIRSTHDR(&header);
      part->cmsg_level = SOL_UDP;
      part->cmsg_type = UDP_SEGMENT;
      part->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
      const auto size = static_cast<std::uint16_t>(length);
      std::memcpy(CMSG_DATA(part), &size, sizeof(size));
    }
    ++planned;
    first = end;
  }
  return {messages_.data(), planned};
}

bool SendPlan::is_refusal(int system_error) {
  return system_error == EINVAL || system_error == EIO || system_error == ENOPROTOOPT ||
         system_error == EOPNOTSUPP || system_error == EMSGSIZE;
}

bool enable_coalescing(int socket) {
  const int on = 1;
  return setsockopt(socket, SOL_UDP, UDP_GRO, &on, sizeof(on)) == 0;
}

std::size_t segment_length(const msghdr& header, std::size_t bytes) {
  for (const cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr;
       part = CMSG_NXTHDR(const_cast<msghdr*>(&header), const_cast<cmsghdr*>(part))) {
    if (part->cmsg_level == SOL_UDP && part->cmsg_type == UDP_GRO) {
      int size = 0;
      std::memcpy(&size, CMSG_DATA(part), sizeof(size));
      if (size > 0) return static_cast<std::size_t>(size);
    }
  }
  return bytes > 0 ? bytes : 1;
}

}  // namespace datagram
