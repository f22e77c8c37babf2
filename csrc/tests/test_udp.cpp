// The UDP transport against plain sockets on loopback: batches, limits, and errors of the path.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/check.hpp"
#include "transport/udp.hpp"

namespace {

using pycollective::transport::kBatch;
using pycollective::transport::kUdpEncapsulation;
using pycollective::transport::SendState;
using pycollective::transport::TransportError;
using pycollective::transport::UdpConfig;
using pycollective::transport::UdpTransport;

constexpr int kPatienceMs = 5000;  // only a broken build waits this long

// A bare UDP socket in the role of a switch port.
class Peer {
 public:
  explicit Peer(std::uint16_t port = 0) : socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    REQUIRE_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    socklen_t size = sizeof(address);
    REQUIRE_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Peer() { close(socket_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  std::uint16_t port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  std::vector<std::uint8_t> receive() {
    pollfd ready{socket_, POLLIN, 0};
    REQUIRE_EQ(poll(&ready, 1, kPatienceMs), 1);
    std::vector<std::uint8_t> bytes(65536);
    socklen_t size = sizeof(from_);
    const ssize_t length = recvfrom(socket_, bytes.data(), bytes.size(), 0,
                                    reinterpret_cast<sockaddr*>(&from_), &size);
    REQUIRE(length >= 0);
    bytes.resize(static_cast<std::size_t>(length));
    return bytes;
  }

  // To whoever sent last.
  void send(const std::vector<std::uint8_t>& bytes) {
    REQUIRE_EQ(sendto(socket_, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&from_),
                      sizeof(from_)),
               static_cast<ssize_t>(bytes.size()));
  }

 private:
  int socket_;
  std::uint16_t port_ = 0;
  sockaddr_in from_{};
};

UdpConfig to(const std::string& remote, std::size_t max_frame = 1094) {
  return {.remote = remote, .local = "127.0.0.1", .max_frame = max_frame, .window = 64, .mtu = {}};
}

void put(UdpTransport& transport, std::uint8_t value, std::size_t length) {
  const auto buffer = transport.next_buffer();
  REQUIRE(buffer.size() >= length);
  std::fill_n(buffer.begin(), length, value);
  transport.commit(length);
}

void wait_readable(const UdpTransport& transport) {
  pollfd ready{transport.descriptor(), POLLIN, 0};
  REQUIRE_EQ(poll(&ready, 1, kPatienceMs), 1);
}

std::string failure_of(const UdpConfig& config, TransportError::Kind kind) {
  try {
    const UdpTransport transport(config);
  } catch (const TransportError& error) {
    CHECK_EQ(error.kind, kind);
    return error.what();
  }
  CHECK(!"the transport opened");
  return {};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST(a_full_batch_passes_whole_and_in_order_both_ways) {
  Peer peer;
  UdpTransport transport(to(peer.address()));
  for (std::size_t i = 0; i < kBatch; ++i) put(transport, static_cast<std::uint8_t>(i), 100 + i);
  CHECK(transport.next_buffer().empty());
  CHECK_EQ(transport.flush(), SendState::kSent);
  CHECK_EQ(transport.next_buffer().size(), 1094);
  for (std::size_t i = 0; i < kBatch; ++i) {
    const auto bytes = peer.receive();
    CHECK_EQ(bytes.size(), 100 + i);
    CHECK_EQ(bytes.front(), i);
    CHECK_EQ(bytes.back(), i);
    peer.send(bytes);
  }
  std::size_t received = 0;
  while (received < kBatch) {
    wait_readable(transport);
    for (const auto frame : transport.receive()) {
      CHECK_EQ(frame.size(), 100 + received);
      CHECK_EQ(frame.back(), received);
      ++received;
    }
  }
  CHECK(transport.receive().empty());
  CHECK_EQ(transport.statistics().frames_sent, kBatch);
  CHECK_EQ(transport.statistics().frames_received, kBatch);
  CHECK_EQ(transport.statistics().bytes_received, transport.statistics().bytes_sent);
  CHECK_EQ(transport.statistics().send_calls, 1);
}

TEST(a_frame_larger_than_the_configured_mtu_is_refused_with_both_sizes) {
  Peer peer;
  UdpConfig config = to(peer.address());
  config.mtu = 1094 + kUdpEncapsulation;
  const UdpTransport fits(config);
  config.mtu = 1094 + kUdpEncapsulation - 1;
  try {
    const UdpTransport transport(config);
    CHECK(!"the transport opened");
  } catch (const TransportError& error) {
    CHECK_EQ(error.kind, TransportError::Kind::kMtu);
    CHECK_EQ(error.needed, 1122);
    CHECK_EQ(error.available, 1121);
    CHECK(contains(error.what(), "1122"));
    CHECK(contains(error.what(), "1121"));
    CHECK(contains(error.what(), "INA_LANES"));
  }
}

TEST(the_path_mtu_is_asked_of_the_kernel) {
  Peer peer;
  // Loopback passes 65,536 bytes: no frame this large fits.
  const std::string text = failure_of(to(peer.address(), 65536), TransportError::Kind::kMtu);
  CHECK(contains(text, "65536 bytes"));
}

TEST(bad_addresses_are_named) {
  const auto kAddress = TransportError::Kind::kAddress;
  CHECK(contains(failure_of(to("127.0.0.1"), kAddress), "'127.0.0.1': there is no port"));
  CHECK(contains(failure_of(to("127.0.0.1:x"), kAddress), "no number"));
  CHECK(contains(failure_of(to("127.0.0.1:70000"), kAddress), "no number"));
  CHECK(contains(failure_of(to(":5"), kAddress), "there is no host"));
  CHECK(contains(failure_of(to("300.0.0.1:5"), kAddress), "300.0.0.1"));
}

TEST(a_local_port_in_use_is_named) {
  Peer peer;
  UdpConfig config = to(peer.address());
  config.local = peer.address();
  const std::string text = failure_of(config, TransportError::Kind::kAddress);
  CHECK(contains(text, peer.address()));
  CHECK(contains(text, "another process"));
}

TEST(nobody_listening_is_noticed_and_is_not_the_end) {
  std::uint16_t port = 0;
  {
    const Peer gone;
    port = gone.port();
  }
  UdpTransport transport(to("127.0.0.1:" + std::to_string(port)));
  CHECK_EQ(transport.peer_condition(), "");
  put(transport, 1, 60);
  CHECK_EQ(transport.flush(), SendState::kSent);
  wait_readable(transport);
  CHECK(transport.receive().empty());
  CHECK(!transport.failure());
  CHECK_EQ(transport.peer_condition(), "nothing listens on 127.0.0.1:" + std::to_string(port));
  CHECK_EQ(transport.statistics().peer_refused, 1);
  // The error has been taken: the descriptor is quiet, so nobody loops on it.
  pollfd quiet{transport.descriptor(), POLLIN, 0};
  CHECK_EQ(poll(&quiet, 1, 0), 0);

  Peer back(port);
  put(transport, 2, 60);
  CHECK_EQ(transport.flush(), SendState::kSent);
  back.send(back.receive());
  wait_readable(transport);
  CHECK_EQ(transport.receive().size(), 1);
  CHECK_EQ(transport.peer_condition(), "");
}

TEST(sending_gets_past_the_error_of_an_earlier_frame) {
  std::uint16_t port = 0;
  {
    const Peer gone;
    port = gone.port();
  }
  UdpTransport transport(to("127.0.0.1:" + std::to_string(port)));
  put(transport, 1, 60);
  CHECK_EQ(transport.flush(), SendState::kSent);
  Peer back(port);
  // The refusal of the first frame is pending; the second is sent all the same.
  put(transport, 2, 60);
  CHECK_EQ(transport.flush(), SendState::kSent);
  CHECK_EQ(back.receive().front(), 2);
  CHECK_EQ(transport.statistics().peer_refused, 1);
}

TEST(a_datagram_longer_than_a_frame_is_dropped_and_counted) {
  Peer peer;
  UdpTransport transport(to(peer.address(), 200));
  put(transport, 7, 60);
  CHECK_EQ(transport.flush(), SendState::kSent);
  static_cast<void>(peer.receive());
  peer.send(std::vector<std::uint8_t>(201, 9));
  peer.send(std::vector<std::uint8_t>(200, 8));
  std::size_t received = 0;
  while (received == 0) {
    wait_readable(transport);
    for (const auto frame : transport.receive()) {
      CHECK_EQ(frame.size(), 200);
      CHECK_EQ(frame.front(), 8);
      ++received;
    }
  }
  CHECK_EQ(transport.statistics().oversized, 1);
}

TEST(the_receive_buffer_is_sized_from_the_window) {
  Peer peer;
  UdpConfig config = to(peer.address());
  config.window = 512;
  const UdpTransport transport(config);
  // 1,094 + 28 bytes are charged as 2 KiB and some bookkeeping, twice the window of them.
  CHECK_EQ(transport.receive_buffer_wanted(), 2 * 512 * (2048 + 512));
  CHECK(transport.receive_buffer() > 0);
}
