// All-reduce of 32-bit integers: chunk c is block c, summed by the switch as it is. Exact; a sum
// that leaves 32 bits is flagged by the switch and reported by the engine.
#pragma once

#include "engine/algorithm.hpp"
#include "engine/blocks.hpp"

namespace pycollective {

class AllReduceInt32 final : public Algorithm {
 public:
  AllReduceInt32(const Collective& collective, const JobConfig& config);

  [[nodiscard]] std::uint32_t chunk_count() const override { return blocks_.number(); }
  [[nodiscard]] bool available(std::uint32_t) const override { return true; }
  [[nodiscard]] ChunkFormat format(std::uint32_t chunk) const override;
  void contribute(std::uint32_t chunk, wire::InaHeader& header,
                  std::span<std::uint8_t> lanes) override;
  bool deliver(std::uint32_t chunk, const wire::InaHeader& header,
               std::span<const std::uint8_t> lanes, Unlocked& unlocked) override;

 private:
  Blocks blocks_;
  std::size_t lanes_;
  wire::ReduceOp op_;
  const std::int32_t* input_;
  std::int32_t* output_;
};

}  // namespace pycollective
