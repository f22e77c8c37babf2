#include "sim/faults.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "wire/frame.hpp"

namespace pycollective::sim {

bool FrameMatch::matches(std::uint16_t at_host, Direction at,
                         std::span<const std::uint8_t> frame) const {
  if ((host && *host != at_host) || (direction && *direction != at)) return false;
  if (frame.size() < wire::kLanesOffset) return false;
  wire::UdpLayout udp;
  std::memcpy(&udp, frame.data() + wire::kUdpOffset, sizeof(udp));
  if (udp.destination_port.get() != wire::kInaUdpPort) return false;
  wire::InaLayout layout;
  std::memcpy(&layout, frame.data() + wire::kInaOffset, sizeof(layout));
  const wire::InaHeader header = wire::decode(layout);
  return (!opcode || *opcode == static_cast<std::uint8_t>(header.opcode)) &&
         (!sequence || *sequence == header.sequence) && (!chunk || *chunk == header.chunk) &&
         (!slot || *slot == header.slot) &&
         (!slot_version || *slot_version == header.slot_version) &&
         (!retransmit || *retransmit == ((header.flags & wire::flag::kRetransmit) != 0));
}

std::size_t Faults::add(const FaultRule& rule) {
  rules_.push_back({.rule = rule, .waiting = {}, .statistics = {}});
  return rules_.size() - 1;
}

bool Faults::admit(Time now, std::uint16_t host, Direction direction, const Frame& frame) {
  for (Armed& armed : rules_) {
    const FaultRule& rule = armed.rule;
    if (armed.over() || (rule.until_time && *rule.until_time <= now)) continue;
    if (!rule.match.matches(host, direction, frame)) continue;
    const std::uint32_t index = armed.matched++;
    if (index < rule.skip || (rule.count > 0 && index - rule.skip >= rule.count)) continue;
    ++armed.statistics.hit;
    if (rule.action != FaultAction::kDrop) armed.waiting.push_back({host, direction, frame});
    if (rule.action != FaultAction::kDuplicate) return false;
  }
  return true;
}

void Faults::Armed::finish(Time now, std::vector<Released>& released) {
  statistics.moment = now;
  statistics.released += waiting.size();
  std::move(waiting.begin(), waiting.end(), std::back_inserter(released));
  waiting.clear();
}

void Faults::delivered(Time now, std::uint16_t host, Direction direction,
                       std::span<const std::uint8_t> frame, std::vector<Released>& released) {
  for (Armed& armed : rules_) {
    const FaultRule& rule = armed.rule;
    if (armed.over() || !rule.until_delivered) continue;
    if (!rule.until_delivered->matches(host, direction, frame)) continue;
    if (++armed.triggers >= rule.until_occurrence) armed.finish(now, released);
  }
}

void Faults::elapsed(Time now, std::vector<Released>& released) {
  for (Armed& armed : rules_) {
    if (!armed.over() && armed.rule.until_time && *armed.rule.until_time <= now) {
      armed.finish(now, released);
    }
  }
}

std::optional<Time> Faults::next_deadline() const {
  std::optional<Time> next;
  for (const Armed& armed : rules_) {
    if (armed.over() || !armed.rule.until_time) continue;
    if (!next || *armed.rule.until_time < *next) next = armed.rule.until_time;
  }
  return next;
}

}  // namespace pycollective::sim
