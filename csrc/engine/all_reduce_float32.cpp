#include "engine/all_reduce_float32.hpp"

#include <algorithm>

#include "numeric/block_float.hpp"
#include "numeric/lanes.hpp"

namespace pycollective {

AllReduceFloat32::AllReduceFloat32(const Collective& collective, const JobConfig& config)
    : blocks_(collective.count, config.lanes),
      lanes_(config.lanes),
      lead_(std::min<std::uint32_t>(blocks_.number(), config.slots)),
      headroom_(numeric::headroom_bits(config.world_size)),
      input_(static_cast<const float*>(collective.input)),
      output_(static_cast<float*>(collective.output)),
      exponents_(blocks_.number()),
      exponents_missing_(blocks_.number()) {}

std::uint32_t AllReduceFloat32::chunk_count() const {
  return first_special_chunk() + static_cast<std::uint32_t>(special_order_.size());
}

bool AllReduceFloat32::available(std::uint32_t chunk) const {
  if (chunk >= first_special_chunk()) return exponents_missing_ == 0;
  return chunk < lead_ || exponents_[chunk - lead_].agreed != wire::kNoExponent;
}

ChunkFormat AllReduceFloat32::format(std::uint32_t chunk) const {
  if (chunk < lead_) return {};
  const bool special = chunk >= first_special_chunk();
  const std::uint32_t block = special ? special_block(chunk) : chunk - lead_;
  return {
      .reduce_op = wire::ReduceOp::kSum,
      .element_type = special ? wire::ElementType::kSpecialCode : wire::ElementType::kBlockFloat32,
      .lane_count = static_cast<std::uint16_t>(blocks_.length(block)),
      .contributes_lanes = true,
      .result_has_lanes = true};
}

void AllReduceFloat32::contribute(std::uint32_t chunk, wire::InaHeader& header,
                                  std::span<std::uint8_t> lanes) {
  if (has_exponent(chunk)) {
    const auto block = numeric::block_exponent(blocks_.of(input_, chunk));
    header.exponent = static_cast<std::int8_t>(block.exponent);
    if (block.special) header.flags |= wire::flag::kSpecial;
    exponents_[chunk].own = header.exponent;
  }
  if (has_values(chunk)) {
    const auto values = blocks_.of(input_, chunk - lead_);
    numeric::quantize(values, exponents_[chunk - lead_].agreed, headroom_, lanes.data());
    numeric::clear_lanes(lanes.data(), values.size(), lanes_);
  } else if (chunk >= first_special_chunk()) {
    const auto& kinds = special_.at(special_block(chunk)).kinds;
    numeric::store_codes(kinds, lanes.data());
    numeric::clear_lanes(lanes.data(), kinds.size(), lanes_);
  }
}

bool AllReduceFloat32::deliver(std::uint32_t chunk, const wire::InaHeader& header,
                               std::span<const std::uint8_t> lanes, Unlocked& unlocked) {
  // A maximum below what was contributed would make the values overflow their lanes.
  if (has_exponent(chunk) ? header.exponent < exponents_[chunk].own
                          : header.exponent != wire::kNoExponent) {
    return false;
  }
  if (has_values(chunk)) take_values(chunk - lead_, lanes);
  if (chunk >= first_special_chunk()) take_codes(special_block(chunk), lanes);
  if (has_exponent(chunk)) take_exponent(chunk, header, unlocked);
  return true;
}

void AllReduceFloat32::take_exponent(std::uint32_t block, const wire::InaHeader& header,
                                     Unlocked& unlocked) {
  exponents_[block].agreed = header.exponent;
  if ((header.flags & wire::flag::kSpecial) != 0) {
    // Now, because the values' result may overwrite the input.
    SpecialBlock& special = special_[block];
    special.kinds.resize(blocks_.length(block));
    numeric::classify(blocks_.of(input_, block), special.kinds);
    special_order_.push_back(block);
  }
  unlocked.ranges[0] = {lead_ + block, lead_ + block + 1};
  if (--exponents_missing_ == 0) {
    // Results come in any order; the chunks have one order on all ranks.
    std::sort(special_order_.begin(), special_order_.end());
    unlocked.ranges[1] = {first_special_chunk(), chunk_count()};
  }
}

void AllReduceFloat32::take_values(std::uint32_t block, std::span<const std::uint8_t> lanes) {
  numeric::dequantize(lanes.data(), exponents_[block].agreed, headroom_,
                      blocks_.of(output_, block));
  if (special_.empty()) return;
  const auto special = special_.find(block);
  if (special == special_.end()) return;
  special->second.summed = true;
  finish_special(block, special->second);
}

void AllReduceFloat32::take_codes(std::uint32_t block, std::span<const std::uint8_t> lanes) {
  SpecialBlock& special = special_.at(block);
  numeric::load_codes(lanes.data(), special.kinds);
  special.agreed = true;
  finish_special(block, special);
}

// The values and the codes of a block may come in either order; the codes have the last word.
void AllReduceFloat32::finish_special(std::uint32_t block, SpecialBlock& special) {
  if (!special.agreed || !special.summed) return;
  numeric::apply(special.kinds, blocks_.of(output_, block));
  special.kinds = {};
}

}  // namespace pycollective
