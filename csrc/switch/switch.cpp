#include "switch/switch.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "switch/status.hpp"

namespace p4emu {
namespace {

constexpr std::uint64_t kWakeTag = ~0ULL;
constexpr std::uint16_t kLargestPort = 510;  // 511 means drop
constexpr int kEventsAtOnce = 64;

struct NullSink final : FrameSink {
  void frame(std::uint16_t /*port*/, std::span<const std::uint8_t> bytes) override {
    bytes_out += bytes.size();
  }
  std::uint64_t bytes_out = 0;
};

}  // namespace

Switch::Switch()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (epoll_ < 0 || wake_ < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot create a switch");
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeTag;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
}

Switch::~Switch() {
  stop();
  close(epoll_);
  close(wake_);
}

void Switch::load(const ProgramImage* image, std::shared_ptr<void> keep) {
  std::unique_ptr<Pipeline> fresh = image != nullptr ? std::make_unique<Pipeline>(*image) : nullptr;
  std::shared_ptr<void> old;  // released after the lock: it may run foreign destructors
  const std::lock_guard<std::mutex> lock(mutex_);
  pipeline_.swap(fresh);
  old = std::exchange(keep_, std::move(keep));
}

Pipeline& Switch::pipeline() {
  if (pipeline_ == nullptr) {
    throw SwitchError(Code::kFailedPrecondition,
                      "the switch has no program; load one (SetForwardingPipelineConfig) first");
  }
  return *pipeline_;
}

std::uint64_t Switch::microseconds() const {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                        std::chrono::steady_clock::now() - began_)
                                        .count());
}

void Switch::process(std::uint16_t port, std::span<const std::uint8_t> frame, FrameSink& sink) {
  const std::lock_guard<std::mutex> lock(mutex_);
  pipeline().process(port, frame, microseconds(), sink);
}

double Switch::measure(
    const std::vector<std::pair<std::uint16_t, std::vector<std::uint8_t>>>& frames,
    std::uint64_t rounds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Pipeline& pipeline = this->pipeline();
  NullSink sink;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    // The clock is read once a batch, as the packet thread does.
    const std::uint64_t now = microseconds();
    for (const auto& [port, frame] : frames) pipeline.process(port, frame, now, sink);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string Switch::add_udp_port(std::uint16_t number, const std::string& host,
                                 std::uint16_t port) {
  if (number > kLargestPort) {
    throw SwitchError(Code::kInvalidArgument, "port numbers go from 0 to " +
                                                  std::to_string(kLargestPort) + "; got " +
                                                  std::to_string(number));
  }
  auto fresh = std::make_unique<UdpPort>(host, port);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [place, inserted] = ports_.try_emplace(number, nullptr);
  if (!inserted) {
    throw SwitchError(Code::kAlreadyExists, "port " + std::to_string(number) + " exists already");
  }
  place->second = std::move(fresh);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = number;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, place->second->fd(), &event);
  return place->second->address();
}

UdpPort& Switch::port(std::uint16_t number) {
  const auto found = ports_.find(number);
  if (found == ports_.end()) {
    throw SwitchError(Code::kNotFound, "there is no port " + std::to_string(number));
  }
  return *found->second;
}

void Switch::capture(std::uint16_t number, const std::string& path, std::uint64_t limit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  port(number).capture(std::make_unique<PcapWriter>(path, limit));
}

std::map<std::uint16_t, std::pair<std::string, PortCounts>> Switch::ports() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::map<std::uint16_t, std::pair<std::string, PortCounts>> all;
  for (const auto& [number, port] : ports_) all[number] = {port->address(), port->counts()};
  return all;
}

std::uint64_t Switch::no_such_port() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return no_such_port_;
}

void Switch::start() {
  const std::lock_guard<std::mutex> lock(thread_mutex_);
  if (thread_.joinable()) return;
  thread_ = std::thread([this] { run(); });
}

void Switch::stop() {
  const std::lock_guard<std::mutex> lock(thread_mutex_);
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof(one));
  thread_.join();
  std::uint64_t drained = 0;
  [[maybe_unused]] const auto got = read(wake_, &drained, sizeof(drained));
  const std::lock_guard<std::mutex> state(mutex_);
  for (const auto& [number, port] : ports_) port->flush_capture();
}

void Switch::run() {
  // Frames leave through the ports' own queues; they are sent when a batch has been processed.
  struct PortSink final : FrameSink {
    explicit PortSink(Switch& owner) : owner(owner) {}
    void frame(std::uint16_t number, std::span<const std::uint8_t> bytes) override {
      const auto found = owner.ports_.find(number);
      if (found == owner.ports_.end()) {
        ++owner.no_such_port_;
      } else {
        found->second->queue(bytes);
      }
    }
    Switch& owner;
  } sink(*this);

  std::array<epoll_event, kEventsAtOnce> events{};
  for (;;) {
    const int count = epoll_wait(epoll_, events.data(), kEventsAtOnce, -1);
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == kWakeTag) return;
    }
    // One batch from each port that has something, then the next round: no port starves another.
    for (int i = 0; i < count; ++i) {
      const std::lock_guard<std::mutex> lock(mutex_);
      UdpPort& source = *ports_.at(static_cast<std::uint16_t>(events[i].data.u64));
      const std::uint64_t now = microseconds();
      for (const std::span<const std::uint8_t> frame : source.receive()) {
        if (pipeline_ != nullptr) {
          pipeline_->process(static_cast<std::uint16_t>(events[i].data.u64), frame, now, sink);
        }
      }
      for (const auto& [number, port] : ports_) port->flush();
    }
  }
}

}  // namespace p4emu
