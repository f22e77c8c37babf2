#include "engine/all_reduce_int32.hpp"

#include "numeric/lanes.hpp"

namespace pycollective {

AllReduceInt32::AllReduceInt32(const Collective& collective, const JobConfig& config)
    : blocks_(collective.count, config.lanes),
      lanes_(config.lanes),
      op_(collective.op),
      input_(static_cast<const std::int32_t*>(collective.input)),
      output_(static_cast<std::int32_t*>(collective.output)) {}

ChunkFormat AllReduceInt32::format(std::uint32_t chunk) const {
  return {.reduce_op = op_,
          .element_type = wire::ElementType::kInt32,
          .lane_count = static_cast<std::uint16_t>(blocks_.length(chunk)),
          .contributes_lanes = true,
          .result_has_lanes = true};
}

void AllReduceInt32::contribute(std::uint32_t chunk, wire::InaHeader&,
                                std::span<std::uint8_t> lanes) {
  const auto block = blocks_.of(input_, chunk);
  numeric::store_int32(block, lanes.data());
  numeric::clear_lanes(lanes.data(), block.size(), lanes_);
}

bool AllReduceInt32::deliver(std::uint32_t chunk, const wire::InaHeader& header,
                             std::span<const std::uint8_t> lanes, Unlocked&) {
  if (header.exponent != wire::kNoExponent) return false;
  numeric::load_int32(lanes.data(), blocks_.of(output_, chunk));
  return true;
}

}  // namespace pycollective
