// Grouping datagrams into messages, and taking them apart again, alone and over a loopback socket.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "datagram/segmentation.hpp"
#include "tests/check.hpp"

namespace {

using datagram::SendPlan;

constexpr int kPatienceMs = 5000;  // only a broken build waits this long

// Datagrams of these lengths, each filled with its number, in memory with gaps between them.
struct Datagrams {
  explicit Datagrams(const std::vector<std::size_t>& lengths) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      memory.emplace_back(lengths[i], static_cast<std::uint8_t>(i));
    }
    for (auto& bytes : memory) vectors.push_back({bytes.data(), bytes.size()});
  }
  std::vector<std::vector<std::uint8_t>> memory;
  std::vector<iovec> vectors;
};

std::vector<std::size_t> group_sizes(const std::vector<std::size_t>& lengths, bool segment = true) {
  Datagrams datagrams(lengths);
  SendPlan plan(lengths.size());
  std::vector<std::size_t> sizes;
  const auto messages = plan.build(datagrams.vectors, segment, nullptr);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    sizes.push_back(plan.datagrams_in(i));
    CHECK_EQ(messages[i].msg_hdr.msg_control != nullptr, sizes.back() > 1);
  }
  return sizes;
}

using Sizes = std::vector<std::size_t>;

// Two sockets on loopback, connected to each other.
struct Pair {
  explicit Pair(bool coalesce) {
    for (int& fd : sockets) {
      fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      const int buffer = 4 << 20;  // a whole round waits in it
      setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      REQUIRE_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    }
    for (int i : {0, 1}) {
      sockaddr_in address{};
      socklen_t size = sizeof(address);
      REQUIRE_EQ(getsockname(sockets[1 - i], reinterpret_cast<sockaddr*>(&address), &size), 0);
      REQUIRE_EQ(connect(sockets[i], reinterpret_cast<sockaddr*>(&address), size), 0);
    }
    if (coalesce) coalescing = datagram::enable_coalescing(sockets[1]);
  }
  ~Pair() {
    for (const int fd : sockets) close(fd);
  }
  int sockets[2]{};
  bool coalescing = false;
};

// Sends the datagrams and returns what arrives, in as many messages as it takes.
std::vector<std::vector<std::uint8_t>> through(Pair& pair, Datagrams& datagrams, bool segment,
                                               std::size_t& messages_received) {
  SendPlan plan(datagrams.vectors.size());
  std::size_t done = 0;
  while (done < datagrams.vectors.size()) {
    const auto messages = plan.build(std::span(datagrams.vectors).subspan(done), segment, nullptr);
    const int sent =
        sendmmsg(pair.sockets[0], messages.data(), static_cast<unsigned>(messages.size()), 0);
    if (sent < 0 && SendPlan::is_refusal(errno) && segment) {
      std::printf("this kernel does not segment\n");
      segment = false;
      continue;
    }
    REQUIRE(sent > 0);
    for (int i = 0; i < sent; ++i) done += plan.datagrams_in(static_cast<std::size_t>(i));
  }
  std::vector<std::vector<std::uint8_t>> arrived;
  std::vector<std::uint8_t> buffer(65536);
  std::vector<std::uint8_t> control(datagram::kCoalescingControlBytes);
  messages_received = 0;
  while (arrived.size() < datagrams.vectors.size()) {
    pollfd ready{pair.sockets[1], POLLIN, 0};
    REQUIRE_EQ(poll(&ready, 1, kPatienceMs), 1);
    iovec vector{buffer.data(), buffer.size()};
    msghdr header{};
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const ssize_t bytes = recvmsg(pair.sockets[1], &header, 0);
    REQUIRE(bytes >= 0);
    ++messages_received;
    datagram::split(header, static_cast<std::size_t>(bytes),
                    [&](auto part) { arrived.emplace_back(part.begin(), part.end()); });
  }
  return arrived;
}

}  // namespace

TEST(neighbours_of_one_length_go_together_and_the_last_may_be_shorter) {
  CHECK(group_sizes({100, 100, 100}) == (Sizes{3}));
  CHECK(group_sizes({100, 100, 40}) == (Sizes{3}));
  CHECK(group_sizes({100, 40, 40, 40}) == (Sizes{2, 2}));
  CHECK(group_sizes({40, 100, 100}) == (Sizes{1, 2}));
  CHECK(group_sizes({100}) == (Sizes{1}));
  CHECK(group_sizes({}).empty());
}

TEST(without_segmentation_every_datagram_is_a_message) {
  CHECK(group_sizes({100, 100, 100}, false) == (Sizes{1, 1, 1}));
}

TEST(an_empty_datagram_travels_alone) {
  CHECK(group_sizes({0, 0}) == (Sizes{1, 1}));
  CHECK(group_sizes({100, 0, 100}) == (Sizes{1, 1, 1}));
}

TEST(a_message_has_at_most_the_kernels_segments_and_bytes) {
  CHECK(group_sizes(Sizes(datagram::kMaxSegments + 1, 70)) == (Sizes{datagram::kMaxSegments, 1}));
  CHECK(group_sizes(Sizes(64, 1094)) == (Sizes{59, 5}));
  CHECK(group_sizes(Sizes(3, 40000)) == (Sizes{1, 1, 1}));
}

TEST(datagrams_arrive_as_they_were_sent_segmented_and_coalesced_or_not) {
  constexpr unsigned kSeed = 20261201;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  for (int round = 0; round < 50; ++round) {
    Sizes lengths;
    while (lengths.size() < 100) {
      const std::size_t length = round % 5 == 4 && random() % 8 == 0 ? 0 : 1 + random() % 1200;
      for (std::size_t run = 1 + random() % 20; run > 0; --run) lengths.push_back(length);
    }
    for (const bool segment : {false, true}) {
      for (const bool coalesce : {false, true}) {
        Pair pair(coalesce);
        Datagrams datagrams(lengths);
        std::size_t messages = 0;
        const auto arrived = through(pair, datagrams, segment, messages);
        CHECK(arrived == datagrams.memory);
        CHECK(messages <= lengths.size());
        if (!coalesce) CHECK_EQ(messages, lengths.size());
      }
    }
  }
}
