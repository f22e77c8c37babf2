// The stream of chunks of a job and its places in the slot pool (docs/protocol.md, section 4).
//
// Use number u counts all chunks of all collectives over the life of the job. It alone says which
// slot and version a chunk has, so ranks agree without a word as long as they call the same
// collectives in the same order.
#pragma once

#include <cstdint>

namespace pycollective {

// Number of a chunk in the life of the job, from 0. Does not wrap: 2^64 chunks are 10^5 years.
using Use = std::uint64_t;

struct Place {
  std::uint16_t slot = 0;
  std::uint8_t version = 0;
};

class SlotStream {
 public:
  // `slots` is W.
  explicit SlotStream(std::uint16_t slots) : slots_(slots) {}

  [[nodiscard]] Place place(Use use) const {
    return {static_cast<std::uint16_t>(use % slots_),
            static_cast<std::uint8_t>((use / slots_) % 2)};
  }

  // The use of a chunk of the current collective.
  [[nodiscard]] Use use(std::uint32_t chunk) const { return base_ + chunk; }
  // The use that has the same slot and comes next.
  [[nodiscard]] Use successor(Use use) const { return use + slots_; }
  [[nodiscard]] std::uint16_t slots() const { return slots_; }

  // The current collective is over and had this many chunks.
  void advance(std::uint32_t chunks) { base_ += chunks; }

 private:
  std::uint16_t slots_;
  Use base_ = 0;  // use of chunk 0 of the current collective
};

}  // namespace pycollective
