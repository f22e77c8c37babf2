#include "engine/broadcast.hpp"

#include "numeric/lanes.hpp"

namespace pycollective {

Broadcast::Broadcast(const Collective& collective, const JobConfig& config)
    : blocks_(collective.count * size_of(collective.type), wire::kLaneBytes * config.lanes),
      lanes_(config.lanes),
      is_root_(config.rank == collective.root),
      input_(static_cast<const std::uint8_t*>(collective.input)),
      output_(static_cast<std::uint8_t*>(collective.output)) {
  // What the root would write is what it has.
  if (is_root_ && output_ == input_) output_ = nullptr;
}

ChunkFormat Broadcast::format(std::uint32_t chunk) const {
  return {.reduce_op = wire::ReduceOp::kCopy,
          .element_type = wire::ElementType::kRawWord,
          .lane_count = static_cast<std::uint16_t>((blocks_.length(chunk) + wire::kLaneBytes - 1) /
                                                   wire::kLaneBytes),
          .contributes_lanes = is_root_,
          .result_has_lanes = true};
}

void Broadcast::contribute(std::uint32_t chunk, wire::InaHeader&, std::span<std::uint8_t> lanes) {
  if (!is_root_) return;
  const std::size_t written = numeric::store_bytes(blocks_.of(input_, chunk), lanes.data());
  numeric::clear_lanes(lanes.data(), written, lanes_);
}

bool Broadcast::deliver(std::uint32_t chunk, const wire::InaHeader& header,
                        std::span<const std::uint8_t> lanes, Unlocked&) {
  if (header.exponent != wire::kNoExponent) return false;
  if (output_ != nullptr) numeric::load_bytes(lanes.data(), blocks_.of(output_, chunk));
  return true;
}

}  // namespace pycollective
