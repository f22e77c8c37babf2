// The switch's thread: ports over real loopback sockets, control calls beside it, impaired cables,
// captures that fail. The program is fake; time is real, and only a broken build waits long.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "switch/status.hpp"
#include "switch/switch.hpp"
#include "tests/check.hpp"
#include "tests/fake_program.hpp"

namespace {

using namespace p4emu;
using namespace std::chrono_literals;
using Bytes = std::vector<std::uint8_t>;

constexpr int kPatienceMs = 20'000;

// A switch that runs the fake program.
struct Running {
  explicit Running(bool start = true) {
    const ProgramImage image = fake::image();
    target.load(&image, nullptr);
    if (start) target.start();
  }
  std::uint64_t packets() {
    return target.with_pipeline([](Pipeline& p) { return p.read_counter(0, 0).packets; });
  }
  PortCounts port(std::uint16_t number) { return target.ports().at(number).second; }
  Switch target;
};

// A host at a port: a socket that sends to it.
class Host {
 public:
  explicit Host(const std::string& address) : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const std::size_t colon = address.find(':');
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
    inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
    const int buffer = 4 << 20;
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    REQUIRE_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  }
  ~Host() { close(fd_); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  void send(const Bytes& frame) {
    REQUIRE_EQ(::send(fd_, frame.data(), frame.size(), 0), static_cast<ssize_t>(frame.size()));
  }
  Bytes receive() {
    pollfd ready{fd_, POLLIN, 0};
    REQUIRE_EQ(poll(&ready, 1, kPatienceMs), 1);
    Bytes bytes(70'000);
    const ssize_t size = recv(fd_, bytes.data(), bytes.size(), 0);
    REQUIRE(size >= 0);
    bytes.resize(static_cast<std::size_t>(size));
    return bytes;
  }

 private:
  int fd_;
};

Bytes to_port(std::uint16_t port, std::uint8_t fill = 0xab, std::size_t payload = 10) {
  return fake::frame({.spec = port}, payload, fill);
}

template <typename Call>
std::optional<Code> code_of(Call&& call) {
  try {
    call();
  } catch (const SwitchError& error) {
    return error.code();
  }
  return std::nullopt;
}

struct Ignore final : FrameSink {
  void frame(std::uint16_t /*port*/, std::span<const std::uint8_t> /*bytes*/) override {}
};

}  // namespace

TEST(a_burst_comes_back_whole_and_in_order) {
  Running running;
  Host host(running.target.add_udp_port(1, "127.0.0.1", 0));
  constexpr int kBurst = 600;  // more than one batch, less than the buffers of both sockets
  for (int i = 0; i < kBurst; ++i) {
    host.send(to_port(1, static_cast<std::uint8_t>(i), 100 + static_cast<std::size_t>(i) % 7));
  }
  for (int i = 0; i < kBurst; ++i) {
    const check::Context context("frame", i);
    const Bytes frame = host.receive();
    REQUIRE_EQ(frame.size(), sizeof(fake::Report) + 100 + static_cast<std::size_t>(i) % 7);
    CHECK_EQ(frame.back(), static_cast<std::uint8_t>(i));
  }
  const PortCounts counts = running.port(1);
  CHECK_EQ(counts.io.rx_frames, kBurst);
  CHECK_EQ(counts.io.tx_frames, kBurst);
}

TEST(starting_and_stopping_is_quick_however_often_and_from_wherever) {
  Running running(false);
  Host host(running.target.add_udp_port(1, "127.0.0.1", 0));
  for (int i = 0; i < 200; ++i) {
    running.target.start();
    CHECK(running.target.running());
    running.target.stop();
    CHECK(!running.target.running());
  }
  std::thread other([&] {
    for (int i = 0; i < 200; ++i) running.target.start();
  });
  for (int i = 0; i < 200; ++i) running.target.stop();
  other.join();
  running.target.start();
  host.send(to_port(1));
  CHECK_EQ(host.receive().back(), 0xab);
}

TEST(control_calls_get_their_turn_while_packets_keep_coming) {
  constexpr std::uint64_t kBatch = 50;
  constexpr std::uint64_t kCalls = 200;
  Running running(false);
  std::atomic<bool> done = false;
  const std::vector<std::pair<std::uint16_t, Bytes>> frames = {{1, to_port(1, 0, 60'000)}};
  std::thread packets([&] {
    while (!done) running.target.measure(frames, kBatch);
  });
  while (running.packets() == 0) std::this_thread::yield();
  const std::uint64_t before = running.packets();
  for (std::uint64_t i = 0; i < kCalls; ++i) running.packets();
  const std::uint64_t batches = (running.packets() - before) / kBatch;
  done = true;
  packets.join();
  // Whoever waits is served after one batch; the rest is what runs between the calls.
  CHECK(batches > 0);
  CHECK(batches < 5 * kCalls);
}

TEST(programs_and_groups_change_while_packets_flow) {
  Running running;
  Host host(running.target.add_udp_port(1, "127.0.0.1", 0));
  const ProgramImage image = fake::image();
  for (int round = 0; round < 100; ++round) {
    running.target.load(&image, nullptr);
    running.target.with_pipeline([](Pipeline& p) { p.set_group(5, {{1, 1}, {1, 2}}); });
    host.send(fake::frame({.group = 5}));
    CHECK_EQ(fake::report_of(host.receive()).rid, 1);
    CHECK_EQ(fake::report_of(host.receive()).rid, 2);
    CHECK_EQ(running.packets(), 1);
  }
}

TEST(what_keeps_the_code_alive_is_let_go_with_the_program_and_not_before) {
  Running running;
  Host host(running.target.add_udp_port(1, "127.0.0.1", 0));
  auto code = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = code;
  const ProgramImage image = fake::image();
  running.target.load(&image, std::move(code));
  host.send(to_port(1));
  host.receive();
  CHECK(!watch.expired());
  running.target.load(nullptr, nullptr);
  CHECK(watch.expired());
}

TEST(without_a_program_frames_are_counted_and_dropped) {
  Switch target;
  Host host(target.add_udp_port(1, "127.0.0.1", 0));
  target.start();
  host.send(to_port(1));
  while (target.counts().no_program == 0) std::this_thread::yield();
  const ProgramImage image = fake::image();
  target.load(&image, nullptr);
  host.send(to_port(1));
  host.receive();
  CHECK_EQ(target.counts().no_program, 1);
  CHECK_EQ(target.counts().pipeline.sent, 1);
}

TEST(a_cable_that_loses_everything_delivers_nothing_until_it_is_mended) {
  Running running;
  Host host(running.target.add_udp_port(1, "127.0.0.1", 0));
  running.target.impair(1, Direction::kReceive, {.loss = 1}, 1);
  host.send(to_port(1, 1));
  while (running.port(1).receive.lost == 0) std::this_thread::yield();
  CHECK_EQ(running.packets(), 0);
  running.target.impair(1, Direction::kReceive, {}, 1);
  running.target.impair(1, Direction::kTransmit, {.loss = 1}, 1);
  host.send(to_port(1, 2));
  while (running.port(1).transmit.lost == 0) std::this_thread::yield();
  CHECK_EQ(running.packets(), 1);
  running.target.impair(1, Direction::kTransmit, {}, 1);
  host.send(to_port(1, 3));
  CHECK_EQ(host.receive().back(), 3);
}

TEST(duplicates_arise_on_the_way_in_and_on_the_way_out) {
  Running running;
  Host host(running.target.add_udp_port(1, "127.0.0.1", 0));
  running.target.impair(1, Direction::kReceive, {.duplicate = 1}, 1);
  running.target.impair(1, Direction::kTransmit, {.duplicate = 1}, 1);
  host.send(to_port(1));
  for (int i = 0; i < 4; ++i) CHECK_EQ(host.receive().back(), 0xab);
  CHECK_EQ(running.packets(), 2);
  CHECK_EQ(running.port(1).receive.duplicated, 1);
  CHECK_EQ(running.port(1).transmit.duplicated, 2);
}

TEST(held_frames_arrive_although_nothing_follows_them) {
  Running running;
  Host host(running.target.add_udp_port(1, "127.0.0.1", 0));
  const ImpairmentConfig hold{.hold = 1, .hold_frames = 1000, .hold_limit = 2ms};
  running.target.impair(1, Direction::kReceive, hold, 1);
  running.target.impair(1, Direction::kTransmit, hold, 1);
  host.send(to_port(1));
  CHECK_EQ(host.receive().back(), 0xab);
  CHECK_EQ(running.port(1).receive.held, 1);
  CHECK_EQ(running.port(1).transmit.held, 1);
}

TEST(an_impairment_that_makes_no_sense_is_refused) {
  Running running;
  running.target.add_udp_port(1, "127.0.0.1", 0);
  const auto impair = [&](std::uint16_t port, const ImpairmentConfig& config) {
    return code_of([&] { running.target.impair(port, Direction::kReceive, config, 1); });
  };
  CHECK(impair(2, {}) == Code::kNotFound);
  CHECK(impair(1, {.loss = 1.5}) == Code::kInvalidArgument);
  CHECK(impair(1, {.corrupt = -0.1}) == Code::kInvalidArgument);
  CHECK(impair(1, {.hold = 0.0 / 0.0}) == Code::kInvalidArgument);
  CHECK(impair(1, {.hold_limit = -1ns}) == Code::kInvalidArgument);
  CHECK(!impair(1, {.loss = 1}));
}

TEST(a_capture_that_cannot_grow_ends_and_the_switch_goes_on) {
  // Files may have 4096 bytes for the duration of this test.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 4096;
  REQUIRE_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const std::string path =
      std::filesystem::temp_directory_path() / ("p4emu-full." + std::to_string(getpid()));
  {
    Running running;
    Host host(running.target.add_udp_port(1, "127.0.0.1", 0, {.path = path}));
    for (int i = 0; i < 20; ++i) {
      host.send(to_port(1, static_cast<std::uint8_t>(i), 1000));
      CHECK_EQ(host.receive().back(), i);
    }
    CHECK_EQ(running.port(1).capture_errors, 1);
  }
  CHECK(std::filesystem::file_size(path) <= 4096);
  std::filesystem::remove(path);
  std::signal(SIGXFSZ, handler);
  setrlimit(RLIMIT_FSIZE, &before);
}

TEST(a_port_that_cannot_be_opened_leaves_nothing_behind) {
  Running running;
  const CaptureConfig nowhere{.path = "/nowhere/x.pcap"};
  CHECK(code_of([&] { running.target.add_udp_port(1, "127.0.0.1", 0, nowhere); }) ==
        Code::kInvalidArgument);
  CHECK(running.target.ports().empty());
  running.target.add_udp_port(1, "127.0.0.1", 0);
  CHECK(code_of([&] { running.target.add_udp_port(1, "127.0.0.1", 0); }) == Code::kAlreadyExists);
  CHECK(code_of([&] { running.target.add_udp_port(511, "127.0.0.1", 0); }) ==
        Code::kInvalidArgument);
  CHECK_EQ(running.target.ports().size(), 1);
}

TEST(signals_are_left_to_the_threads_that_use_the_switch) {
  const auto blocked = [](const std::string& task) {
    std::ifstream status("/proc/self/task/" + task + "/status");
    for (std::string word; status >> word;) {
      if (word == "SigBlk:" && status >> word) return std::stoull(word, nullptr, 16);
    }
    return 0ULL;
  };
  constexpr std::uint64_t kInterrupt = 1ULL << (SIGINT - 1);
  const std::string self = std::to_string(gettid());
  Running running;
  std::size_t others = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string name = task.path().filename();
    others += name != self;
    CHECK_EQ((blocked(name) & kInterrupt) != 0, name != self);
  }
  CHECK(others >= 1);
}
