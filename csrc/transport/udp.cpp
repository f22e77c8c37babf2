#include "transport/udp.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "datagram/segmentation.hpp"

namespace pycollective::transport {
namespace {

// Messages taken in one system call; each may hold many frames where the kernel coalesces.
constexpr std::size_t kReceiveMessages = 16;
// The longest message: an IP packet.
constexpr std::size_t kMessageBytes = 65535;

// What the kernel charges a socket for one queued datagram of up to a page: the frame rounded up to
// a power of two, and the bookkeeping around it. Linux doubles SO_RCVBUF for that, which is not
// enough for frames just above 1 KiB, so we ask for the rounded size.
constexpr std::size_t kSocketBufferOverhead = 512;

// sendmmsg reports an ICMP error that an earlier datagram caused, in place of sending. One report
// is one error, so a few tries get past them; more would be a loop against a dead path.
constexpr int kPathErrorsPerFlush = 4;

std::string describe(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return std::string(text.data()) + ":" + std::to_string(ntohs(address.sin_port));
}

// "HOST:PORT", or "HOST" where a port is optional.
sockaddr_in resolve(const std::string& text, bool port_required, const char* role) {
  const auto bad = [&](const std::string& why) {
    return TransportError(
        TransportError::Kind::kAddress,
        std::string(role) + " address '" + text + "': " + why + "; expected HOST:PORT over IPv4");
  };
  const std::size_t colon = text.rfind(':');
  const std::string host = text.substr(0, colon);
  unsigned port = 0;
  if (colon != std::string::npos) {
    const char* first = text.data() + colon + 1;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(first, last, port);
    if (error != std::errc{} || end != last || port > 0xffff) throw bad("the port is no number");
  }
  if (port_required && port == 0) throw bad("there is no port");
  if (host.empty()) throw bad("there is no host");
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (status != 0) throw bad(gai_strerror(status));
  sockaddr_in address{};
  std::memcpy(&address, found->ai_addr, sizeof(address));
  freeaddrinfo(found);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

std::size_t round_up_to_power_of_two(std::size_t value) {
  std::size_t power = 1;
  while (power < value) power *= 2;
  return power;
}

template <typename T>
int get_option(int socket, int level, int name, T& value) {
  socklen_t size = sizeof(value);
  return getsockopt(socket, level, name, &value, &size);
}

// A socket that closes itself unless it is kept: opening takes several steps that may throw.
struct OpeningSocket {
  int descriptor;
  ~OpeningSocket() {
    if (descriptor >= 0) close(descriptor);
  }
};

}  // namespace

struct UdpTransport::Batches {
  explicit Batches(std::size_t max_frame)
      : send_bytes(std::make_unique_for_overwrite<std::uint8_t[]>(stride(max_frame) * kBatch)),
        receive_bytes(
            std::make_unique_for_overwrite<std::uint8_t[]>(kMessageBytes * kReceiveMessages)) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      send_vectors[i] = {send_bytes.get() + i * stride(max_frame), 0};
    }
    for (std::size_t i = 0; i < kReceiveMessages; ++i) {
      receive_vectors[i] = {receive_bytes.get() + i * kMessageBytes, kMessageBytes};
    }
    received.reserve(kReceiveMessages * datagram::kMaxSegments);
  }

  // Frames begin on cache lines.
  static std::size_t stride(std::size_t max_frame) { return (max_frame + 63) / 64 * 64; }

  // The kernel writes lengths into the headers, so they are made anew for each call.
  void prepare_to_receive() {
    for (std::size_t i = 0; i < kReceiveMessages; ++i) {
      receive_headers[i] = {};
      msghdr& header = receive_headers[i].msg_hdr;
      header.msg_iov = &receive_vectors[i];
      header.msg_iovlen = 1;
      header.msg_control = receive_controls[i].data();
      header.msg_controllen = receive_controls[i].size();
    }
  }

  std::unique_ptr<std::uint8_t[]> send_bytes;
  std::unique_ptr<std::uint8_t[]> receive_bytes;
  std::array<iovec, kBatch> send_vectors{};
  datagram::SendPlan plan{kBatch};
  bool segment = true;  // until the kernel, the device or the route says that it cannot
  std::array<iovec, kReceiveMessages> receive_vectors{};
  std::array<mmsghdr, kReceiveMessages> receive_headers{};
  alignas(cmsghdr) std::array<std::array<std::uint8_t, datagram::kCoalescingControlBytes>,
                              kReceiveMessages> receive_controls{};
  std::vector<std::span<const std::uint8_t>> received;
};

UdpTransport::UdpTransport(const UdpConfig& config) : max_frame_(config.max_frame) {
  const sockaddr_in remote = resolve(config.remote, true, "remote");
  remote_address_ = describe(remote);
  OpeningSocket opening{socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  const auto system_failure = [&](const std::string& doing) {
    const int error = errno;
    return TransportError(TransportError::Kind::kSystem, doing + ": " + std::strerror(error),
                          error);
  };
  if (opening.descriptor < 0) throw system_failure("cannot create a UDP socket");
  if (!config.local.empty()) {
    const sockaddr_in local = resolve(config.local, false, "local");
    if (bind(opening.descriptor, reinterpret_cast<const sockaddr*>(&local), sizeof(local)) != 0) {
      const int error = errno;
      throw TransportError(
          TransportError::Kind::kAddress,
          "cannot bind to " + describe(local) + ": " + std::strerror(error) +
              (error == EADDRINUSE ? "; another process uses that port, choose port 0 for any"
                                   : "; is it an address of this machine?"),
          error);
    }
  }
  const int dont_fragment = IP_PMTUDISC_DO;
  if (setsockopt(opening.descriptor, IPPROTO_IP, IP_MTU_DISCOVER, &dont_fragment,
                 sizeof(dont_fragment)) != 0) {
    throw system_failure("cannot set 'don't fragment' on the socket to " + remote_address_);
  }
  if (connect(opening.descriptor, reinterpret_cast<const sockaddr*>(&remote), sizeof(remote)) !=
      0) {
    throw system_failure("no route to the switch port " + remote_address_);
  }
  sockaddr_in bound{};
  socklen_t bound_size = sizeof(bound);
  if (getsockname(opening.descriptor, reinterpret_cast<sockaddr*>(&bound), &bound_size) != 0) {
    throw system_failure("cannot read the socket's own address");
  }
  local_address_ = describe(bound);
  socket_ = opening.descriptor;
  check_mtu(config.mtu);
  size_receive_buffer(config.window);
  batches_ = std::make_unique<Batches>(max_frame_);
  datagram::enable_coalescing(socket_);  // without it, a message is a frame
  opening.descriptor = -1;               // kept
}

UdpTransport::~UdpTransport() {
  if (socket_ >= 0) close(socket_);
}

void UdpTransport::check_mtu(std::optional<std::size_t> override_mtu) {
  std::size_t available = 0;
  if (override_mtu) {
    available = *override_mtu;
  } else {
    int mtu = 0;
    if (get_option(socket_, IPPROTO_IP, IP_MTU, mtu) != 0) {
      throw TransportError(
          TransportError::Kind::kSystem,
          "cannot read the path MTU to " + remote_address_ + ": " + std::strerror(errno), errno);
    }
    available = static_cast<std::size_t>(mtu);
  }
  const std::size_t needed = max_frame_ + kUdpEncapsulation;
  if (needed <= available) return;
  throw TransportError(
      TransportError::Kind::kMtu,
      "the path from " + local_address_ + " to the switch port " + remote_address_ +
          " passes IP packets of " + std::to_string(available) + " bytes" +
          (override_mtu ? " (as configured)" : "") + ", but the largest frame of this job needs " +
          std::to_string(needed) + " (" + std::to_string(max_frame_) + " bytes of frame and " +
          std::to_string(kUdpEncapsulation) +
          " of IPv4 and UDP around it): compile the P4 program with fewer lanes (-DINA_LANES=) or "
          "raise the MTU of every link of the path",
      0, needed, available);
}

void UdpTransport::size_receive_buffer(std::size_t window) {
  // Twice the window: the results of a full window, and as many re-sent ones.
  const std::size_t charge =
      round_up_to_power_of_two(max_frame_ + kUdpEncapsulation) + kSocketBufferOverhead;
  receive_buffer_wanted_ = 2 * window * charge;
  const int wanted = static_cast<int>(std::min<std::size_t>(receive_buffer_wanted_, 1U << 30U));
  // Never below what the system gives by default. Failure is not fatal: it shows in receive_buffer.
  int given = 0;
  if (get_option(socket_, SOL_SOCKET, SO_RCVBUF, given) == 0 && given / 2 < wanted) {
    static_cast<void>(setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &wanted, sizeof(wanted)));
    static_cast<void>(get_option(socket_, SOL_SOCKET, SO_RCVBUF, given));
  }
  // Linux reports double of what was asked for, to count its own bookkeeping.
  receive_buffer_ = static_cast<std::size_t>(given) / 2;
}

void UdpTransport::fail(TransportError::Kind kind, int system_error, const std::string& doing) {
  if (failure_) return;
  failure_.emplace(kind, doing + " " + remote_address_ + " failed: " + std::strerror(system_error),
                   system_error);
}

bool UdpTransport::note_path_error(int system_error) {
  switch (system_error) {
    case ECONNREFUSED:
      ++statistics_.peer_refused;
      break;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case EPERM:  // a packet filter refuses to send
      ++statistics_.peer_unreachable;
      break;
    default:
      return false;
  }
  last_path_error_ = system_error;
  return true;
}

std::span<const std::span<const std::uint8_t>> UdpTransport::receive() {
  if (failure_) return {};
  // An error of an earlier datagram is reported once, in place of data: read past it.
  for (int tries = 0; tries < kPathErrorsPerFlush; ++tries) {
    batches_->prepare_to_receive();
    const int count = recvmmsg(socket_, batches_->receive_headers.data(), kReceiveMessages,
                               MSG_DONTWAIT, nullptr);
    ++statistics_.receive_calls;
    if (count < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
      if (errno == EINTR || errno == ENOMEM || note_path_error(errno)) continue;
      if (errno == EMSGSIZE) {
        // The path has shrunk; the next send says so with all the details.
        continue;
      }
      fail(TransportError::Kind::kSystem, errno, "receiving from");
      return {};
    }
    last_path_error_ = 0;
    std::vector<std::span<const std::uint8_t>>& received = batches_->received;
    received.clear();
    for (int i = 0; i < count; ++i) {
      const mmsghdr& header = batches_->receive_headers[static_cast<std::size_t>(i)];
      datagram::split(header.msg_hdr, header.msg_len, [&](std::span<const std::uint8_t> frame) {
        if (frame.size() > max_frame_) {
          ++statistics_.oversized;
          return;
        }
        received.push_back(frame);
        statistics_.bytes_received += frame.size();
      });
    }
    statistics_.frames_received += received.size();
    if (!received.empty()) return received;
    // Only oversized ones came: look for more.
  }
  return {};
}

std::span<std::uint8_t> UdpTransport::next_buffer() {
  if (committed_ == kBatch) return {};
  return {static_cast<std::uint8_t*>(batches_->send_vectors[committed_].iov_base), max_frame_};
}

void UdpTransport::commit(std::size_t length) {
  batches_->send_vectors[committed_++].iov_len = length;
}

SendState UdpTransport::flush() {
  if (failure_) return SendState::kFailed;
  int path_errors = 0;
  while (sent_ < committed_) {
    const std::span<mmsghdr> messages =
        batches_->plan.build(std::span(batches_->send_vectors).subspan(sent_, committed_ - sent_),
                             batches_->segment, nullptr);
    const int count =
        sendmmsg(socket_, messages.data(), static_cast<unsigned>(messages.size()), MSG_DONTWAIT);
    ++statistics_.send_calls;
    if (count >= 0) {
      for (int message = 0; message < count; ++message) {
        for (std::size_t n = batches_->plan.datagrams_in(message); n > 0; --n, ++sent_) {
          statistics_.bytes_sent += batches_->send_vectors[sent_].iov_len;
          ++statistics_.frames_sent;
        }
      }
      continue;
    }
    const int error = errno;
    if (error == EINTR) continue;
    if (error == EAGAIN || error == EWOULDBLOCK) {
      ++statistics_.send_blocked;
      return SendState::kBlocked;
    }
    if (datagram::SendPlan::is_refusal(error) && batches_->plan.datagrams_in(0) > 1) {
      batches_->segment = false;
      continue;
    }
    const bool path_error = note_path_error(error);
    if (path_error && ++path_errors < kPathErrorsPerFlush) continue;
    if (path_error || error == ENOBUFS || error == ENOMEM) {
      // The path is gone, or the interface's queue is full and no event will tell when it is not:
      // these frames are lost like any others, and the engine's timers repeat them.
      statistics_.send_dropped += committed_ - sent_;
      break;
    }
    if (error == EMSGSIZE) {
      int mtu = 0;
      static_cast<void>(get_option(socket_, IPPROTO_IP, IP_MTU, mtu));
      const std::size_t needed = batches_->send_vectors[sent_].iov_len + kUdpEncapsulation;
      failure_.emplace(TransportError::Kind::kMtu,
                       "a frame that needs an IP packet of " + std::to_string(needed) +
                           " bytes does not pass to the switch port " + remote_address_ +
                           ": the path now carries " + std::to_string(mtu) +
                           "; raise the MTU of its links or compile the P4 program with fewer "
                           "lanes (-DINA_LANES=)",
                       error, needed, static_cast<std::size_t>(mtu));
    } else {
      fail(TransportError::Kind::kSystem, error, "sending to");
    }
    return SendState::kFailed;
  }
  committed_ = sent_ = 0;
  return SendState::kSent;
}

std::string UdpTransport::peer_condition() const {
  if (last_path_error_ == 0) return {};
  if (last_path_error_ == ECONNREFUSED) return "nothing listens on " + remote_address_;
  return remote_address_ + " cannot be reached: " + std::strerror(last_path_error_);
}

}  // namespace pycollective::transport
