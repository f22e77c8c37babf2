// Barrier: one chunk without lanes. Its result says that every rank has come here. Collectives of
// zero elements are done the same way, so that ranks which disagree on the size still notice.
#pragma once

#include "engine/algorithm.hpp"

namespace pycollective {

class Barrier final : public Algorithm {
 public:
  [[nodiscard]] std::uint32_t chunk_count() const override { return 1; }
  [[nodiscard]] bool available(std::uint32_t) const override { return true; }
  [[nodiscard]] ChunkFormat format(std::uint32_t) const override { return {}; }
  void contribute(std::uint32_t, wire::InaHeader&, std::span<std::uint8_t>) override {}
  bool deliver(std::uint32_t, const wire::InaHeader& header, std::span<const std::uint8_t>,
               Unlocked&) override {
    return header.exponent == wire::kNoExponent;
  }
};

}  // namespace pycollective
