// The simulation's own parts: links do to frames what they are configured to do, rules act on the
// frames they name, and the same seed gives the same run. The switch here is a stand-in for a job
// of one rank; collectives through the real P4 program are tested in tests/e2e.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <vector>

#include "sim/faults.hpp"
#include "sim/link.hpp"
#include "sim/simulation.hpp"
#include "tests/check.hpp"
#include "wire/frame.hpp"

namespace {

using namespace std::chrono_literals;
using namespace pycollective;
using namespace pycollective::sim;

constexpr std::uint16_t kLanes = 4;

// The only rank of its job.
JobConfig lone_job() {
  JobConfig job;
  job.job = 1;
  job.epoch = 1;
  job.slots = 4;
  job.lanes = kLanes;
  job.mac = {0x02, 0x50, 0x43, 0x00, 0x01, 0x00};
  job.switch_mac = {0x02, 0x50, 0x43, 0xff, 0xff, 0xfe};
  job.ipv4 = 0x0a000101;
  job.switch_ipv4 = 0x0afffffe;
  return job;
}

// Answers probes; gives contributions back as results.
class Mirror final : public SwitchNode {
 public:
  void process(std::uint16_t port, std::span<const std::uint8_t> bytes, FrameSink& sink) override {
    wire::Frame frame;
    if (wire::parse_frame(bytes, frame) != wire::FrameError::kNone) return;
    std::vector<std::uint8_t> answer(bytes.begin(), bytes.end());
    if (frame.header.opcode == wire::Opcode::kProbe) {
      frame.header.opcode = wire::Opcode::kProbeReply;
      frame.header.flags = 0;
      frame.header.lane_count = kLanes;
    } else {
      frame.header.opcode = wire::Opcode::kResult;
    }
    std::swap(frame.addresses.source_mac, frame.addresses.destination_mac);
    std::swap(frame.addresses.source_ipv4, frame.addresses.destination_ipv4);
    const wire::FrameWriter writer(frame.addresses, kLanes);
    answer.resize(writer.finish(frame.header, answer));
    sink.frame(port, answer);
  }
};

Frame frame_of(wire::Opcode opcode, std::uint32_t chunk) {
  wire::InaHeader header;
  header.opcode = opcode;
  header.chunk = chunk;
  header.flags = wire::flag::kData;
  Frame frame(wire::frame_bytes(kLanes), static_cast<std::uint8_t>(chunk));
  const wire::FrameWriter writer({}, kLanes);
  frame.resize(writer.finish(header, frame));
  return frame;
}

Frame contribution(std::uint32_t chunk) { return frame_of(wire::Opcode::kContribute, chunk); }

std::uint32_t chunk_of(std::span<const std::uint8_t> bytes) {
  wire::Frame frame;
  REQUIRE_EQ(wire::parse_frame(bytes, frame), wire::FrameError::kNone);
  return frame.header.chunk;
}

// Puts `count` frames on the link, 1 us apart, and returns what comes out in order of arrival.
std::vector<Delivery> pass(Link& link, std::uint32_t count) {
  sim::Outcome outcome;
  for (std::uint32_t i = 0; i < count; ++i) link.send(Time(i * 1000), contribution(i), outcome);
  std::stable_sort(outcome.deliveries.begin(), outcome.deliveries.end(),
                   [](const Delivery& a, const Delivery& b) { return a.at < b.at; });
  return std::move(outcome.deliveries);
}

LinkConfig perfect() { return {}; }

FrameMatch match_chunk(std::uint32_t chunk) {
  FrameMatch match;
  match.chunk = chunk;
  return match;
}

}  // namespace

TEST(a_perfect_link_delays_and_keeps_the_order) {
  Link link(perfect(), 1, 0);
  const auto out = pass(link, 10);
  REQUIRE_EQ(out.size(), 10);
  for (std::uint32_t i = 0; i < 10; ++i) {
    CHECK_EQ(chunk_of(out[i].frame), i);
    CHECK_EQ(out[i].at.count(), i * 1000 + 5000);
  }
}

TEST(a_rate_spaces_frames_and_a_full_queue_drops_them) {
  LinkConfig config = perfect();
  config.bits_per_second = 1e9;
  config.delay = Time(0);
  config.queue_frames = 3;
  Link link(config, 1, 0);
  sim::Outcome outcome;
  for (std::uint32_t i = 0; i < 5; ++i) link.send(Time(0), contribution(i), outcome);
  REQUIRE_EQ(outcome.deliveries.size(), 3);
  const auto bits = static_cast<std::int64_t>(wire::frame_bytes(kLanes) * 8);  // 1 ns each
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK_EQ(outcome.deliveries[i].at.count(), bits * static_cast<std::int64_t>(i + 1));
  }
  CHECK_EQ(link.statistics.queue_drops, 2);
  // The wire is free again later.
  link.send(Time(bits * 3), contribution(5), outcome);
  CHECK_EQ(outcome.deliveries.size(), 4);
}

TEST(losses_and_copies_come_as_often_as_configured) {
  LinkConfig config = perfect();
  config.loss = 0.25;
  config.duplicate = 0.1;
  Link link(config, 7, 0);
  const auto out = pass(link, 4000);
  CHECK_EQ(link.statistics.sent, 4000);
  // Ten standard deviations around the mean: a wrong draw is far outside, a seed cannot be.
  CHECK(link.statistics.lost > 726 && link.statistics.lost < 1274);
  CHECK(link.statistics.duplicated > 130 && link.statistics.duplicated < 470);
  CHECK_EQ(out.size(), 4000 - link.statistics.lost + link.statistics.duplicated);
  CHECK_EQ(out.size(), link.statistics.delivered);
}

TEST(a_frame_held_back_lets_up_to_k_others_pass) {
  LinkConfig config = perfect();
  config.hold = 0.05;
  config.hold_frames = 50;
  Link link(config, 3, 0);
  const auto out = pass(link, 4000);
  CHECK(link.statistics.held > 0);
  std::int64_t latest = 0;
  std::uint32_t seen = 0;
  std::size_t overtaken = 0;
  for (const Delivery& delivery : out) {
    const std::uint32_t chunk = chunk_of(delivery.frame);
    if (chunk < seen) {
      ++overtaken;
      latest = std::max<std::int64_t>(latest, seen - chunk);
    }
    seen = std::max(seen, chunk);
  }
  CHECK_EQ(overtaken + link.held(), link.statistics.held);
  CHECK(latest > 30 && latest <= 50);
  CHECK_EQ(out.size() + link.held(), 4000);
}

TEST(a_quiet_link_lets_held_frames_go_at_their_limit) {
  LinkConfig config = perfect();
  config.hold = 1;
  config.hold_limit = 1ms;
  Link link(config, 3, 0);
  sim::Outcome outcome;
  link.send(Time(0), contribution(9), outcome);
  CHECK(outcome.deliveries.empty());
  REQUIRE_EQ(outcome.expiries.size(), 1);
  CHECK_EQ(outcome.expiries[0].count(), 1'005'000);
  CHECK(link.expire(outcome.expiries[0] - Time(1)).empty());
  const std::vector<Frame> frames = link.expire(outcome.expiries[0]);
  REQUIRE_EQ(frames.size(), 1);
  CHECK_EQ(chunk_of(frames[0]), 9);
  CHECK(link.expire(outcome.expiries[0]).empty());
}

TEST(corruption_never_passes_the_checksums) {
  LinkConfig config = perfect();
  config.corrupt = 1;
  const Frame original = contribution(0x5a5a5a5a);
  std::map<wire::FrameError, std::uint64_t> reasons;
  Link link(config, 11, 0);
  for (int i = 0; i < 20000; ++i) {
    sim::Outcome outcome;
    link.send(Time(0), original, outcome);
    REQUIRE_EQ(outcome.deliveries.size(), 1);
    const Frame& damaged = outcome.deliveries[0].frame;
    CHECK(damaged != original);
    wire::Frame frame;
    const wire::FrameError error = wire::parse_frame(damaged, frame);
    ++reasons[error];
    if (error == wire::FrameError::kNone) {
      // Only the Ethernet addresses have no checksum of their own.
      CHECK(std::equal(damaged.begin() + 12, damaged.end(), original.begin() + 12));
    }
  }
  CHECK(reasons[wire::FrameError::kUdpChecksum] > 5000);
  CHECK(reasons[wire::FrameError::kIpv4Checksum] > 500);
}

TEST(links_of_one_seed_differ_and_repeat) {
  LinkConfig config = perfect();
  config.loss = 0.5;
  const auto chunks = [&config](std::uint64_t seed, std::uint64_t stream) {
    Link link(config, seed, stream);
    std::vector<std::uint32_t> numbers;
    for (const Delivery& delivery : pass(link, 64)) numbers.push_back(chunk_of(delivery.frame));
    return numbers;
  };
  CHECK(chunks(1, 0) == chunks(1, 0));
  CHECK(chunks(1, 0) != chunks(1, 1));
  CHECK(chunks(1, 0) != chunks(2, 0));
}

TEST(a_rule_drops_exactly_the_frames_it_names) {
  Faults faults;
  const std::size_t rule =
      faults.add({.action = FaultAction::kDrop, .match = match_chunk(3), .skip = 1, .count = 2});
  CHECK(faults.admit(Time(0), 0, Direction::kToSwitch, contribution(2)));
  std::vector<bool> admitted;
  for (int i = 0; i < 5; ++i) {
    admitted.push_back(faults.admit(Time(0), 0, Direction::kToSwitch, contribution(3)));
  }
  CHECK(admitted == std::vector<bool>({true, false, false, true, true}));
  CHECK_EQ(faults.statistics(rule).hit, 2);
}

TEST(a_match_looks_at_every_field_it_names) {
  FrameMatch match;
  match.host = 1;
  match.direction = Direction::kToHost;
  match.opcode = static_cast<std::uint8_t>(wire::Opcode::kResult);
  match.chunk = 5;
  match.slot = 0;
  match.slot_version = 0;
  match.sequence = 0;
  match.retransmit = false;
  const Frame result = frame_of(wire::Opcode::kResult, 5);
  CHECK(match.matches(1, Direction::kToHost, result));
  CHECK(!match.matches(0, Direction::kToHost, result));
  CHECK(!match.matches(1, Direction::kToSwitch, result));
  CHECK(!match.matches(1, Direction::kToHost, frame_of(wire::Opcode::kStatus, 5)));
  CHECK(!match.matches(1, Direction::kToHost, frame_of(wire::Opcode::kResult, 6)));
  match.retransmit = true;
  CHECK(!match.matches(1, Direction::kToHost, result));
  const FrameMatch anything;
  CHECK(anything.matches(0, Direction::kToHost, result));
  CHECK(!anything.matches(0, Direction::kToHost, Frame(60, 0)));
  CHECK(!anything.matches(0, Direction::kToHost, Frame(10, 0)));
}

TEST(what_a_rule_holds_comes_after_the_frame_that_brings_its_moment) {
  Faults faults;
  const std::size_t copy = faults.add({.action = FaultAction::kDuplicate,
                                       .match = match_chunk(0),
                                       .until_delivered = match_chunk(8),
                                       .until_occurrence = 2});
  const std::size_t kept =
      faults.add({.action = FaultAction::kHold, .match = match_chunk(1), .until_time = Time(5000)});
  CHECK(faults.admit(Time(0), 0, Direction::kToSwitch, contribution(0)));
  CHECK(!faults.admit(Time(0), 0, Direction::kToSwitch, contribution(1)));
  CHECK_EQ(faults.next_deadline()->count(), 5000);
  std::vector<Released> released;
  faults.delivered(Time(10), 0, Direction::kToSwitch, contribution(8), released);
  faults.elapsed(Time(4999), released);
  CHECK(released.empty());
  faults.delivered(Time(20), 0, Direction::kToSwitch, contribution(8), released);
  REQUIRE_EQ(released.size(), 1);
  CHECK_EQ(chunk_of(released[0].frame), 0);
  CHECK_EQ(faults.statistics(copy).moment->count(), 20);
  faults.elapsed(Time(5000), released);
  REQUIRE_EQ(released.size(), 2);
  CHECK_EQ(chunk_of(released[1].frame), 1);
  CHECK_EQ(faults.statistics(kept).released, 1);
  CHECK(!faults.next_deadline());
  // The moments have passed: the rules are over.
  CHECK(faults.admit(Time(6000), 0, Direction::kToSwitch, contribution(1)));
}

namespace {

struct Run {
  Time end{};
  std::uint64_t frames = 0;
  std::uint64_t retransmissions = 0;
  friend bool operator==(const Run&, const Run&) = default;
};

Run run_sum(std::uint64_t seed, const LinkConfig& link, const std::string& capture = {}) {
  std::vector<std::int32_t> input(1000);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::int32_t>(i) - 500;
  std::vector<std::int32_t> output(1000);
  Simulation simulation({.seed = seed, .to_switch = link, .to_host = link}, {lone_job()},
                        std::make_unique<Mirror>());
  if (!capture.empty()) simulation.capture(0, capture);
  Collective sum;
  sum.kind = CollectiveKind::kAllReduce;
  sum.type = DataType::kInt32;
  sum.input = input.data();
  sum.output = output.data();
  sum.count = input.size();
  const CollectiveId id = simulation.submit(0, sum);
  REQUIRE(simulation.run(10s));
  REQUIRE_EQ(simulation.ended().size(), 1);
  CHECK_EQ(simulation.ended()[0].id, id);
  CHECK(!simulation.ended()[0].error);
  CHECK(input == output);
  const Time end = simulation.now();
  CHECK(simulation.drain(10s));
  return {end, simulation.link(0, Direction::kToHost).delivered,
          simulation.engine(0).statistics().retransmissions};
}

}  // namespace

TEST(a_run_repeats_from_its_seed_and_recovers_from_everything) {
  LinkConfig rough = perfect();
  rough.loss = 0.05;
  rough.duplicate = 0.02;
  rough.hold = 0.05;
  rough.corrupt = 0.02;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    check::Context context("seed", seed);
    const Run first = run_sum(seed, rough);
    CHECK(first == run_sum(seed, rough));
    CHECK(first.retransmissions > 0);
  }
  CHECK(!(run_sum(1, rough) == run_sum(2, rough)));
  CHECK_EQ(run_sum(1, perfect()).retransmissions, 0);
}

TEST(a_silent_host_is_not_waited_for) {
  JobConfig job = lone_job();
  Simulation simulation({}, {job}, std::make_unique<Mirror>());
  simulation.submit(0, {});
  simulation.silence(0);
  CHECK(simulation.run(1s));
  CHECK(simulation.ended().empty());
  CHECK_EQ(simulation.link(0, Direction::kToSwitch).sent, 0);
}

TEST(a_run_ends_at_its_limit) {
  LinkConfig cut = perfect();
  cut.loss = 1;
  Simulation simulation({.to_switch = cut}, {lone_job()}, std::make_unique<Mirror>());
  simulation.submit(0, {});
  CHECK(!simulation.run(20ms));
  CHECK_EQ(simulation.now().count(), 20'000'000);
  // And the engine's own limit is kept in virtual time.
  CHECK(simulation.run(1min));
  REQUIRE_EQ(simulation.ended().size(), 1);
  CHECK_EQ(simulation.ended()[0].error.code, ErrorCode::kSwitchUnreachable);
  CHECK_EQ(simulation.ended()[0].at.count(), 5'000'000'000);
}

TEST(a_rule_ends_at_its_time_however_the_run_is_cut) {
  Simulation simulation({}, {lone_job()}, std::make_unique<Mirror>());
  FrameMatch results;
  results.opcode = static_cast<std::uint8_t>(wire::Opcode::kResult);
  const std::size_t rule = simulation.add_fault(
      {.action = FaultAction::kDrop, .match = results, .count = 0, .until_time = Time(300ms)});
  simulation.submit(0, {});
  int cuts = 0;
  while (!simulation.run(10ms)) REQUIRE(++cuts < 100);
  CHECK(cuts >= 30);
  CHECK(simulation.now() > 300ms);
  CHECK(simulation.fault(rule).hit > 1);
  CHECK_EQ(simulation.fault(rule).moment->count(), 300'000'000);
  REQUIRE_EQ(simulation.ended().size(), 1);
  CHECK(!simulation.ended()[0].error);
}

TEST(a_capture_holds_every_frame_of_the_port_with_its_length) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("pycollective-test-sim-" + std::to_string(getpid()) + ".pcap");
  const Run run = run_sum(1, perfect(), path);
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  std::filesystem::remove(path);
  REQUIRE(bytes.size() > 24);
  std::uint32_t magic = 0;
  std::memcpy(&magic, bytes.data(), sizeof(magic));
  CHECK_EQ(magic, 0xa1b23c4dU);
  std::size_t at = 24;
  std::uint64_t frames = 0;
  while (at < bytes.size()) {
    std::uint32_t length = 0;
    REQUIRE(at + 16 <= bytes.size());
    std::memcpy(&length, bytes.data() + at + 8, sizeof(length));
    REQUIRE(at + 16 + length <= bytes.size());
    wire::Frame frame;
    CHECK_EQ(wire::parse_frame(
                 {reinterpret_cast<const std::uint8_t*>(bytes.data()) + at + 16, length}, frame),
             wire::FrameError::kNone);
    at += 16 + length;
    ++frames;
  }
  CHECK_EQ(frames, 2 * run.frames);  // as many to the switch as from it
}
