// The parts of the engine that stand alone: timeout estimate, timers, queues, the slot stream, the
// transition table, fingerprints.
#include <map>
#include <random>
#include <set>

#include "engine/collective.hpp"
#include "engine/ready_queue.hpp"
#include "engine/rtt.hpp"
#include "engine/slot_state.hpp"
#include "engine/slot_stream.hpp"
#include "engine/timer_queue.hpp"
#include "tests/check.hpp"

namespace {

using namespace pycollective;
using namespace std::chrono_literals;

}  // namespace

TEST(timeout_starts_at_the_initial_value_and_follows_rfc_6298) {
  RttEstimator rtt(Timers{});
  CHECK_EQ(rtt.rto().count(), Duration(50ms).count());
  CHECK_EQ(rtt.smoothed().count(), 0);
  rtt.on_sample(40ms);
  // SRTT = 40, RTTVAR = 20.
  CHECK_EQ(rtt.smoothed().count(), Duration(40ms).count());
  CHECK_EQ(rtt.rto().count(), Duration(120ms).count());
  rtt.on_sample(48ms);
  // RTTVAR = 3/4 * 20 + 1/4 * |40 - 48| = 17; SRTT = 7/8 * 40 + 1/8 * 48 = 41.
  CHECK_EQ(rtt.smoothed().count(), Duration(41ms).count());
  CHECK_EQ(rtt.rto().count(), Duration(109ms).count());
  rtt.on_sample(25ms);
  // RTTVAR = 3/4 * 17 + 1/4 * 16 = 16.75; SRTT = 39.
  CHECK_EQ(rtt.smoothed().count(), Duration(39ms).count());
  CHECK_EQ(rtt.rto().count(), Duration(106ms).count());
}

TEST(timeout_stays_between_its_limits) {
  RttEstimator fast(Timers{});
  for (int i = 0; i < 100; ++i) fast.on_sample(20us);
  CHECK_EQ(fast.rto().count(), Timers{}.rto_min.count());
  RttEstimator slow(Timers{});
  slow.on_sample(10s);
  CHECK_EQ(slow.rto().count(), Duration(500ms).count());
}

TEST(a_path_without_variation_still_leaves_room_above_its_round_trip) {
  RttEstimator rtt(Timers{});
  for (int i = 0; i < 1000; ++i) rtt.on_sample(100ms);
  CHECK_EQ(rtt.rto().count(), Duration(101ms).count());
}

TEST(repeats_double_the_timeout_up_to_the_limit) {
  RttEstimator rtt(Timers{});
  const Duration expected[] = {50ms, 100ms, 200ms, 400ms, 500ms, 500ms};
  for (unsigned repeats = 0; repeats < std::size(expected); ++repeats) {
    CHECK_EQ(rtt.backed_off(repeats).count(), expected[repeats].count());
  }
  CHECK_EQ(rtt.backed_off(65535).count(), Duration(500ms).count());
}

TEST(a_repeated_chunk_holds_the_timeout_up_until_the_next_sample) {
  RttEstimator rtt(Timers{});
  rtt.on_sample(1ms);
  CHECK_EQ(rtt.rto().count(), Timers{}.rto_min.count());
  rtt.on_repeated(40ms);
  rtt.on_repeated(30ms);
  CHECK_EQ(rtt.rto().count(), Duration(50ms).count());
  CHECK_EQ(rtt.backed_off(1).count(), Duration(100ms).count());
  rtt.on_repeated(2s);
  CHECK_EQ(rtt.rto().count(), Duration(500ms).count());
  CHECK_EQ(rtt.smoothed().count(), Duration(1ms).count());
  rtt.on_sample(1ms);
  CHECK_EQ(rtt.rto().count(), Timers{}.rto_min.count());
}

TEST(timers_go_off_in_order_whatever_is_started_and_stopped) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    check::Context context("round", round);
    const auto slots = static_cast<std::uint16_t>(1 + random() % 60);
    TimerQueue timers(slots);
    std::map<std::uint16_t, Time> running;
    for (int step = 0; step < 100; ++step) {
      const auto slot = static_cast<std::uint16_t>(random() % slots);
      if (running.contains(slot) || random() % 8 == 0) {
        timers.stop(slot);
        running.erase(slot);
      } else {
        running[slot] = Time(random() % 1000);
        timers.start(slot, running[slot]);
      }
    }
    std::multiset<Time> expected;
    for (const auto& [slot, due] : running) expected.insert(due);
    for (Time due : expected) {
      REQUIRE(!timers.empty());
      CHECK_EQ(timers.first_due().count(), due.count());
      CHECK_EQ(running.at(timers.first()).count(), due.count());
      timers.stop(timers.first());
    }
    CHECK(timers.empty());
  }
}

TEST(ready_slots_come_out_in_order_and_once) {
  ReadyQueue queue(3);
  CHECK(queue.empty());
  CHECK(!queue.pop().has_value());
  for (int round = 0; round < 5; ++round) {
    queue.push(2);
    queue.push(0);
    queue.push(2);
    queue.push(1);
    CHECK_EQ(*queue.pop(), 2);
    queue.push(2);
    CHECK_EQ(*queue.pop(), 0);
    CHECK_EQ(*queue.pop(), 1);
    CHECK_EQ(*queue.pop(), 2);
    CHECK(queue.empty());
  }
}

TEST(the_slot_stream_is_the_specifications) {
  SlotStream stream(5);
  for (std::uint32_t chunk = 0; chunk < 40; ++chunk) {
    const Use use = stream.use(chunk);
    CHECK_EQ(use, chunk);
    CHECK_EQ(stream.place(use).slot, chunk % 5);
    CHECK_EQ(stream.place(use).version, (chunk / 5) % 2);
    CHECK_EQ(stream.place(stream.successor(use)).slot, stream.place(use).slot);
    CHECK(stream.place(stream.successor(use)).version != stream.place(use).version);
  }
  stream.advance(7);
  CHECK_EQ(stream.use(0), 7);
  CHECK_EQ(stream.place(stream.use(0)).slot, 2);
  CHECK_EQ(stream.place(stream.use(0)).version, 1);
}

TEST(every_state_of_a_slot_leads_back_to_idle_by_a_result) {
  using enum SlotState;
  using enum SlotEvent;
  CHECK_EQ(transition(kIdle, kRelease).next, kReady);
  CHECK_EQ(transition(kReady, kTransmit).next, kSent);
  CHECK_EQ(transition(kSent, kTimeout).next, kDue);
  CHECK_EQ(transition(kDue, kTransmit).next, kSent);
  for (SlotState waiting : {kSent, kDue}) {
    CHECK_EQ(transition(waiting, kResult).next, kIdle);
    CHECK_EQ(transition(waiting, kResult).action, SlotAction::kDeliver);
    CHECK_EQ(transition(waiting, kStatus).next, waiting);
  }
  // Frames never move a slot that waits for none, and only a release fills one.
  for (SlotState other : {kIdle, kReady}) {
    CHECK_EQ(transition(other, kResult).next, other);
    CHECK_EQ(transition(other, kStatus).next, other);
  }
  for (SlotState busy : {kReady, kSent, kDue}) {
    CHECK_EQ(transition(busy, kRelease).action, SlotAction::kImpossible);
  }
}

TEST(fingerprints_differ_when_any_part_of_the_call_does) {
  std::set<std::uint32_t> seen;
  std::size_t calls = 0;
  for (auto kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kBroadcast, CollectiveKind::kBarrier}) {
    for (auto op : {wire::ReduceOp::kSum, wire::ReduceOp::kMax}) {
      for (auto type : {DataType::kByte, DataType::kInt32, DataType::kFloat32}) {
        for (std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1} << 33}) {
          for (std::uint16_t root : {0, 1, 31}) {
            seen.insert(
                fingerprint({.kind = kind, .op = op, .type = type, .count = count, .root = root}));
            ++calls;
          }
        }
      }
    }
  }
  CHECK_EQ(seen.size(), calls);
  // Addresses and deadlines are each rank's own.
  int here = 0;
  CHECK_EQ(fingerprint({.count = 1}),
           fingerprint({.input = &here, .output = &here, .count = 1, .deadline = 1s}));
}
