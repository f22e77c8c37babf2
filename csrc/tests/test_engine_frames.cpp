// Frames that must have no effect: late, repeated, damaged, forged or for somebody else. They are
// dropped, counted by reason, and the collective they hit ends as it would have.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/check.hpp"
#include "tests/cluster.hpp"

namespace {

using namespace pycollective;
using namespace pycollective::test;

using Ints = std::vector<std::int32_t>;

// Makes a frame from the switch to rank 0 of a cluster with these options.
Bytes forge(const Options& options, wire::InaHeader header, std::size_t lanes) {
  const JobConfig job = Cluster::job(options, 0);
  const wire::FrameWriter writer({.source_mac = job.switch_mac,
                                  .destination_mac = job.mac,
                                  .source_ipv4 = job.switch_ipv4,
                                  .destination_ipv4 = job.ipv4},
                                 lanes);
  Bytes frame(wire::frame_bytes(lanes));
  if (lanes > 0) header.flags |= wire::flag::kData;
  frame.resize(writer.finish(header, frame));
  return frame;
}

// One engine of a job of one rank with a chunk of int32 in flight, and the result it waits for.
struct Lonely {
  Options options{.world = 1, .slots = 2, .lanes = 4};
  Cluster cluster{options};
  Ints values{10, 20, 30};
  wire::InaHeader result;

  Lonely() {
    connect(cluster);
    cluster.engine(0).submit(all_reduce(values, values));
    cluster.script = [this](Direction direction, std::uint16_t, const wire::Frame& frame) {
      if (direction == Direction::kToSwitch) return Fate::kPass;
      result = frame.header;
      return Fate::kHold;
    };
    REQUIRE(cluster.run([this] { return !cluster.held.empty(); }));
  }
  Engine& engine() { return cluster.engine(0); }
  const Statistics& statistics() { return engine().statistics(); }
  void receive(const wire::InaHeader& header, std::size_t lanes = 4) {
    engine().on_datagram(cluster.now(), forge(options, header, lanes));
  }
};

}  // namespace

// --- Late frames
// ----------------------------------------------------------------------------------

TEST(a_duplicate_held_back_over_two_reuses_of_its_slot_changes_nothing) {
  // One slot, so chunk c has version c mod 2, and chunks 0, 2 and 4 share slot 0, version 0.
  // Rank 0's contribution to chunk 0 is sent twice; the copy arrives when chunk 4 is half done:
  // rank 1's part is in and rank 0's is not, so rank 0's bit is clear. A pool without tags would
  // add it.
  Cluster cluster({.world = 2, .slots = 1, .lanes = 4});
  std::vector<Ints> inputs = {Ints(4 * 6), Ints(4 * 6)};
  for (int i = 0; i < 4 * 6; ++i) {
    inputs[0][static_cast<std::size_t>(i)] = 100 + i;
    inputs[1][static_cast<std::size_t>(i)] = 5000 + 7 * i;
  }
  std::vector<Ints> outputs(2, Ints(4 * 6));
  bool copied = false;
  bool copy_arrived = false;
  cluster.script = [&](Direction direction, std::uint16_t rank, const wire::Frame& frame) {
    if (direction == Direction::kToSwitch && rank == 0) {
      if (frame.header.sequence == 1 && frame.header.chunk == 0 && !copied) {
        // The copy; the original follows as the repeat after the timeout.
        copied = true;
        return Fate::kHold;
      }
      // Rank 0's own part of chunk 4 waits until the copy is through.
      if (frame.header.chunk == 4 && !copy_arrived) return Fate::kDrop;
    }
    return Fate::kPass;
  };
  for (std::uint16_t rank : {0, 1}) {
    cluster.engine(rank).submit(all_reduce(inputs[rank], outputs[rank]));
  }
  REQUIRE(cluster.run([&] {
    return cluster.engine(1).statistics().results == 4 && cluster.fabric.bitmap(0, 0) == 0b10;
  }));
  REQUIRE_EQ(cluster.held.size(), 1);
  CHECK_EQ(cluster.fabric.counters.stale, 0);
  cluster.deliver(cluster.held[0]);
  copy_arrived = true;
  CHECK_EQ(cluster.fabric.counters.stale, 1);
  CHECK_EQ(cluster.fabric.bitmap(0, 0), 0b10);
  REQUIRE(cluster.run_to_completions(1));
  for (std::uint16_t rank : {0, 1}) {
    CHECK(!only_error(cluster, rank));
    for (std::size_t i = 0; i < 4 * 6; ++i) CHECK_EQ(outputs[rank][i], inputs[0][i] + inputs[1][i]);
  }
}

TEST(a_result_held_back_over_two_reuses_of_its_slot_changes_nothing) {
  // Rank 0's first copy of result 0 is held; a repeat gets another. The first comes back while rank
  // 0 waits for chunk 2, in the same slot and version.
  Cluster cluster({.world = 1, .slots = 1, .lanes = 4});
  Ints input(4 * 4);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::int32_t>(i) + 1;
  Ints output(input.size());
  bool copied = false;
  std::size_t second_results = 0;
  cluster.script = [&](Direction direction, std::uint16_t, const wire::Frame& frame) {
    if (direction == Direction::kToHost && frame.header.opcode == wire::Opcode::kResult) {
      if (frame.header.chunk == 0 && !copied) {
        copied = true;
        return Fate::kHold;
      }
      if (frame.header.chunk == 2 && second_results++ == 0) return Fate::kDrop;
    }
    return Fate::kPass;
  };
  cluster.engine(0).submit(all_reduce(input, output));
  REQUIRE(cluster.run([&] { return second_results == 1; }));
  const Statistics& statistics = cluster.engine(0).statistics();
  CHECK_EQ(statistics.stale, 0);
  cluster.deliver(cluster.held.at(0));
  CHECK_EQ(statistics.stale, 1);
  REQUIRE(cluster.run_to_completions(1));
  CHECK(output == input);
}

TEST(a_result_that_comes_twice_is_counted_and_taken_once) {
  Lonely lonely;
  const Cluster::Held result = lonely.cluster.held.at(0);
  lonely.cluster.deliver(result);
  CHECK_EQ(lonely.statistics().results, 1);
  lonely.values = {1, 2, 3};
  lonely.cluster.deliver(result);
  CHECK_EQ(lonely.statistics().duplicates, 1);
  CHECK_EQ(lonely.statistics().results, 1);
  CHECK(lonely.values == (Ints{1, 2, 3}));
}

TEST(a_path_that_becomes_slower_than_the_timeout_is_learnt) {
  Cluster cluster({.world = 2});
  Ints values(256 * 100, 1);
  Ints sums(values.size());
  const auto run = [&](std::size_t completions) {
    for (std::uint16_t rank : {0, 1}) cluster.engine(rank).submit(all_reduce(values, sums));
    REQUIRE(cluster.run_to_completions(completions));
  };
  run(1);
  CHECK_EQ(cluster.engine(0).statistics().retransmissions, 0);
  cluster.delay = 50ms;  // 100 ms there and back, the timeout is 20 ms
  run(2);
  const std::uint64_t learning = cluster.engine(0).statistics().retransmissions;
  // The first window repeats at 20 and 60 ms, and nothing after it.
  CHECK_EQ(learning, 2 * 8);
  run(3);
  CHECK_EQ(cluster.engine(0).statistics().retransmissions, learning);
}

// --- Damaged, forged and foreign frames
// -----------------------------------------------------------

TEST(frames_for_others_are_dropped_and_counted_by_reason) {
  const auto counted = [](auto change, std::uint64_t Statistics::* counter, std::size_t lanes = 4) {
    Lonely lonely;
    wire::InaHeader header = lonely.result;
    change(header);
    CHECK_EQ(lonely.statistics().*counter, 0);
    lonely.receive(header, lanes);
    CHECK_EQ(lonely.statistics().*counter, 1);
    CHECK_EQ(lonely.statistics().results, 0);
    CHECK_EQ(lonely.engine().state(), State::kRunning);
    CHECK(lonely.values == (Ints{10, 20, 30}));
    // The true result is still taken.
    lonely.cluster.deliver(lonely.cluster.held.at(0));
    CHECK_EQ(lonely.statistics().results, 1);
  };
  using Header = wire::InaHeader;
  counted([](Header& h) { h.opcode = wire::Opcode::kContribute; }, &Statistics::foreign_opcode);
  counted([](Header& h) { h.opcode = wire::Opcode::kProbe; }, &Statistics::foreign_opcode);
  counted([](Header& h) { h.job = 8; }, &Statistics::foreign_job);
  counted([](Header& h) { h.rank = 1; }, &Statistics::foreign_rank);
  counted([](Header& h) { h.epoch = 2; }, &Statistics::foreign_epoch);
  counted([](Header& h) { h.sequence = 0; }, &Statistics::stale);
  counted([](Header& h) { h.sequence = 2; }, &Statistics::unexpected);
  counted([](Header& h) { h.chunk = 1; }, &Statistics::unexpected);
  counted([](Header& h) { h.slot = 1; }, &Statistics::unexpected);
  counted([](Header& h) { h.slot = 2; }, &Statistics::unexpected);
  counted([](Header& h) { h.slot = 0x7fff; }, &Statistics::unexpected);
  counted([](Header& h) { h.slot_version = 1; }, &Statistics::unexpected);
  counted([](Header& h) { h.reduce_op = wire::ReduceOp::kMax; }, &Statistics::unexpected);
  counted([](Header& h) { h.element_type = wire::ElementType::kRawWord; }, &Statistics::unexpected);
  counted([](Header& h) { h.lane_count = 4; }, &Statistics::unexpected);
  counted([](Header& h) { h.exponent = 3; }, &Statistics::unexpected);
  counted([](Header& h) { ++h.fingerprint; }, &Statistics::unexpected);
  // The right header around other numbers of lanes than the job's.
  counted([](Header& h) { h.flags = 0; }, &Statistics::unexpected, 0);
  counted([](Header&) {}, &Statistics::unexpected, 3);
  counted([](Header&) {}, &Statistics::unexpected, 5);
  // Only results have lanes.
  counted([](Header& h) { h.opcode = wire::Opcode::kStatus; }, &Statistics::unexpected);
  const auto control = [&](wire::Opcode opcode, auto change, std::uint64_t Statistics::* counter) {
    counted(
        [&](Header& h) {
          h.opcode = opcode;
          h.flags = 0;
          change(h);
        },
        counter, 0);
  };
  control(wire::Opcode::kStatus, [](Header& h) { h.sequence = 0; }, &Statistics::stale);
  control(wire::Opcode::kStatus, [](Header& h) { h.chunk = 9; }, &Statistics::unexpected);
  control(wire::Opcode::kProbeReply, [](Header&) {}, &Statistics::stale);
  control(wire::Opcode::kNack, [](Header& h) { h.chunk = 9; }, &Statistics::stale);
  // A NACK that contradicts itself: the epoch is the job's, or the reason has no name.
  control(wire::Opcode::kNack, [](Header& h) { h.fingerprint = 1; }, &Statistics::unexpected);
  control(wire::Opcode::kNack, [](Header& h) { h.fingerprint = 3; }, &Statistics::unexpected);
}

TEST(an_exponent_below_the_contributed_one_is_not_taken) {
  // Values scaled by it would leave their lanes.
  Options options{.world = 1, .slots = 1, .lanes = 4};
  Cluster cluster(options);
  connect(cluster);
  std::vector<float> values = {8.0F};
  cluster.script = [](Direction direction, std::uint16_t, const wire::Frame&) {
    return direction == Direction::kToHost ? Fate::kHold : Fate::kPass;
  };
  cluster.engine(0).submit(all_reduce(values, values));
  REQUIRE(cluster.run([&] { return !cluster.held.empty(); }));
  wire::Frame frame;
  REQUIRE_EQ(wire::parse_frame(cluster.held[0].bytes, frame), wire::FrameError::kNone);
  CHECK_EQ(frame.header.exponent, 3);
  for (int exponent : {2, -127, -128}) {
    frame.header.exponent = static_cast<std::int8_t>(exponent);
    cluster.engine(0).on_datagram(cluster.now(), forge(options, frame.header, 0));
  }
  CHECK_EQ(cluster.engine(0).statistics().unexpected, 3);
  cluster.script = nullptr;
  cluster.deliver(cluster.held[0]);
  REQUIRE(cluster.run_to_completions(1));
  CHECK_EQ(values[0], 8.0F);
}

TEST(garbage_of_every_length_is_dropped_and_counted) {
  std::mt19937 random(1);
  Lonely lonely;
  const std::uint64_t before = lonely.statistics().frames_received;
  std::uint64_t count = 0;
  for (std::size_t length = 0; length <= 1600; ++length, ++count) {
    Bytes bytes(length);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    lonely.engine().on_datagram(lonely.cluster.now(), bytes);
  }
  const Statistics& statistics = lonely.statistics();
  CHECK_EQ(statistics.frames_received, before + count);
  std::uint64_t malformed = 0;
  for (std::uint64_t counter : statistics.malformed) malformed += counter;
  CHECK_EQ(malformed, count);
  CHECK_EQ(lonely.engine().state(), State::kRunning);
}

TEST(damaged_frames_are_dropped_and_the_result_is_exact) {
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    check::Context context("seed", seed);
    std::mt19937 random(seed);
    Cluster cluster({.world = 2, .lanes = 16});
    cluster.script = [&](Direction direction, std::uint16_t rank, const wire::Frame& frame) {
      if (random() % 10 != 0) return Fate::kPass;
      // Sends a damaged copy in place of the frame: flipped bits, or the end cut off.
      Bytes bytes = forge({.world = 2, .lanes = 16}, frame.header, frame.lanes.size() / 4);
      std::copy(frame.lanes.begin(), frame.lanes.end(), bytes.begin() + wire::kLanesOffset);
      if (random() % 4 == 0) {
        bytes.resize(random() % bytes.size());
      } else {
        for (std::uint32_t flips = 1 + random() % 3; flips > 0; --flips) {
          bytes[12 + random() % (bytes.size() - 12)] ^=
              static_cast<std::uint8_t>(1U << (random() % 8));
        }
      }
      cluster.deliver({direction, rank, bytes});
      return Fate::kDrop;
    };
    std::vector<Ints> values = {Ints(3000), Ints(3000)};
    Ints expected(3000);
    for (std::size_t i = 0; i < 3000; ++i) {
      values[0][i] = static_cast<std::int32_t>(random()) / 2;
      values[1][i] = static_cast<std::int32_t>(random()) / 2;
      expected[i] = values[0][i] + values[1][i];
    }
    for (std::uint16_t rank : {0, 1}) {
      cluster.engine(rank).submit(all_reduce(values[rank], values[rank]));
    }
    REQUIRE(cluster.run_to_completions(1));
    for (std::uint16_t rank : {0, 1}) {
      CHECK(!only_error(cluster, rank));
      CHECK(values[rank] == expected);
    }
    CHECK(cluster.fabric.counters.malformed > 0);
  }
}

TEST(frames_with_any_header_and_right_checksums_never_break_the_engine) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    check::Context context("round", round);
    Options options{.world = 1, .slots = 3, .lanes = 4};
    Cluster cluster(options);
    Ints ints(40, 1);
    std::vector<float> reals(40, 1.0F);
    Collective call = all_reduce(ints, ints);
    if (round % 2 == 0) call = all_reduce(reals, reals);
    call.deadline = 1s;
    cluster.engine(0).submit(call);
    cluster.engine(0).submit(barrier());
    cluster.script = [&](Direction direction, std::uint16_t rank, const wire::Frame& frame) {
      if (direction == Direction::kToSwitch || random() % 3 != 0) return Fate::kPass;
      // One or two bytes of the header become anything; the checksums are made right again.
      wire::InaLayout layout = wire::encode(frame.header);
      for (std::uint32_t changes = 1 + random() % 2; changes > 0; --changes) {
        reinterpret_cast<std::uint8_t*>(&layout)[random() % sizeof(layout)] =
            static_cast<std::uint8_t>(random());
      }
      wire::InaHeader header = wire::decode(layout);
      cluster.deliver({direction, rank, forge(options, header, random() % 3 == 0 ? 0 : 4)});
      return random() % 2 == 0 ? Fate::kDrop : Fate::kPass;
    };
    // Ends one way or another, by the deadline at the latest.
    CHECK(cluster.run_to_completions(2));
  }
}
