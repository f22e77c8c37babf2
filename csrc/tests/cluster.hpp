// Ranks and a switch in virtual time, for tests: real engines, the SlotSwitch, and links between
// them that lose, duplicate, delay and reorder frames as a seed says, or as a script says.
//
// There is no clock and no thread. `run` jumps from one event to the next, so seconds of protocol
// time take milliseconds, and the same options give the same run.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "tests/check.hpp"
#include "tests/slot_switch.hpp"

namespace pycollective::test {

using namespace std::chrono_literals;

enum class Direction { kToSwitch, kToHost };
enum class Fate { kPass, kDrop, kHold };

struct Options {
  std::uint16_t world = 2;
  std::uint16_t slots = 8;
  std::uint16_t lanes = 256;
  double loss = 0;
  double duplication = 0;
  double hold_back = 0;  // share of frames that take up to `longest_hold` longer
  Duration longest_hold = 3ms;
  std::uint32_t seed = 1;
  std::uint32_t first_sequence = 1;
  Timers timers{};
};

class Cluster {
 public:
  struct Held {
    Direction direction;
    std::uint16_t rank;
    Bytes bytes;
  };
  using Script = std::function<Fate(Direction, std::uint16_t rank, const wire::Frame&)>;

  explicit Cluster(const Options& options)
      : fabric(job(options, 0)), options_(options), random_(options.seed) {
    for (std::uint16_t rank = 0; rank < options.world; ++rank) {
      engines_.push_back(std::make_unique<Engine>(job(options, rank)));
      completions_.emplace_back();
    }
  }

  static JobConfig job(const Options& options, std::uint16_t rank) {
    JobConfig config;
    config.job = 7;
    config.rank = rank;
    config.world_size = options.world;
    config.epoch = 3;
    config.slots = options.slots;
    config.lanes = options.lanes;
    config.mac = {0x02, 0x50, 0x43, 0x00, 0x07, static_cast<std::uint8_t>(rank)};
    config.switch_mac = {0x02, 0x50, 0x43, 0xff, 0xff, 0xfe};
    config.ipv4 = 0x0a000701U + rank;
    config.switch_ipv4 = 0x0afffffe;
    config.timers = options.timers;
    config.first_sequence = options.first_sequence;
    return config;
  }

  [[nodiscard]] Engine& engine(std::uint16_t rank) { return *engines_[rank]; }
  [[nodiscard]] std::uint16_t world() const { return options_.world; }
  [[nodiscard]] const std::vector<Completion>& completions(std::uint16_t rank) const {
    return completions_[rank];
  }
  [[nodiscard]] Time now() const { return now_; }

  // Runs until `done`, or until nothing is left to happen, or until `limit` of virtual time has
  // passed; says whether `done` was reached.
  bool run(const std::function<bool()>& done, Duration limit = 60s) {
    const Time end = now_ + limit;
    for (;;) {
      transmit();
      if (done()) return true;
      const auto next = next_event();
      if (!next || *next > end) return false;
      now_ = std::max(now_, *next);
      deliver_due();
      for (auto& engine : engines_) {
        if (engine->next_deadline() && *engine->next_deadline() <= now_) engine->on_timer(now_);
      }
    }
  }

  // Runs until every rank has this many completions in all.
  bool run_to_completions(std::size_t count, Duration limit = 60s) {
    return run(
        [&] {
          for (const auto& completions : completions_) {
            if (completions.size() < count) return false;
          }
          return true;
        },
        limit);
  }

  // Delivers a held frame now.
  void deliver(const Held& held) { arrive(held.direction, held.rank, held.bytes); }

  SlotSwitch fabric;
  // Decides about each frame before chance does; frames it holds go to `held`.
  Script script;
  std::vector<Held> held;
  // Of every frame in either direction, before jitter.
  Duration delay = 20us;
  std::uint64_t frames_to_switch = 0;

 private:
  struct Event {
    Time at;
    std::uint64_t order;  // of equal times, first come first served
    Direction direction;
    std::uint16_t rank;
    Bytes bytes;
    bool operator>(const Event& other) const {
      return std::tie(at, order) > std::tie(other.at, other.order);
    }
  };

  void transmit() {
    for (std::uint16_t rank = 0; rank < options_.world; ++rank) {
      Engine& engine = *engines_[rank];
      for (;;) {
        Bytes frame(engine.max_frame_bytes(), 0xee);
        frame.resize(engine.poll_transmit(now_, frame));
        if (frame.empty()) break;
        ++frames_to_switch;
        send(Direction::kToSwitch, rank, std::move(frame));
      }
      Completion completion;
      while (engine.poll_completion(completion)) completions_[rank].push_back(completion);
    }
  }

  [[nodiscard]] std::optional<Time> next_event() const {
    std::optional<Time> next;
    if (!events_.empty()) next = events_.top().at;
    for (const auto& engine : engines_) {
      const auto deadline = engine->next_deadline();
      if (deadline && (!next || *deadline < *next)) next = deadline;
    }
    return next;
  }

  void deliver_due() {
    while (!events_.empty() && events_.top().at <= now_) {
      const Event event = events_.top();
      events_.pop();
      arrive(event.direction, event.rank, event.bytes);
    }
  }

  void arrive(Direction direction, std::uint16_t rank, const Bytes& bytes) {
    if (direction == Direction::kToHost) {
      engines_[rank]->on_datagram(now_, bytes);
      return;
    }
    fabric.process(rank, bytes, [this](std::uint16_t to, Bytes frame) {
      send(Direction::kToHost, to, std::move(frame));
    });
  }

  bool chance(double share) { return std::uniform_real_distribution<>()(random_) < share; }

  void send(Direction direction, std::uint16_t rank, Bytes bytes) {
    if (script) {
      wire::Frame frame;
      REQUIRE_EQ(wire::parse_frame(bytes, frame), wire::FrameError::kNone);
      switch (script(direction, rank, frame)) {
        case Fate::kPass:
          break;
        case Fate::kDrop:
          return;
        case Fate::kHold:
          held.push_back({direction, rank, std::move(bytes)});
          return;
      }
    }
    const int copies = chance(options_.duplication) ? 2 : 1;
    for (int copy = 0; copy < copies; ++copy) {
      if (chance(options_.loss)) continue;
      // Jitter of the size of the delay, so that frames overtake each other without faults too.
      Duration taken = delay + Duration(random_() % 20000);
      if (chance(options_.hold_back)) {
        taken += Duration(static_cast<Duration::rep>(random_()) % options_.longest_hold.count());
      }
      events_.push({now_ + taken, order_++, direction, rank, bytes});
    }
  }

  Options options_;
  std::mt19937 random_;
  Time now_ = 1s;  // not zero: nothing may depend on the origin
  std::uint64_t order_ = 0;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<std::vector<Completion>> completions_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

// The error of the one collective that the rank has submitted.
inline const Error& only_error(const Cluster& cluster, std::uint16_t rank) {
  REQUIRE_EQ(cluster.completions(rank).size(), 1);
  return cluster.completions(rank)[0].error;
}

// Lets the engines find the switch.
inline void connect(Cluster& cluster) {
  REQUIRE(cluster.run([&] {
    for (std::uint16_t rank = 0; rank < cluster.world(); ++rank) {
      if (cluster.engine(rank).state() != State::kIdle) return false;
    }
    return true;
  }));
}

// Calls, as short as tests want them.
template <typename T>
Collective all_reduce(const std::vector<T>& input, std::vector<T>& output) {
  return {.kind = CollectiveKind::kAllReduce,
          .op = wire::ReduceOp::kSum,
          .type = std::is_same_v<T, float> ? DataType::kFloat32 : DataType::kInt32,
          .input = input.data(),
          .output = output.data(),
          .count = input.size()};
}

inline Collective broadcast(const Bytes& input, Bytes& output, std::uint16_t root) {
  return {.kind = CollectiveKind::kBroadcast,
          .type = DataType::kByte,
          .input = input.data(),
          .output = output.data(),
          .count = output.size(),
          .root = root};
}

inline Collective barrier() { return {}; }

// Sizes around the edges of a block of 256, and one that wraps around every slot many times.
inline constexpr std::size_t kSizes[] = {0, 1, 255, 256, 257, 70003};

}  // namespace pycollective::test
