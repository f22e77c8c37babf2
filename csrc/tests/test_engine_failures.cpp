// What the engine does when something is wrong with a rank, a call or the switch: the right error
// with the right names, on every rank that can know. Frames that should have no effect at all are
// in test_engine_frames.cpp.
#include <string>
#include <vector>

#include "tests/check.hpp"
#include "tests/cluster.hpp"

namespace {

using namespace pycollective;
using namespace pycollective::test;

using Ints = std::vector<std::int32_t>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Collective with_deadline(Collective collective, Duration deadline) {
  collective.deadline = deadline;
  return collective;
}

}  // namespace

// --- Deadlines
// ------------------------------------------------------------------------------------

TEST(the_deadline_names_the_missing_rank) {
  Cluster cluster({.world = 3});
  connect(cluster);
  const Time start = cluster.now();
  Ints values(1000, 1);
  for (std::uint16_t rank : {0, 1}) {
    cluster.engine(rank).submit(with_deadline(all_reduce(values, values), 700ms));
    cluster.engine(rank).submit(barrier());
  }
  REQUIRE(cluster.run([&] { return cluster.completions(1).size() == 2; }));
  CHECK_EQ((cluster.now() - start).count(), Duration(700ms).count());
  for (std::uint16_t rank : {0, 1}) {
    check::Context context("rank", rank);
    REQUIRE_EQ(cluster.completions(rank).size(), 2);
    for (const Completion& completion : cluster.completions(rank)) {
      const Error& error = completion.error;
      CHECK_EQ(error.code, ErrorCode::kDeadlineExceeded);
      CHECK_EQ(error.job, 7);
      CHECK_EQ(error.rank, rank);
      CHECK_EQ(error.sequence, 1);
      REQUIRE(error.missing_ranks.has_value());
      CHECK_EQ(*error.missing_ranks, 1U << 2);
      REQUIRE(error.place.has_value());
      CHECK_EQ(error.place->chunk, 0);
      CHECK_EQ(error.waited.count(), Duration(700ms).count());
      CHECK(contains(error.text(), "all_reduce #1 on rank " + std::to_string(rank) + " of job 7"));
      CHECK(contains(error.text(), "within 0.700 s"));
      CHECK(contains(error.text(), "waits for rank 2;"));
    }
    CHECK_EQ(cluster.engine(rank).state(), State::kFailed);
  }
}

TEST(a_failed_engine_ends_later_collectives_with_the_same_error_and_is_quiet) {
  Cluster cluster({.world = 2});
  cluster.engine(0).submit(with_deadline(barrier(), 100ms));
  REQUIRE(cluster.run([&] { return cluster.completions(0).size() == 1; }));
  const std::uint64_t sent = cluster.frames_to_switch;
  CHECK_EQ(cluster.engine(0).submit(barrier()), 2);
  cluster.run([] { return false; }, 2s);
  REQUIRE_EQ(cluster.completions(0).size(), 2);
  CHECK_EQ(cluster.completions(0)[1].id, 2);
  CHECK_EQ(cluster.completions(0)[1].error.text(), cluster.completions(0)[0].error.text());
  CHECK_EQ(cluster.engine(0).failure().code, ErrorCode::kDeadlineExceeded);
  CHECK_EQ(cluster.frames_to_switch, sent);
  CHECK(!cluster.engine(0).next_deadline().has_value());
}

TEST(the_deadline_counts_from_when_the_collective_is_first_in_the_queue) {
  Cluster cluster({.world = 2});
  connect(cluster);
  cluster.engine(0).submit(with_deadline(barrier(), 1s));
  cluster.engine(0).submit(with_deadline(barrier(), 1s));
  cluster.run([] { return false; }, 900ms);
  cluster.engine(1).submit(barrier());
  REQUIRE(cluster.run([&] { return cluster.completions(0).size() == 1; }));
  cluster.run([] { return false; }, 900ms);
  cluster.engine(1).submit(barrier());
  REQUIRE(cluster.run_to_completions(2));
  CHECK(!cluster.completions(0)[1].error);
}

TEST(the_deadline_says_when_the_switch_is_silent) {
  Cluster cluster({.world = 2});
  connect(cluster);
  cluster.script = [](Direction, std::uint16_t, const wire::Frame&) { return Fate::kDrop; };
  const Time silent_since = cluster.now();
  for (std::uint16_t rank : {0, 1}) cluster.engine(rank).submit(with_deadline(barrier(), 2s));
  REQUIRE(cluster.run_to_completions(1));
  const Error& error = only_error(cluster, 0);
  CHECK_EQ(error.code, ErrorCode::kDeadlineExceeded);
  CHECK(!error.missing_ranks.has_value());
  REQUIRE(error.silent.has_value());
  CHECK(*error.silent >= 2s && *error.silent <= cluster.now() - silent_since + 1ms);
  CHECK(contains(error.text(), "barrier #1"));
  CHECK(contains(error.text(), "the switch has been silent for 2.0"));
}

TEST(a_rank_that_has_come_meanwhile_is_not_blamed_when_the_switch_falls_silent) {
  Cluster cluster({.world = 2});
  connect(cluster);
  cluster.engine(0).submit(with_deadline(barrier(), 3s));
  cluster.run([] { return false; }, 1s);
  CHECK(cluster.engine(0).statistics().statuses > 0);
  // From here on rank 0 hears nothing; rank 1 comes.
  cluster.script = [](Direction direction, std::uint16_t rank, const wire::Frame&) {
    return direction == Direction::kToHost && rank == 0 ? Fate::kDrop : Fate::kPass;
  };
  cluster.engine(1).submit(barrier());
  REQUIRE(cluster.run_to_completions(1));
  CHECK(!cluster.completions(1)[0].error);
  const Error& error = only_error(cluster, 0);
  CHECK_EQ(error.code, ErrorCode::kDeadlineExceeded);
  CHECK(!error.missing_ranks.has_value());
  CHECK(contains(error.text(), "silent"));
}

TEST(the_deadline_names_several_ranks) {
  Cluster cluster({.world = 32});
  cluster.engine(5).submit(with_deadline(barrier(), 1s));
  REQUIRE(cluster.run([&] { return cluster.completions(5).size() == 1; }));
  REQUIRE(only_error(cluster, 5).missing_ranks.has_value());
  CHECK_EQ(*only_error(cluster, 5).missing_ranks, 0xffffffffU & ~(1U << 5));
  CHECK(contains(only_error(cluster, 5).text(), "ranks 0, 1, 2, 3, 4, 6, 7,"));
}

// --- Disagreement and overflow
// --------------------------------------------------------------------

TEST(ranks_that_disagree_all_get_a_mismatch) {
  Ints ints(600, 1);
  Ints fewer(300, 1);
  std::vector<float> reals(600, 1.0F);
  Bytes bytes(2400, 1);
  const Collective calls[] = {all_reduce(ints, ints),     all_reduce(fewer, fewer),
                              all_reduce(reals, reals),   broadcast(bytes, bytes, 0),
                              broadcast(bytes, bytes, 1), barrier()};
  for (const Collective& one : calls) {
    for (const Collective& other : calls) {
      if (&one == &other) continue;
      check::Context first("first", &one - calls);
      check::Context second("second", &other - calls);
      Cluster cluster({.world = 3, .loss = 0.05, .seed = 5});
      cluster.engine(0).submit(one);
      cluster.engine(1).submit(other);
      cluster.engine(2).submit(one);
      REQUIRE(cluster.run_to_completions(1));
      for (std::uint16_t rank = 0; rank < 3; ++rank) {
        CHECK_EQ(only_error(cluster, rank).code, ErrorCode::kMismatch);
        CHECK_EQ(only_error(cluster, rank).sequence, 1);
        CHECK_EQ(cluster.engine(rank).state(), State::kFailed);
      }
    }
  }
}

TEST(zero_elements_on_one_rank_only_are_a_mismatch) {
  Ints none;
  Ints some(5, 1);
  Cluster cluster({.world = 2});
  cluster.engine(0).submit(all_reduce(none, none));
  cluster.engine(1).submit(all_reduce(some, some));
  REQUIRE(cluster.run_to_completions(1));
  CHECK_EQ(only_error(cluster, 0).code, ErrorCode::kMismatch);
  CHECK_EQ(only_error(cluster, 1).code, ErrorCode::kMismatch);
}

TEST(overflow_is_raised_on_all_ranks_with_its_lowest_chunk_and_the_next_collective_works) {
  for (std::uint32_t seed = 0; seed <= 5; ++seed) {
    check::Context context("seed", seed);
    Cluster cluster({.world = 2, .loss = seed * 0.02, .hold_back = seed * 0.02, .seed = seed});
    std::vector<Ints> values(2, Ints(256 * 20, 1));
    values[0][256 * 7 + 3] = 0x7fffffff;
    values[1][256 * 11] = -0x7fffffff - 1;
    values[0][256 * 11] = -1;
    values[0][0] = 0x7ffffffe;  // reaches the limit exactly
    std::vector<Ints> next(2, Ints(300, 4));
    for (std::uint16_t rank : {0, 1}) {
      cluster.engine(rank).submit(all_reduce(values[rank], values[rank]));
      cluster.engine(rank).submit(all_reduce(next[rank], next[rank]));
    }
    REQUIRE(cluster.run_to_completions(2));
    for (std::uint16_t rank : {0, 1}) {
      const Error& error = cluster.completions(rank)[0].error;
      CHECK_EQ(error.code, ErrorCode::kReductionOverflow);
      REQUIRE(error.place.has_value());
      CHECK_EQ(error.place->chunk, 7);
      CHECK(contains(error.text(), "all_reduce #1 on rank"));
      CHECK_EQ(values[rank][0], 0x7fffffff);
      CHECK(!cluster.completions(rank)[1].error);
      CHECK(next[rank] == Ints(300, 8));
      CHECK_EQ(cluster.engine(rank).state(), State::kIdle);
    }
  }
}

// --- The switch refuses, or is not there
// ----------------------------------------------------------

TEST(another_epoch_while_running_fails_with_both_epochs) {
  Cluster cluster({.world = 2});
  connect(cluster);
  cluster.engine(0).submit(barrier());
  cluster.run([] { return false; }, 20ms);
  cluster.fabric.set_epoch(9);
  REQUIRE(cluster.run([&] { return cluster.completions(0).size() == 1; }));
  const Error& error = only_error(cluster, 0);
  CHECK_EQ(error.code, ErrorCode::kEpochChanged);
  CHECK_EQ(error.expected, 3);
  CHECK_EQ(error.found, 9);
  CHECK_EQ(cluster.engine(0).statistics().nacks, 1);
}

TEST(another_epoch_at_the_start_fails_at_once) {
  Cluster cluster({.world = 1});
  cluster.fabric.set_epoch(9);
  cluster.engine(0).submit(barrier());
  const Time start = cluster.now();
  REQUIRE(cluster.run_to_completions(1));
  CHECK(cluster.now() - start < 1ms);
  CHECK_EQ(only_error(cluster, 0).code, ErrorCode::kEpochChanged);
  CHECK(contains(only_error(cluster, 0).text(), "epoch 9"));
}

TEST(a_slot_outside_of_the_jobs_slice_fails_with_its_number) {
  Cluster cluster({.world = 1, .slots = 8});
  cluster.fabric.set_slots(5);
  Ints values(256 * 8, 1);
  cluster.engine(0).submit(all_reduce(values, values));
  REQUIRE(cluster.run_to_completions(1));
  const Error& error = only_error(cluster, 0);
  CHECK_EQ(error.code, ErrorCode::kBadSlot);
  CHECK_EQ(error.expected, 8);
  CHECK(error.found >= 5 && error.found < 8);
}

TEST(a_switch_that_is_not_there_is_reported_after_the_connect_timeout) {
  Cluster cluster({.world = 1});
  cluster.script = [](Direction, std::uint16_t, const wire::Frame&) { return Fate::kDrop; };
  cluster.engine(0).submit(barrier());
  cluster.engine(0).submit(barrier());
  const Time start = cluster.now();
  REQUIRE(cluster.run_to_completions(2));
  CHECK_EQ((cluster.now() - start).count(), Duration(5s).count());
  for (const Completion& completion : cluster.completions(0)) {
    CHECK_EQ(completion.error.code, ErrorCode::kSwitchUnreachable);
    CHECK_EQ(completion.error.waited.count(), Duration(5s).count());
    CHECK(contains(completion.error.text(), "no answer to probes for 5.000 s"));
  }
  // One full probe every 100 ms, with a short one from the second on.
  CHECK_EQ(cluster.engine(0).statistics().probes_sent, 50 + 49);
}

TEST(a_switch_that_comes_later_is_found) {
  Cluster cluster({.world = 1});
  const Time start = cluster.now();
  cluster.script = [&](Direction, std::uint16_t, const wire::Frame&) {
    return cluster.now() - start < 950ms ? Fate::kDrop : Fate::kPass;
  };
  cluster.engine(0).submit(barrier());
  REQUIRE(cluster.run_to_completions(1));
  CHECK(!only_error(cluster, 0));
  CHECK(cluster.now() - start < 1001ms);
}

TEST(a_path_too_narrow_for_full_frames_is_told_from_a_missing_switch) {
  Cluster cluster({.world = 1});
  cluster.script = [](Direction, std::uint16_t, const wire::Frame& frame) {
    return frame.lanes.empty() ? Fate::kPass : Fate::kDrop;
  };
  cluster.engine(0).submit(barrier());
  REQUIRE(cluster.run_to_completions(1));
  const Error& error = only_error(cluster, 0);
  CHECK_EQ(error.code, ErrorCode::kMtu);
  CHECK_EQ(error.expected, 1094);
  CHECK(contains(error.text(), "full frames of 1094 bytes get no answer"));
}

TEST(a_program_with_another_number_of_lanes_is_named) {
  Options options{.world = 1};
  JobConfig job = Cluster::job(options, 0);
  Engine engine(job);
  job.lanes = 64;
  SlotSwitch fabric(job);
  engine.submit(barrier());
  Completion completion;
  Time now = 0s;
  while (!engine.poll_completion(completion)) {
    Bytes frame(engine.max_frame_bytes());
    while (const std::size_t length = engine.poll_transmit(now, frame)) {
      fabric.process(0, std::span(frame).first(length),
                     [&](std::uint16_t, const Bytes& reply) { engine.on_datagram(now, reply); });
    }
    now = engine.next_deadline().value_or(now);
    engine.on_timer(now);
    REQUIRE(now <= 5s);
  }
  CHECK_EQ(completion.error.code, ErrorCode::kUnsupported);
  CHECK(contains(completion.error.text(), "64 lanes, this rank was configured for 256"));
  CHECK(now < 200ms);
}

// --- Calls
// ----------------------------------------------------------------------------------------

TEST(cancelling_ends_everything_with_the_reason) {
  Cluster cluster({.world = 2});
  connect(cluster);
  cluster.engine(0).submit(barrier());
  cluster.engine(0).submit(barrier());
  cluster.run([] { return false; }, 10ms);
  cluster.engine(0).cancel_all({.detail = "the program is ending"});
  cluster.run([] { return false; }, 10ms);
  REQUIRE_EQ(cluster.completions(0).size(), 2);
  for (const Completion& completion : cluster.completions(0)) {
    CHECK_EQ(completion.error.code, ErrorCode::kCancelled);
    CHECK_EQ(completion.error.text(),
             "barrier #1 on rank 0 of job 7 was cancelled: the program is ending");
  }
  CHECK_EQ(cluster.engine(0).state(), State::kFailed);
  CHECK(!cluster.engine(0).next_deadline().has_value());
}

TEST(configurations_out_of_range_are_refused_with_the_field_named) {
  const auto refused = [](auto change, const std::string& part) {
    JobConfig job = Cluster::job({.world = 2}, 0);
    change(job);
    check::Context context("field", part);
    CHECK_EQ(validate(job).code, ErrorCode::kUnsupported);
    CHECK(contains(validate(job).text(), part));
    CHECK_THROWS(Engine(job), EngineError);
  };
  CHECK(!validate(Cluster::job({.world = 32, .slots = 32768, .lanes = 2048}, 31)));
  refused([](JobConfig& job) { job.world_size = 0; }, "world_size is 0");
  refused([](JobConfig& job) { job.world_size = 33; }, "world_size is 33");
  refused([](JobConfig& job) { job.rank = 2; }, "rank is 2");
  refused([](JobConfig& job) { job.epoch = 0; }, "epoch is 0");
  refused([](JobConfig& job) { job.slots = 0; }, "slots is 0");
  refused([](JobConfig& job) { job.slots = 32769; }, "slots is 32769");
  refused([](JobConfig& job) { job.lanes = 0; }, "lanes is 0");
  refused([](JobConfig& job) { job.lanes = 2049; }, "lanes is 2049");
  refused([](JobConfig& job) { job.timers.rto_min = 0s; }, "timer");
  refused([](JobConfig& job) { job.timers.rto_min = 1s; }, "rto_min");
}

TEST(collectives_that_cannot_be_run_are_refused_and_take_no_number) {
  Engine engine(Cluster::job({.world = 2}, 0));
  Ints values(100);
  Bytes bytes(100);
  const auto refused = [&engine](Collective call, const std::string& part) {
    check::Context context("reason", part);
    try {
      engine.submit(call);
      CHECK(false);
    } catch (const EngineError& error) {
      CHECK_EQ(error.error().code, ErrorCode::kUnsupported);
      CHECK(contains(error.what(), part));
    }
  };
  Collective call = all_reduce(values, values);
  call.op = wire::ReduceOp::kMax;
  refused(call, "SUM");
  call = all_reduce(values, values);
  call.type = DataType::kByte;
  refused(call, "int32 or float32");
  call = all_reduce(values, values);
  call.input = nullptr;
  refused(call, "input is null");
  call = all_reduce(values, values);
  call.output = nullptr;
  refused(call, "output is null");
  call = all_reduce(values, values);
  call.count = 50;
  call.output = values.data() + 10;
  refused(call, "overlap");
  call = all_reduce(values, values);
  call.count = 5;
  call.output = reinterpret_cast<std::uint8_t*>(values.data()) + 201;
  refused(call, "aligned");
  call = all_reduce(values, values);
  call.count = std::size_t{1} << 50;
  refused(call, "split it");
  call = all_reduce(values, values);
  call.deadline = 0s;
  refused(call, "deadline");
  refused(broadcast(bytes, bytes, 2), "root 2");
  call = barrier();
  call.count = 1;
  refused(call, "barrier");
  CHECK_EQ(engine.submit(barrier()), 1);
}

TEST(a_buffer_too_short_for_a_frame_is_an_error) {
  Engine engine(Cluster::job({.world = 1}, 0));
  Bytes frame(engine.max_frame_bytes() - 1);
  CHECK_THROWS(engine.poll_transmit(0s, frame), std::length_error);
}
