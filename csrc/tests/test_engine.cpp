// Collectives over the model switch: right results on all ranks, for all sizes and world sizes, on
// links that lose, duplicate, hold back and reorder frames.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "numeric/block_float.hpp"
#include "tests/check.hpp"
#include "tests/cluster.hpp"
#include "tests/inputs.hpp"

namespace {

using namespace pycollective;
using namespace pycollective::test;

Options faulty(Options options, std::uint32_t seed) {
  options.loss = 0.05;
  options.duplication = 0.02;
  options.hold_back = 0.05;
  options.seed = seed;
  return options;
}

template <typename T>
using Ranks = std::vector<std::vector<T>>;

Ranks<std::int32_t> integers(std::size_t world, std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  Ranks<std::int32_t> ranks(world, std::vector<std::int32_t>(count));
  // So that 32 of them do not overflow.
  for (auto& values : ranks) {
    for (auto& value : values) value = static_cast<std::int32_t>(random()) >> 6;
  }
  return ranks;
}

Ranks<float> floats(std::size_t world, std::size_t count, inputs::Class kind, std::uint32_t seed) {
  std::mt19937 random(seed);
  Ranks<float> ranks;
  for (std::size_t rank = 0; rank < world; ++rank) {
    ranks.push_back(inputs::block(kind, count, random));
  }
  return ranks;
}

std::vector<std::int32_t> exact_sum(const Ranks<std::int32_t>& ranks) {
  std::vector<std::int32_t> sum(ranks.front().size(), 0);
  for (const auto& values : ranks) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  return sum;
}

void expect_success(Cluster& cluster, std::size_t completions) {
  for (std::uint16_t rank = 0; rank < cluster.world(); ++rank) {
    check::Context context("rank", rank);
    REQUIRE_EQ(cluster.completions(rank).size(), completions);
    for (const Completion& completion : cluster.completions(rank)) {
      CHECK_EQ(completion.error.text(), "no error");
    }
    CHECK_EQ(cluster.engine(rank).state(), State::kIdle);
    CHECK_EQ(cluster.engine(rank).statistics().collectives_completed, completions);
    CHECK_EQ(cluster.engine(rank).statistics().unexpected, 0);
  }
}

// Runs one all-reduce on all ranks and returns the outputs.
template <typename T>
Ranks<T> run_all_reduce(const Options& options, const Ranks<T>& inputs, bool in_place = false) {
  Cluster cluster(options);
  Ranks<T> outputs = inputs;
  for (std::uint16_t rank = 0; rank < options.world; ++rank) {
    if (!in_place) std::fill(outputs[rank].begin(), outputs[rank].end(), T{77});
    cluster.engine(rank).submit(all_reduce(in_place ? outputs[rank] : inputs[rank], outputs[rank]));
  }
  REQUIRE(cluster.run_to_completions(1));
  expect_success(cluster, 1);
  return outputs;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), 4 * a.size()) == 0);
}

void check_bound(const Ranks<float>& inputs, const std::vector<float>& output, std::size_t lanes) {
  const std::size_t count = output.size();
  const int headroom = numeric::headroom_bits(static_cast<unsigned>(inputs.size()));
  for (std::size_t first = 0; first < count; first += lanes) {
    const std::size_t last = std::min(count, first + lanes);
    int exponent = numeric::kZeroBlockExponent;
    for (const auto& values : inputs) {
      exponent = std::max(
          exponent,
          numeric::block_exponent(std::span(values).subspan(first, last - first)).exponent);
    }
    const long double step = std::ldexp(1.0L, exponent - 30 + headroom);
    for (std::size_t i = first; i < last; ++i) {
      long double exact = 0;
      for (const auto& values : inputs) exact += values[i];
      const float size = std::fabs(output[i]);
      const long double half_ulp =
          (static_cast<long double>(std::nextafter(size, std::numeric_limits<float>::infinity())) -
           size) /
          2;
      CHECK(std::fabs(output[i] - exact) <=
            static_cast<long double>(inputs.size()) * step + half_ulp);
    }
  }
}

}  // namespace

TEST(int32_sums_are_exact_for_all_sizes_and_world_sizes) {
  for (std::uint16_t world : {1, 2, 3, 8, 32}) {
    for (std::size_t count : kSizes) {
      if (world > 8 && count > 1000) continue;
      check::Context context("world", world);
      check::Context size("count", count);
      const auto inputs = integers(world, count, world);
      const auto expected = exact_sum(inputs);
      for (const auto& output : run_all_reduce({.world = world}, inputs)) CHECK(output == expected);
    }
  }
}

TEST(int32_sums_are_exact_under_faults_for_every_seed) {
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    for (std::size_t count : kSizes) {
      check::Context context("seed", seed);
      check::Context size("count", count);
      const auto inputs = integers(4, count, seed);
      const auto expected = exact_sum(inputs);
      for (const auto& output : run_all_reduce(faulty({.world = 4}, seed), inputs, seed % 2 == 0)) {
        CHECK(output == expected);
      }
    }
  }
}

TEST(fp32_sums_are_within_the_bound_and_the_same_bits_on_all_ranks) {
  for (std::uint16_t world : {1, 2, 3, 8, 32}) {
    for (std::size_t count : kSizes) {
      if (world > 8 && count > 1000) continue;
      for (inputs::Class kind : {inputs::Class::kNormal, inputs::Class::kMixed}) {
        check::Context context("world", world);
        check::Context size("count", count);
        const auto inputs = floats(world, count, kind, world);
        const auto outputs = run_all_reduce({.world = world}, inputs);
        check_bound(inputs, outputs[0], 256);
        for (const auto& output : outputs) CHECK(same_bits(output, outputs[0]));
      }
    }
  }
}

TEST(fp32_sums_have_the_same_bits_with_faults_as_without_for_every_seed) {
  for (std::size_t count : kSizes) {
    const auto inputs = floats(4, count, inputs::Class::kNormal, 9);
    const auto expected = run_all_reduce({.world = 4}, inputs)[0];
    for (std::uint32_t seed = 1; seed <= 8; ++seed) {
      check::Context context("seed", seed);
      check::Context size("count", count);
      for (const auto& output : run_all_reduce(faulty({.world = 4}, seed), inputs, seed % 2 == 0)) {
        CHECK(same_bits(output, expected));
      }
    }
  }
}

TEST(fp32_sums_have_the_same_bits_for_every_number_of_slots) {
  // S = min(N, W) is below, at and above the number of blocks.
  const auto inputs = floats(3, 16 * 11 + 5, inputs::Class::kAnyBits, 10);
  const auto expected = run_all_reduce({.world = 3, .slots = 1, .lanes = 16}, inputs)[0];
  for (std::uint16_t slots : {2, 5, 11, 12, 13, 24, 25, 64}) {
    check::Context context("slots", slots);
    for (std::uint32_t seed = 1; seed <= 3; ++seed) {
      const Options options = faulty({.world = 3, .slots = slots, .lanes = 16}, seed);
      for (const auto& output : run_all_reduce(options, inputs, seed == 2)) {
        CHECK(same_bits(output, expected));
      }
    }
  }
}

TEST(nan_and_infinities_give_what_an_ieee_sum_gives_and_disturb_no_lane) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr std::size_t kCount = 5000;
  Ranks<float> finite = floats(3, kCount, inputs::Class::kNormal, 11);
  Ranks<float> special = finite;
  special[0][3] = kNan;
  special[1][300] = kInfinity;
  special[2][301] = -kInfinity;
  special[0][302] = kInfinity;
  special[2][302] = -kInfinity;
  for (auto& values : special) values[4999] = -kInfinity;
  for (std::size_t i = 2048; i < 2304; ++i) special[i % 3][i] = i % 2 == 0 ? kNan : kInfinity;
  // What a special value replaces counts as nothing in its block.
  for (std::size_t rank = 0; rank < 3; ++rank) {
    for (std::size_t i = 0; i < kCount; ++i) {
      if (!std::isfinite(special[rank][i])) finite[rank][i] = 0;
    }
  }
  const auto expected = run_all_reduce({.world = 3}, finite)[0];
  for (std::uint32_t seed = 0; seed <= 6; ++seed) {
    check::Context context("seed", seed);
    const Options options = seed == 0 ? Options{.world = 3} : faulty({.world = 3}, seed);
    const auto outputs = run_all_reduce(options, special, seed % 2 == 1);
    for (const auto& output : outputs) {
      CHECK(same_bits(output, outputs[0]));
      for (std::size_t i = 0; i < kCount; ++i) {
        const float ieee = special[0][i] + special[1][i] + special[2][i];
        if (std::isnan(ieee)) {
          CHECK(std::isnan(output[i]));
        } else if (std::isinf(ieee)) {
          CHECK_EQ(output[i], ieee);
        } else {
          CHECK_EQ(std::bit_cast<std::uint32_t>(output[i]),
                   std::bit_cast<std::uint32_t>(expected[i]));
        }
      }
    }
  }
}

TEST(blocks_of_nothing_but_nan_are_nan_in_place_and_apart) {
  const Ranks<float> inputs(2, std::vector<float>(600, std::numeric_limits<float>::quiet_NaN()));
  for (bool in_place : {false, true}) {
    for (const auto& output : run_all_reduce({.world = 2, .slots = 2}, inputs, in_place)) {
      for (float value : output) CHECK(std::isnan(value));
    }
  }
}

TEST(denormals_and_extremes_are_summed_within_the_bound) {
  for (inputs::Class kind :
       {inputs::Class::kDenormal, inputs::Class::kTiny, inputs::Class::kZero}) {
    check::Context context("class", kind);
    const auto inputs = floats(3, 700, kind, 12);
    const auto outputs = run_all_reduce({.world = 3}, inputs);
    check_bound(inputs, outputs[0], 256);
    for (const auto& output : outputs) CHECK(same_bits(output, outputs[0]));
  }
}

TEST(broadcast_gives_every_rank_the_roots_bytes) {
  for (std::uint16_t world : {1, 2, 5}) {
    for (std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1023}, std::size_t{1024},
                              std::size_t{1025}, std::size_t{70003}}) {
      for (std::uint32_t seed = 1; seed <= 3; ++seed) {
        check::Context context("world", world);
        check::Context size("count", count);
        check::Context seeds("seed", seed);
        const auto root = static_cast<std::uint16_t>(world - 1);
        Cluster cluster(faulty({.world = world}, seed));
        std::mt19937 random(seed);
        Bytes data(count);
        for (auto& byte : data) byte = static_cast<std::uint8_t>(random());
        std::vector<Bytes> outputs(world, Bytes(count, 0x77));
        // In place on the root for some seeds; nothing is read on the others.
        if (seed == 2) outputs[root] = data;
        for (std::uint16_t rank = 0; rank < world; ++rank) {
          const Bytes none;
          Collective call = broadcast(rank == root ? data : none, outputs[rank], root);
          if (rank == root && seed == 2) call.input = outputs[rank].data();
          if (rank == root && seed == 3) call.output = nullptr;
          cluster.engine(rank).submit(call);
        }
        REQUIRE(cluster.run_to_completions(1));
        expect_success(cluster, 1);
        for (std::uint16_t rank = 0; rank < world; ++rank) {
          if (rank == root && seed == 3) continue;
          CHECK(outputs[rank] == data);
        }
      }
    }
  }
}

TEST(a_barrier_ends_only_when_the_last_rank_has_come) {
  Cluster cluster({.world = 3});
  cluster.engine(0).submit(barrier());
  cluster.engine(1).submit(barrier());
  CHECK(!cluster.run_to_completions(1, 2s));
  for (std::uint16_t rank = 0; rank < 3; ++rank) CHECK(cluster.completions(rank).empty());
  cluster.engine(2).submit(barrier());
  CHECK(cluster.run_to_completions(1));
  expect_success(cluster, 1);
}

TEST(queued_collectives_of_all_kinds_run_in_order_under_faults) {
  constexpr std::uint16_t kWorld = 3;
  for (std::uint32_t seed = 1; seed <= 6; ++seed) {
    check::Context context("seed", seed);
    // Three slots, so that every collective begins at another place of the stream.
    Cluster cluster(faulty({.world = kWorld, .slots = 3, .lanes = 32}, seed));
    constexpr std::size_t kRounds = 6;
    Ranks<std::int32_t> ints = integers(kWorld, 333, seed);
    Ranks<float> reals = floats(kWorld, 777, inputs::Class::kNormal, seed);
    reals[1][5] = std::numeric_limits<float>::infinity();
    std::vector<Bytes> bytes(kWorld, Bytes(901, 0));
    for (std::size_t i = 0; i < 901; ++i) bytes[0][i] = static_cast<std::uint8_t>(3 * i);
    // Summed over and over, these must stay in range.
    for (auto& values : ints) {
      for (auto& value : values) value >>= 10;
    }
    auto expected = ints;
    for (std::size_t round = 0; round < kRounds; ++round) {
      // Each round reduces the last one's output in place: an order mistake would show.
      const auto sum = exact_sum(expected);
      for (auto& values : expected) {
        values = sum;
      }
    }
    for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
      for (std::size_t round = 0; round < kRounds; ++round) {
        Engine& engine = cluster.engine(rank);
        CHECK_EQ(engine.submit(all_reduce(ints[rank], ints[rank])), 4 * round + 1);
        engine.submit(all_reduce(reals[rank], reals[rank]));
        engine.submit(barrier());
        engine.submit(broadcast(bytes[rank], bytes[rank], 0));
      }
    }
    REQUIRE(cluster.run_to_completions(4 * kRounds));
    expect_success(cluster, 4 * kRounds);
    for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
      CHECK(ints[rank] == expected[rank]);
      CHECK(same_bits(reals[rank], reals[0]));
      CHECK(bytes[rank] == bytes[0]);
      for (std::size_t i = 0; i < 4 * kRounds; ++i) {
        CHECK_EQ(cluster.completions(rank)[i].id, i + 1);
      }
    }
    CHECK(std::isinf(reals[0][5]));
  }
}

TEST(sequence_numbers_wrap_without_a_trace) {
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    check::Context context("seed", seed);
    Cluster cluster(
        faulty({.world = 2, .slots = 2, .lanes = 16, .first_sequence = 0xfffffffdU}, seed));
    const auto inputs = integers(2, 100, seed);
    auto outputs = inputs;
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
      for (int i = 0; i < 8; ++i) {
        cluster.engine(rank).submit(all_reduce(inputs[rank], outputs[rank]));
      }
    }
    REQUIRE(cluster.run_to_completions(8));
    expect_success(cluster, 8);
    for (const auto& output : outputs) CHECK(output == exact_sum(inputs));
  }
}

TEST(the_largest_frames_and_the_most_slots_work) {
  const auto inputs = integers(2, 5000, 3);
  for (const Options& options : {Options{.world = 2, .slots = 8, .lanes = 2048},
                                 Options{.world = 2, .slots = 32768, .lanes = 4},
                                 Options{.world = 2, .slots = 1, .lanes = 1}}) {
    check::Context context("lanes", options.lanes);
    for (const auto& output : run_all_reduce(options, inputs)) CHECK(output == exact_sum(inputs));
  }
}

TEST(without_faults_nothing_is_sent_twice_and_every_frame_is_accounted_for) {
  const auto inputs = integers(4, 70003, 4);
  auto outputs = inputs;
  Cluster cluster({.world = 4});
  for (std::uint16_t rank = 0; rank < 4; ++rank) {
    cluster.engine(rank).submit(all_reduce(inputs[rank], outputs[rank]));
  }
  REQUIRE(cluster.run_to_completions(1));
  const std::uint64_t chunks = (70003 + 255) / 256;
  for (std::uint16_t rank = 0; rank < 4; ++rank) {
    const Statistics& statistics = cluster.engine(rank).statistics();
    CHECK_EQ(statistics.frames_sent, chunks + 1);  // and one probe
    CHECK_EQ(statistics.probes_sent, 1);
    CHECK_EQ(statistics.retransmissions, 0);
    CHECK_EQ(statistics.results, chunks);
    CHECK_EQ(statistics.frames_received, chunks + 1);
    CHECK_EQ(statistics.bytes_sent, (chunks + 1) * wire::frame_bytes(256));
    CHECK_EQ(statistics.bytes_received, chunks * wire::frame_bytes(256) + wire::frame_bytes(0));
    CHECK(statistics.smoothed_rtt > 40us && statistics.smoothed_rtt < 1ms);
    CHECK(statistics.rto == Timers{}.rto_min);
  }
  CHECK_EQ(cluster.fabric.counters.duplicates, 0);
  CHECK_EQ(cluster.fabric.counters.stale, 0);
  CHECK_EQ(cluster.fabric.counters.completions, chunks);
}

TEST(a_lost_chunk_does_not_hold_up_the_others) {
  // The first contribution of chunk 1 is lost. All others of its window and of the windows after
  // it, in other slots, go on; only slot 1 waits for the timer.
  Cluster cluster({.world = 2, .slots = 4, .lanes = 16});
  bool lost = false;
  cluster.script = [&lost](Direction direction, std::uint16_t rank, const wire::Frame& frame) {
    if (direction == Direction::kToSwitch && rank == 0 && frame.header.chunk == 1 && !lost &&
        frame.header.opcode == wire::Opcode::kContribute) {
      lost = true;
      return Fate::kDrop;
    }
    return Fate::kPass;
  };
  const auto inputs = integers(2, 16 * 40, 5);
  auto outputs = inputs;
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    cluster.engine(rank).submit(all_reduce(inputs[rank], outputs[rank]));
  }
  // Well before the first retransmission timeout, three of four slots are through.
  cluster.run([] { return false; }, 10ms);
  CHECK_EQ(cluster.engine(0).statistics().results, 30);
  CHECK_EQ(cluster.engine(0).statistics().retransmissions, 0);
  REQUIRE(cluster.run_to_completions(1));
  CHECK(outputs[0] == exact_sum(inputs));
  CHECK_EQ(cluster.engine(0).statistics().retransmissions, 1);
}

TEST(a_slow_rank_draws_few_repeats) {
  // One rank comes three seconds late; the others repeat with doubling gaps up to rto_max.
  Cluster cluster({.world = 2, .slots = 4});
  std::vector<std::int32_t> first(10, 1);
  std::vector<std::int32_t> second(10, 2);
  cluster.engine(0).submit(all_reduce(first, first));
  cluster.run([] { return false; }, 3s);
  cluster.engine(1).submit(all_reduce(second, second));
  REQUIRE(cluster.run_to_completions(1));
  CHECK_EQ(first[9], 3);
  const Statistics& statistics = cluster.engine(0).statistics();
  // 50, 100, 200, 400, then every 500 ms.
  CHECK(statistics.retransmissions >= 7 && statistics.retransmissions <= 10);
  CHECK_EQ(statistics.statuses, statistics.retransmissions);
}
