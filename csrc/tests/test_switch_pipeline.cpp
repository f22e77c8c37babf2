// The packet replication engine and the state around a program: what v1model says of unicast,
// multicast and drops, as BMv2 does it.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "switch/pipeline.hpp"
#include "switch/status.hpp"
#include "tests/check.hpp"
#include "tests/fake_program.hpp"

namespace {

using namespace p4emu;
using fake::Order;
using fake::Report;
using Bytes = std::vector<std::uint8_t>;

struct Collector final : FrameSink {
  void frame(std::uint16_t port, std::span<const std::uint8_t> bytes) override {
    frames.emplace_back(port, Bytes(bytes.begin(), bytes.end()));
  }
  std::vector<std::pair<std::uint16_t, Bytes>> frames;
};

std::vector<std::pair<std::uint16_t, Bytes>> run(Pipeline& pipeline, const Bytes& frame,
                                                 std::uint16_t port = 3,
                                                 std::uint64_t microseconds = 1000) {
  Collector collector;
  pipeline.process(port, frame, microseconds, collector);
  return collector.frames;
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

}  // namespace

TEST(a_unicast_frame_leaves_once_with_its_metadata) {
  Pipeline pipeline(fake::image());
  const Bytes in = fake::frame({.spec = 7});
  const auto out = run(pipeline, in, 3, 123456);
  REQUIRE_EQ(out.size(), 1);
  CHECK_EQ(out[0].first, 7);
  const Report report = fake::report_of(out[0].second);
  CHECK_EQ(report.ingress_port, 3);
  CHECK_EQ(report.egress_port, 7);
  CHECK_EQ(report.rid, 0);
  CHECK_EQ(report.instance_type, 0);  // PKT_INSTANCE_TYPE_NORMAL
  CHECK_EQ(report.packet_length, in.size());
  CHECK_EQ(report.ingress_timestamp, 123456);
  CHECK_EQ(report.egress_timestamp, 123456);
  CHECK_EQ(report.enq_timestamp, 123456);
  CHECK_EQ(report.egress_spec_before, 0);  // anything but the drop port
  // The payload follows the emitted headers.
  CHECK(Bytes(out[0].second.begin() + sizeof(Report), out[0].second.end()) == Bytes(10, 0xab));
}

TEST(port_511_drops_and_so_does_egress) {
  Pipeline pipeline(fake::image());
  CHECK(run(pipeline, fake::frame({.spec = 511})).empty());
  CHECK(run(pipeline, fake::frame({.spec = 7, .egress_drop_rid = 0})).empty());
  CHECK_EQ(pipeline.counts().processed, 2);
  CHECK_EQ(pipeline.counts().dropped, 2);
  CHECK_EQ(pipeline.counts().sent, 0);
}

TEST(a_multicast_copy_goes_to_each_replica_with_its_instance_and_variables_of_its_own) {
  Pipeline pipeline(fake::image());
  pipeline.set_group(9, {{1, 11}, {2, 12}, {2, 13}});
  const auto out = run(pipeline, fake::frame({.spec = 511, .group = 9}));  // the group goes first
  REQUIRE_EQ(out.size(), 3);
  const std::uint16_t ports[] = {1, 2, 2};
  for (std::size_t i = 0; i < 3; ++i) {
    const check::Context context("copy", i);
    const Report report = fake::report_of(out[i].second);
    CHECK_EQ(out[i].first, ports[i]);
    CHECK_EQ(report.egress_port, ports[i]);
    CHECK_EQ(report.rid, 11 + i);
    CHECK_EQ(report.instance_type, 5);  // PKT_INSTANCE_TYPE_REPLICATION
    CHECK_EQ(report.egress_runs, 1);
    CHECK_EQ(report.egress_spec_before, 0);
  }
  CHECK_EQ(pipeline.counts().sent, 3);
  CHECK_EQ(pipeline.counts().dropped, 0);
}

TEST(egress_may_drop_one_copy_of_several) {
  Pipeline pipeline(fake::image());
  pipeline.set_group(9, {{1, 11}, {2, 12}, {3, 13}});
  for (const std::uint16_t dropped : {11, 12, 13}) {
    const auto out = run(pipeline, fake::frame({.group = 9, .egress_drop_rid = dropped}));
    CHECK_EQ(out.size(), 2);
    for (const auto& [port, bytes] : out) CHECK(fake::report_of(bytes).rid != dropped);
  }
  CHECK_EQ(pipeline.counts().dropped, 0);
}

TEST(a_group_that_is_not_set_or_empty_drops) {
  Pipeline pipeline(fake::image());
  pipeline.set_group(9, {});
  CHECK(run(pipeline, fake::frame({.spec = 7, .group = 9})).empty());
  CHECK_EQ(pipeline.counts().unknown_group, 0);
  pipeline.delete_group(9);
  CHECK(run(pipeline, fake::frame({.spec = 7, .group = 9})).empty());
  CHECK_EQ(pipeline.counts().unknown_group, 1);
  CHECK_EQ(pipeline.counts().dropped, 2);
  CHECK(code_of([&] { pipeline.delete_group(9); }) == Code::kNotFound);
  CHECK(code_of([&] { pipeline.set_group(0, {}); }) == Code::kInvalidArgument);
}

TEST(frames_longer_than_a_frame_may_be_are_dropped_coming_in_and_going_out) {
  Pipeline pipeline(fake::image());
  CHECK(run(pipeline, Bytes(kMaxFrameBytes + 1)).empty());
  CHECK_EQ(pipeline.counts().oversized, 1);
  const std::size_t rest = kMaxFrameBytes - sizeof(Report) - 40000;
  CHECK(run(pipeline, fake::frame({.spec = 7, .grow = 40000}, rest + 1)).empty());
  CHECK_EQ(pipeline.counts().oversized, 2);
  const auto out = run(pipeline, fake::frame({.spec = 7, .grow = 40000}, rest));
  REQUIRE_EQ(out.size(), 1);
  CHECK_EQ(out[0].second.size(), kMaxFrameBytes);
  CHECK_EQ(pipeline.counts().dropped, 2);
}

TEST(a_program_without_the_metadata_of_an_egress_port_sends_to_port_0) {
  ProgramImage bare = fake::image();
  bare.standard = {};
  Pipeline pipeline(bare);
  const auto out = run(pipeline, fake::frame({.spec = 7, .group = 9}));
  REQUIRE_EQ(out.size(), 1);
  CHECK_EQ(out[0].first, 0);
}

TEST(an_empty_frame_is_a_frame) {
  Pipeline pipeline(fake::image());
  const auto out = run(pipeline, {});
  REQUIRE_EQ(out.size(), 1);
  CHECK_EQ(out[0].second.size(), sizeof(Report));
}

TEST(variables_are_zero_when_a_frame_comes_in) {
  Pipeline pipeline(fake::image());
  run(pipeline, fake::frame({.spec = 7}));
  const auto out = run(pipeline, fake::frame({.spec = 7}));
  REQUIRE_EQ(out.size(), 1);
  CHECK_EQ(fake::report_of(out[0].second).egress_runs, 1);
}

TEST(registers_and_counters_are_read_and_written_and_their_scratch_row_is_never_seen) {
  Pipeline pipeline(fake::image());
  const auto element = [&](std::uint64_t index) {
    std::uint8_t value[8] = {};
    pipeline.read_register(0, 0, index, value);
    return value[0];
  };
  for (int i = 0; i < 3; ++i) run(pipeline, fake::frame({.spec = 7, .register_index = 2}));
  run(pipeline, fake::frame({.spec = 7, .register_index = 1000}));
  CHECK_EQ(element(2), 3);
  for (const std::uint64_t index : {0, 1, 3}) CHECK_EQ(element(index), 0);
  CHECK(code_of([&] { element(fake::kRegisterRows); }) == Code::kOutOfRange);
  CHECK(code_of([&] { element(~0ULL); }) == Code::kOutOfRange);
  const std::uint8_t nine[] = {9, 0, 0, 0, 0, 0, 0, 0};
  pipeline.write_register(0, 0, 3, nine);
  CHECK_EQ(element(3), 9);
  CHECK(code_of([&] { pipeline.write_register(1, 0, 0, nine); }) == Code::kNotFound);
  CHECK(code_of([&] { pipeline.write_register(0, 1, 0, nine); }) == Code::kNotFound);

  CHECK_EQ(pipeline.read_counter(0, 0).packets, 4);
  CHECK_EQ(pipeline.read_counter(0, 0).bytes, 4 * (sizeof(Order) + 10));
  pipeline.write_counter(0, 0, {5, 6});
  CHECK_EQ(pipeline.read_counter(0, 0).packets, 5);
  CHECK(code_of([&] { static_cast<void>(pipeline.read_counter(0, 1)); }) == Code::kOutOfRange);
  CHECK(code_of([&] { static_cast<void>(pipeline.read_counter(1, 0)); }) == Code::kNotFound);
}
