#include "switch/switch.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "switch/status.hpp"
#include "switch/udp_port.hpp"

namespace p4emu {
namespace {

constexpr std::uint64_t kWakeTag = ~0ULL;
constexpr std::uint16_t kLargestPort = 510;  // 511 means drop
constexpr int kEventsAtOnce = 64;
constexpr std::int64_t kLongestSleepMs = 60'000;  // any: the loop sleeps again

std::uint64_t microseconds(Port::Time time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

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
  const std::lock_guard lock(mutex_);
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

Port::Time Switch::since_start() const { return std::chrono::steady_clock::now() - began_; }

void Switch::process(std::uint16_t port, std::span<const std::uint8_t> frame, FrameSink& sink) {
  const std::lock_guard lock(mutex_);
  pipeline().process(port, frame, microseconds(since_start()), sink);
}

double Switch::measure(
    const std::vector<std::pair<std::uint16_t, std::vector<std::uint8_t>>>& frames,
    std::uint64_t rounds) {
  const std::lock_guard lock(mutex_);
  Pipeline& pipeline = this->pipeline();
  NullSink sink;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    // The clock is read once a batch, as the packet thread does.
    const std::uint64_t now = microseconds(since_start());
    for (const auto& [port, frame] : frames) pipeline.process(port, frame, now, sink);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string Switch::add_udp_port(std::uint16_t number, const std::string& host, std::uint16_t port,
                                 const CaptureConfig& capture) {
  if (number > kLargestPort) {
    throw SwitchError(Code::kInvalidArgument, "port numbers go from 0 to " +
                                                  std::to_string(kLargestPort) + "; got " +
                                                  std::to_string(number));
  }
  const std::lock_guard lock(mutex_);
  if (ports_.contains(number)) {
    throw SwitchError(Code::kAlreadyExists, "port " + std::to_string(number) + " exists already");
  }
  auto io = std::make_unique<UdpPort>(host, port);
  std::unique_ptr<PcapWriter> writer;
  try {
    if (!capture.path.empty()) writer = std::make_unique<PcapWriter>(capture.path, capture.limit);
  } catch (const std::system_error& error) {
    throw SwitchError(Code::kInvalidArgument, error.what());
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = number;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, io->fd(), &event) != 0) {
    throw SwitchError(Code::kUnavailable,
                      "cannot watch port " + std::to_string(number) + ": " + std::strerror(errno));
  }
  return ports_.try_emplace(number, std::move(io), std::move(writer)).first->second.address();
}

void Switch::impair(std::uint16_t number, Direction direction, const ImpairmentConfig& config,
                    std::uint64_t seed) {
  for (const double probability : {config.loss, config.duplicate, config.hold, config.corrupt}) {
    if (!(probability >= 0 && probability <= 1)) {
      throw SwitchError(Code::kInvalidArgument,
                        "a probability is from 0 to 1; got " + std::to_string(probability));
    }
  }
  if (config.hold_limit < Port::Time::zero()) {
    throw SwitchError(Code::kInvalidArgument, "a hold limit is not negative");
  }
  const std::lock_guard lock(mutex_);
  const auto found = ports_.find(number);
  if (found == ports_.end()) {
    throw SwitchError(Code::kNotFound, "there is no port " + std::to_string(number));
  }
  found->second.impair(direction, config, seed);
}

std::map<std::uint16_t, std::pair<std::string, PortCounts>> Switch::ports() const {
  const std::lock_guard lock(mutex_);
  std::map<std::uint16_t, std::pair<std::string, PortCounts>> all;
  for (const auto& [number, port] : ports_) all[number] = {port.address(), port.counts()};
  return all;
}

SwitchCounts Switch::counts() const {
  const std::lock_guard lock(mutex_);
  return {.pipeline = pipeline_ != nullptr ? pipeline_->counts() : PipelineCounts{},
          .no_program = no_program_,
          .no_such_port = no_such_port_};
}

bool Switch::running() const {
  const std::lock_guard<std::mutex> lock(thread_mutex_);
  return thread_.joinable();
}

void Switch::start() {
  const std::lock_guard<std::mutex> lock(thread_mutex_);
  if (thread_.joinable()) return;
  // Signals are for the threads of the program that uses the switch, which may wait for them.
  sigset_t every{};
  sigset_t before{};
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Switch::stop() {
  const std::lock_guard<std::mutex> lock(thread_mutex_);
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof(one));
  thread_.join();
  std::uint64_t drained = 0;
  [[maybe_unused]] const auto got = read(wake_, &drained, sizeof(drained));
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
        found->second.send(owner.now_, bytes);
      }
    }
    Switch& owner;
  } sink(*this);

  std::array<epoll_event, kEventsAtOnce> events{};
  for (;;) {
    const int sleep = expire(sink);
    const int count = epoll_wait(epoll_, events.data(), kEventsAtOnce, sleep);
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == kWakeTag) return;
    }
    // One batch from each port that has something, then the next round: no port starves another.
    for (int i = 0; i < count; ++i) serve(static_cast<std::uint16_t>(events[i].data.u64), sink);
  }
}

void Switch::serve(std::uint16_t number, FrameSink& sink) {
  const std::lock_guard lock(mutex_);
  now_ = since_start();
  ports_.at(number).receive(
      now_, [&](std::span<const std::uint8_t> frame) { take(number, frame, sink); });
  for (auto& [other, port] : ports_) port.flush();
}

int Switch::expire(FrameSink& sink) {
  const std::lock_guard lock(mutex_);
  now_ = since_start();
  bool expired = false;
  for (auto& [number, port] : ports_) {
    if (port.next_deadline().value_or(Port::Time::max()) > now_) continue;
    port.expire(now_, [&, source = number](std::span<const std::uint8_t> frame) {
      take(source, frame, sink);
    });
    expired = true;
  }
  Port::Time next = Port::Time::max();
  for (auto& [number, port] : ports_) {
    if (expired) port.flush();
    next = std::min(next, port.next_deadline().value_or(Port::Time::max()));
  }
  if (next == Port::Time::max()) return -1;
  // A frame whose program took long may be due already.
  const auto sleep = std::chrono::ceil<std::chrono::milliseconds>(next - now_).count();
  return static_cast<int>(std::clamp<std::int64_t>(sleep, 0, kLongestSleepMs));
}

void Switch::take(std::uint16_t number, std::span<const std::uint8_t> frame, FrameSink& sink) {
  if (pipeline_ == nullptr) {
    ++no_program_;
  } else {
    pipeline_->process(number, frame, microseconds(now_), sink);
  }
}

}  // namespace p4emu
