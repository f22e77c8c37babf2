// All-reduce of fp32 as block floating point (docs/protocol.md, section 4).
//
// With N blocks and S = min(N, W), chunk c below N carries the exponent of block c, and chunk c
// from S to S + N - 1 carries the values of block c - S: an exponent is agreed S chunks before its
// values are sent, and both ride in the same frame in between. Chunks from S + N on carry the
// special-value codes of the blocks in which some rank has a NaN or an infinity; how many there are
// is known when all exponents are.
//
// The input may be the output. A block's values are read for the last time when its result has
// come; what the codes need is kept aside when the block turns out to be special, before that.
#pragma once

#include <unordered_map>
#include <vector>

#include "engine/algorithm.hpp"
#include "engine/blocks.hpp"
#include "numeric/special.hpp"

namespace pycollective {

class AllReduceFloat32 final : public Algorithm {
 public:
  AllReduceFloat32(const Collective& collective, const JobConfig& config);

  [[nodiscard]] std::uint32_t chunk_count() const override;
  [[nodiscard]] bool available(std::uint32_t chunk) const override;
  [[nodiscard]] ChunkFormat format(std::uint32_t chunk) const override;
  void contribute(std::uint32_t chunk, wire::InaHeader& header,
                  std::span<std::uint8_t> lanes) override;
  bool deliver(std::uint32_t chunk, const wire::InaHeader& header,
               std::span<const std::uint8_t> lanes, Unlocked& unlocked) override;

 private:
  // A block's exponent; kNoExponent is "not known yet".
  struct Exponents {
    std::int8_t own = wire::kNoExponent;
    std::int8_t agreed = wire::kNoExponent;
  };
  // A block in which some rank has special values.
  struct SpecialBlock {
    std::vector<numeric::Special> kinds;  // this rank's, then the agreed ones, then nothing
    bool agreed = false;
    bool summed = false;  // the output has the block's values
  };

  [[nodiscard]] bool has_exponent(std::uint32_t chunk) const { return chunk < blocks_.number(); }
  [[nodiscard]] bool has_values(std::uint32_t chunk) const {
    return chunk >= lead_ && chunk - lead_ < blocks_.number();
  }
  [[nodiscard]] std::uint32_t first_special_chunk() const { return lead_ + blocks_.number(); }
  [[nodiscard]] std::uint32_t special_block(std::uint32_t chunk) const {
    return special_order_[chunk - first_special_chunk()];
  }
  void take_exponent(std::uint32_t block, const wire::InaHeader& header, Unlocked& unlocked);
  void take_values(std::uint32_t block, std::span<const std::uint8_t> lanes);
  void take_codes(std::uint32_t block, std::span<const std::uint8_t> lanes);
  void finish_special(std::uint32_t block, SpecialBlock& special);

  Blocks blocks_;
  std::size_t lanes_;
  std::uint32_t lead_;  // S
  int headroom_;        // h
  const float* input_;
  float* output_;
  std::vector<Exponents> exponents_;  // by block
  std::uint32_t exponents_missing_;
  std::unordered_map<std::uint32_t, SpecialBlock> special_;
  std::vector<std::uint32_t> special_order_;  // ascending once no exponent is missing
};

}  // namespace pycollective
