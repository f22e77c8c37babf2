// The driver: handles, closing, idleness, failures of the transport, fork. The far end is a model
// switch on loopback or a scripted transport.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/check.hpp"
#include "tests/model_switch.hpp"
#include "transport/driver.hpp"
#include "transport/udp.hpp"

namespace {

using namespace std::chrono_literals;
using namespace pycollective;
using test::kModelLanes;
using test::model_job;
using test::ModelSwitch;
using transport::Driver;
using transport::Handle;
using transport::SendState;
using transport::Transport;
using transport::TransportError;
using transport::TransportStatistics;
using transport::UdpTransport;

constexpr auto kPatience = 10s;  // only a broken build waits this long

std::unique_ptr<Transport> udp_to(const std::string& remote) {
  return std::make_unique<UdpTransport>(
      transport::UdpConfig{.remote = remote,
                           .local = "",
                           .max_frame = wire::frame_bytes(kModelLanes),
                           .window = 8,
                           .mtu = {}});
}

std::shared_ptr<Driver> connect(const ModelSwitch& model, bool completion_queue = false) {
  auto driver = Driver::start(model_job(), udp_to(model.address()), completion_queue);
  REQUIRE(driver->wait_connected(kPatience));
  REQUIRE(!driver->failure());
  return driver;
}

Collective sum_of(const std::vector<std::int32_t>& input, std::vector<std::int32_t>& output) {
  Collective collective;
  collective.kind = CollectiveKind::kAllReduce;
  collective.type = DataType::kInt32;
  collective.input = input.data();
  collective.output = output.data();
  collective.count = input.size();
  return collective;
}

Collective barrier() { return {}; }

std::size_t open_descriptors() {
  const auto entries = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

std::chrono::nanoseconds process_cpu_time() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A transport that does what a test says. Its descriptor is one end of a socket pair: always
// writable, readable when the test writes to the other end.
class ScriptedTransport final : public Transport {
 public:
  struct Script {
    std::mutex mutex;
    int blocked_flushes = 0;  // flushes to refuse first
    bool fail = false;        // then fail
    std::uint64_t frames = 0;
    std::uint64_t blocked = 0;
  };

  explicit ScriptedTransport(std::shared_ptr<Script> script) : script_(std::move(script)) {
    REQUIRE_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends_), 0);
  }
  ~ScriptedTransport() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  std::span<const std::span<const std::uint8_t>> receive() override { return {}; }
  std::span<std::uint8_t> next_buffer() override { return buffer_; }
  void commit(std::size_t) override { ++pending_; }
  SendState flush() override {
    if (pending_ == 0) return SendState::kSent;
    const std::lock_guard lock(script_->mutex);
    if (script_->blocked_flushes > 0) {
      --script_->blocked_flushes;
      ++script_->blocked;
      return SendState::kBlocked;
    }
    if (script_->fail) {
      failure_.emplace(TransportError::Kind::kSystem, "the cable was cut", EIO);
      return SendState::kFailed;
    }
    script_->frames += pending_;
    pending_ = 0;
    return SendState::kSent;
  }
  int descriptor() const override { return ends_[0]; }
  std::size_t max_frame() const override { return buffer_.size(); }
  const TransportStatistics& statistics() const override { return statistics_; }
  std::optional<TransportError> failure() const override { return failure_; }
  std::string peer_condition() const override { return "the far end sleeps"; }

 private:
  std::shared_ptr<Script> script_;
  int ends_[2] = {-1, -1};
  std::vector<std::uint8_t> buffer_ = std::vector<std::uint8_t>(2048);
  std::uint64_t pending_ = 0;
  TransportStatistics statistics_;
  std::optional<TransportError> failure_;
};

}  // namespace

TEST(a_collective_runs_to_its_result) {
  const ModelSwitch model;
  const auto driver = connect(model);
  std::vector<std::int32_t> input(1000);
  std::iota(input.begin(), input.end(), -500);
  std::vector<std::int32_t> output(1000);
  const auto handle = driver->submit(sum_of(input, output));
  REQUIRE(handle->wait(kPatience));
  CHECK(handle->done());
  CHECK_EQ(handle->error().text(), Error{}.text());
  CHECK(input == output);
  CHECK_EQ(handle->id(), 1);
}

TEST(completions_come_once_each_in_order) {
  const ModelSwitch model;
  const auto driver = connect(model, true);
  std::vector<std::shared_ptr<Handle>> handles;
  for (int i = 0; i < 20; ++i) handles.push_back(driver->submit(barrier()));
  for (const auto& handle : handles) {
    const auto completed = driver->next_completed(kPatience);
    REQUIRE(completed != nullptr);
    CHECK_EQ(completed->id(), handle->id());
    CHECK(completed->done());
    CHECK(!completed->error());
  }
  CHECK(driver->next_completed(0ns) == nullptr);
  driver->close();
  CHECK(driver->next_completed({}) == nullptr);
}

TEST(many_threads_may_submit) {
  const ModelSwitch model;
  const auto driver = connect(model);
  std::vector<std::thread> threads;
  std::atomic<int> well{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        const auto handle = driver->submit(barrier());
        if (handle->wait(kPatience) && !handle->error()) ++well;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(well.load(), 100);
  CHECK_EQ(driver->submit(barrier())->id(), 101);
}

TEST(waiting_ends_at_its_timeout) {
  ModelSwitch model;
  model.answers = false;
  const auto driver = connect(model);
  const auto handle = driver->submit(barrier());
  CHECK(!handle->wait(1ms));
  CHECK(!handle->wait(0ns));
  CHECK(!handle->done());
}

TEST(close_ends_what_is_waited_for) {
  ModelSwitch model;
  model.answers = false;
  const auto driver = connect(model);
  const auto handle = driver->submit(barrier());
  std::thread waiter([&] { CHECK(handle->wait({})); });
  driver->close();
  waiter.join();
  CHECK_EQ(handle->error().code, ErrorCode::kCancelled);
  CHECK(contains(handle->error().text(), "closed"));
}

TEST(close_may_come_often_and_from_several_threads) {
  const ModelSwitch model;
  const auto driver = connect(model);
  CHECK(!driver->closed());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { driver->close(); });
  for (std::thread& thread : threads) thread.join();
  driver->close();
  CHECK(driver->closed());
  const auto handle = driver->submit(barrier());
  CHECK(handle->done());
  CHECK_EQ(handle->error().code, ErrorCode::kCancelled);
}

TEST(a_switch_that_is_not_there_is_named) {
  std::string address;
  {
    const ModelSwitch gone;
    address = gone.address();
  }
  JobConfig job = model_job();
  job.timers.probe_interval = 5ms;
  job.timers.connect_timeout = 50ms;
  const auto driver = Driver::start(job, udp_to(address), false);
  REQUIRE(driver->wait_connected(kPatience));
  const auto failure = driver->failure();
  REQUIRE(failure.has_value());
  CHECK_EQ(failure->code, ErrorCode::kSwitchUnreachable);
  CHECK(contains(failure->text(), "nothing listens on " + address));
  const auto handle = driver->submit(barrier());
  REQUIRE(handle->wait(kPatience));
  CHECK_EQ(handle->error().code, ErrorCode::kSwitchUnreachable);
}

TEST(a_refused_collective_does_not_stop_the_others) {
  const ModelSwitch model;
  const auto driver = connect(model);
  Collective product = barrier();
  product.kind = CollectiveKind::kAllReduce;
  product.type = DataType::kByte;
  const auto refused = driver->submit(product);
  const auto fine = driver->submit(barrier());
  REQUIRE(refused->wait(kPatience));
  CHECK_EQ(refused->error().code, ErrorCode::kUnsupported);
  REQUIRE(fine->wait(kPatience));
  CHECK(!fine->error());
}

TEST(an_idle_driver_sleeps) {
  const ModelSwitch model;
  const auto driver = connect(model);
  REQUIRE(driver->submit(barrier())->wait(kPatience));
  // Each is a lower bound on real time and an upper one on our own: load on the machine can only
  // make the driver use less.
  const auto wakeups = driver->statistics().wakeups;
  const auto used = process_cpu_time();
  CHECK(driver->next_completed(300ms) == nullptr);
  CHECK(process_cpu_time() - used < 100ms);
  CHECK(driver->statistics().wakeups <= wakeups + 2);
}

TEST(waiting_for_others_does_not_spin) {
  ModelSwitch model;
  model.answers = false;
  const auto driver = connect(model);
  const auto handle = driver->submit(barrier());
  const auto used = process_cpu_time();
  CHECK(!handle->wait(300ms));
  CHECK(process_cpu_time() - used < 100ms);
}

TEST(no_descriptor_is_left_behind) {
  const ModelSwitch model;
  connect(model)->close();
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 200; ++i) {
    auto driver = connect(model);
    const auto handle = driver->submit(barrier());
    if (i % 2 == 0) driver->close();  // the others close when they are destroyed
    driver.reset();
    CHECK(handle->done());
  }
  CHECK_EQ(open_descriptors(), before);
}

TEST(what_cannot_start_leaves_nothing_behind) {
  const ModelSwitch model;
  const std::size_t before = open_descriptors();
  JobConfig job = model_job();
  job.epoch = 0;
  CHECK_THROWS(Driver::start(job, udp_to(model.address()), false), EngineError);
  job = model_job();
  job.lanes = 2 * kModelLanes;  // longer frames than the transport was opened for
  CHECK_THROWS(Driver::start(job, udp_to(model.address()), false), std::invalid_argument);
  CHECK_EQ(open_descriptors(), before);
}

TEST(a_transport_that_fails_fails_every_handle_with_its_reason) {
  auto script = std::make_shared<ScriptedTransport::Script>();
  script->fail = true;
  const auto driver = Driver::start(model_job(), std::make_unique<ScriptedTransport>(script), true);
  const auto handle = driver->submit(barrier());
  REQUIRE(handle->wait(kPatience));
  CHECK_EQ(handle->error().code, ErrorCode::kTransport);
  CHECK(contains(handle->error().text(), "the cable was cut"));
  const auto late = driver->submit(barrier());
  REQUIRE(late->wait(kPatience));
  CHECK_EQ(late->error().code, ErrorCode::kTransport);
  // A descriptor that stays ready does not keep the thread busy.
  const auto used = process_cpu_time();
  REQUIRE(driver->next_completed(kPatience) != nullptr);
  REQUIRE(driver->next_completed(kPatience) != nullptr);
  CHECK(driver->next_completed(200ms) == nullptr);
  CHECK(process_cpu_time() - used < 100ms);
}

TEST(frames_that_the_transport_could_not_take_go_out_later) {
  auto script = std::make_shared<ScriptedTransport::Script>();
  script->blocked_flushes = 3;
  JobConfig job = model_job();
  job.timers.connect_timeout = 100ms;
  job.timers.probe_interval = 5ms;
  const auto driver = Driver::start(job, std::make_unique<ScriptedTransport>(script), false);
  REQUIRE(driver->wait_connected(kPatience));
  const std::lock_guard lock(script->mutex);
  CHECK_EQ(script->blocked, 3);
  CHECK(script->frames > 0);
  REQUIRE(driver->failure().has_value());
  CHECK(contains(driver->failure()->text(), "the far end sleeps"));
}

TEST(a_forked_child_is_told_and_does_not_hang) {
  ModelSwitch model;
  model.answers = false;
  auto driver = connect(model);
  auto outstanding = driver->submit(barrier());
  std::thread waiter([outstanding] { outstanding->wait({}); });
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    const auto handle = driver->submit(barrier());
    const bool told = handle->done() && handle->error().code == ErrorCode::kCancelled &&
                      contains(handle->error().text(), "fork") && driver->closed() &&
                      driver->next_completed({}) == nullptr;
    driver->close();
    driver.reset();
    outstanding.reset();
    _exit(told ? 0 : 1);
  }
  int status = -1;
  REQUIRE_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  // The parent's connection is untouched.
  CHECK(!outstanding->done());
  driver->close();
  waiter.join();
}
