// Stated misfortunes: "drop the second RESULT for chunk 3 to rank 1", "keep a copy of rank 0's
// chunk 0 until rank 1's chunk 16 has reached the switch". Where a link's probabilities find what
// nobody thought of, a rule shows that one exact sequence of events is harmless.
//
// Rules see frames before the link does. They parse the INA header only to compare it; they decide
// nothing about collectives. Main types: FrameMatch, FaultRule, Faults.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/link.hpp"

namespace pycollective::sim {

enum class Direction : std::uint8_t { kToSwitch, kToHost };

// Which frames are meant; an absent field matches anything, a frame that is not INA never matches.
struct FrameMatch {
  std::optional<std::uint16_t> host;  // at the link's end
  std::optional<Direction> direction;
  std::optional<std::uint8_t> opcode;
  std::optional<std::uint32_t> sequence;
  std::optional<std::uint32_t> chunk;
  std::optional<std::uint16_t> slot;
  std::optional<std::uint8_t> slot_version;
  std::optional<bool> retransmit;

  bool matches(std::uint16_t at_host, Direction at, std::span<const std::uint8_t> frame) const;
};

enum class FaultAction : std::uint8_t {
  kDrop,       // the frame never arrives
  kHold,       // the frame waits for the rule's moment
  kDuplicate,  // the frame passes, and a copy waits for the rule's moment
};

// The moment is whichever comes first: `until_time`, or the arrival (at its receiver) of frame
// number `until_occurrence` that matches `until_delivered`. A rule without a moment lasts for ever,
// which is only useful for kDrop. What waits is delivered directly after the frame that brings the
// moment has been processed, in the order of the rules.
struct FaultRule {
  FaultAction action = FaultAction::kDrop;
  FrameMatch match{};
  std::uint32_t skip = 0;   // matching frames that pass unharmed first
  std::uint32_t count = 1;  // matching frames that are hit after those; 0 for all of them
  std::optional<FrameMatch> until_delivered{};
  std::uint32_t until_occurrence = 1;
  std::optional<Time> until_time{};
};

struct FaultStatistics {
  std::uint64_t hit = 0;       // frames the rule acted on
  std::uint64_t released = 0;  // frames and copies that it let go later
  std::optional<Time> moment;  // when that was
};

// A frame that a rule lets go, and the link it was on.
struct Released {
  std::uint16_t host;
  Direction direction;
  Frame frame;
};

class Faults {
 public:
  // Returns the rule's index.
  std::size_t add(const FaultRule& rule);

  // A frame is about to go on the wire; false when it must not (it is dropped or kept).
  bool admit(Time now, std::uint16_t host, Direction direction, const Frame& frame);

  // A frame has been processed by its receiver; appends what that lets go.
  void delivered(Time now, std::uint16_t host, Direction direction,
                 std::span<const std::uint8_t> frame, std::vector<Released>& released);

  // The clock has reached `now`; appends what that lets go.
  void elapsed(Time now, std::vector<Released>& released);

  // The next moment that a clock brings.
  std::optional<Time> next_deadline() const;

  const FaultStatistics& statistics(std::size_t rule) const { return rules_.at(rule).statistics; }
  std::size_t size() const { return rules_.size(); }

 private:
  struct Armed {
    FaultRule rule;
    std::uint32_t matched = 0;
    std::uint32_t triggers = 0;
    std::vector<Released> waiting;
    FaultStatistics statistics;

    bool over() const { return statistics.moment.has_value(); }
    void finish(Time now, std::vector<Released>& released);
  };

  std::vector<Armed> rules_;
};

}  // namespace pycollective::sim
