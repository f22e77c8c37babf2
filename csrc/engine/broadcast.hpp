// Broadcast: chunk c is block c of the root's bytes. The root contributes it with lanes, the others
// contribute a header; the switch keeps the lanes (COPY) and gives them to everyone when all have
// contributed, so nobody can be overrun.
#pragma once

#include "engine/algorithm.hpp"
#include "engine/blocks.hpp"

namespace pycollective {

class Broadcast final : public Algorithm {
 public:
  Broadcast(const Collective& collective, const JobConfig& config);

  [[nodiscard]] std::uint32_t chunk_count() const override { return blocks_.number(); }
  [[nodiscard]] bool available(std::uint32_t) const override { return true; }
  [[nodiscard]] ChunkFormat format(std::uint32_t chunk) const override;
  void contribute(std::uint32_t chunk, wire::InaHeader& header,
                  std::span<std::uint8_t> lanes) override;
  bool deliver(std::uint32_t chunk, const wire::InaHeader& header,
               std::span<const std::uint8_t> lanes, Unlocked& unlocked) override;

 private:
  Blocks blocks_;  // of bytes
  std::size_t lanes_;
  bool is_root_;
  const std::uint8_t* input_;
  std::uint8_t* output_;  // null where nothing is to be written
};

}  // namespace pycollective
