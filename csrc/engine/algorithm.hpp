// What a collective puts into its chunks and takes out of them. An Algorithm knows arrays and
// blocks; it knows nothing of slots, time, loss or repeats, which are the Exchange's.
//
// One instance runs one collective on one rank. The chunks are numbered from 0; each is contributed
// (perhaps several times, with the same bytes each time) and then delivered once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/collective.hpp"
#include "engine/config.hpp"
#include "wire/ina.hpp"

namespace pycollective {

// The header fields of a chunk that are the same on all ranks, and who sends lanes.
struct ChunkFormat {
  wire::ReduceOp reduce_op = wire::ReduceOp::kSum;
  wire::ElementType element_type = wire::ElementType::kNone;
  std::uint16_t lane_count = 0;
  bool contributes_lanes = false;  // this rank's contribution has lanes
  bool result_has_lanes = false;
};

// Chunks first to last - 1.
struct ChunkRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

// Chunks whose contents became known with a delivery. One delivery unlocks at most one chunk that
// follows from it and all the chunks at the end that wait for the last of a kind.
struct Unlocked {
  std::array<ChunkRange, 2> ranges{};
};

class Algorithm {
 public:
  virtual ~Algorithm() = default;

  // How many chunks there are, as far as is known; final when all of those have been delivered.
  [[nodiscard]] virtual std::uint32_t chunk_count() const = 0;
  // Whether the contents of a chunk below chunk_count() are known, so that it can be contributed.
  [[nodiscard]] virtual bool available(std::uint32_t chunk) const = 0;
  [[nodiscard]] virtual ChunkFormat format(std::uint32_t chunk) const = 0;
  // Writes an available chunk that has not been delivered: `exponent` and kSpecial of the header,
  // and all lanes if it contributes any.
  virtual void contribute(std::uint32_t chunk, wire::InaHeader& header,
                          std::span<std::uint8_t> lanes) = 0;
  // Takes the result of a chunk that was contributed and has the right format. Returns false, and
  // changes nothing, for one that cannot be the result of what was contributed.
  virtual bool deliver(std::uint32_t chunk, const wire::InaHeader& header,
                       std::span<const std::uint8_t> lanes, Unlocked& unlocked) = 0;
};

// An error (kUnsupported) that says why this collective cannot be run, or kNone.
[[nodiscard]] Error check(const Collective& collective, const JobConfig& config);

// The algorithm that runs a collective for which `check` found nothing.
[[nodiscard]] std::unique_ptr<Algorithm> make_algorithm(const Collective& collective,
                                                        const JobConfig& config);

}  // namespace pycollective
