// A collective as the user asks for it, and what is derived from that alone. How each is cut into
// chunks is in all_reduce_int32.hpp, all_reduce_float32.hpp, broadcast.hpp and barrier.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/error.hpp"
#include "engine/time.hpp"
#include "wire/ina.hpp"

namespace pycollective {

enum class CollectiveKind : std::uint8_t {
  kAllReduce = 1,
  kBroadcast = 2,
  kBarrier = 3,
};

enum class DataType : std::uint8_t {
  kByte = 0,
  kInt32 = 1,
  kFloat32 = 2,
};

[[nodiscard]] const char* name(CollectiveKind kind);
[[nodiscard]] std::size_t size_of(DataType type);

// One call. `input` and `output` are arrays of `count` elements of `type`, aligned for it; they are
// the same array or do not overlap, and stay valid until the completion is out. The input is read
// while the collective runs: it must not change.
//   all-reduce  kInt32 or kFloat32 with kSum
//   broadcast   any type; `input` is read on the root only, `output` is written on all others, and
//               on the root where it differs from `input`. Bytes arrive as they are in memory.
//   barrier     no arrays; count is 0
struct Collective {
  CollectiveKind kind = CollectiveKind::kBarrier;
  wire::ReduceOp op = wire::ReduceOp::kSum;
  DataType type = DataType::kByte;
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  std::uint16_t root = 0;
  // Whatever else of the call must be the same on all ranks, as a hash: the caller's dtype and
  // shape.
  std::uint32_t signature = 0;
  // From the moment the collective is first in the queue; absent: the job's default.
  std::optional<Duration> deadline{};
};

// The hash of a call that all its chunks carry, so that the switch notices ranks that disagree.
[[nodiscard]] std::uint32_t fingerprint(const Collective& collective);

}  // namespace pycollective
