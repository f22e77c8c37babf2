#include "engine/algorithm.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include "engine/all_reduce_float32.hpp"
#include "engine/all_reduce_int32.hpp"
#include "engine/barrier.hpp"
#include "engine/broadcast.hpp"

namespace pycollective {
namespace {

std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

bool misaligned(const void* pointer, DataType type) {
  return address(pointer) % size_of(type) != 0;
}

// Overlapping without being the same: a result would overwrite input that is still to be read.
bool overlaps_partly(const Collective& collective) {
  const std::uintptr_t input = address(collective.input);
  const std::uintptr_t output = address(collective.output);
  const std::size_t bytes = collective.count * size_of(collective.type);
  return input != output && input < output + bytes && output < input + bytes;
}

std::string reason(const Collective& collective, const JobConfig& config) {
  if (collective.deadline && *collective.deadline <= Duration::zero()) {
    return "the deadline must be positive";
  }
  if (collective.kind == CollectiveKind::kBarrier) {
    return collective.count == 0 ? "" : "a barrier has no elements, count must be 0";
  }
  if (collective.kind != CollectiveKind::kAllReduce &&
      collective.kind != CollectiveKind::kBroadcast) {
    return "there is no such kind of collective";
  }
  const bool all_reduce = collective.kind == CollectiveKind::kAllReduce;
  if (all_reduce && collective.type == DataType::kByte) {
    return "an all-reduce needs int32 or float32 elements, not bytes";
  }
  if (all_reduce && collective.op != wire::ReduceOp::kSum) {
    return "the reduce op must be SUM, the only one the switch's program has";
  }
  if (!all_reduce && collective.root >= config.world_size) {
    return "root " + std::to_string(collective.root) + " is not a rank of a job with " +
           std::to_string(config.world_size) + " ranks";
  }
  if (collective.count == 0) return "";

  // Chunk numbers have 32 bits, and an fp32 block takes at most three chunks.
  const std::size_t limit =
      (std::numeric_limits<std::uint32_t>::max() / 3 - kMaxSlotsPerJob) * std::size_t{config.lanes};
  if (collective.count > limit) {
    return std::to_string(collective.count) + " elements are more than the " +
           std::to_string(limit) + " that one collective can have; split it";
  }
  const bool reads = all_reduce || config.rank == collective.root;
  const bool writes = all_reduce || config.rank != collective.root;
  if (reads && collective.input == nullptr) return "the input is null";
  if (writes && collective.output == nullptr) return "the output is null";
  if ((reads && misaligned(collective.input, collective.type)) ||
      (collective.output != nullptr && misaligned(collective.output, collective.type))) {
    return "an array is not aligned to its element size";
  }
  if (reads && collective.output != nullptr && overlaps_partly(collective)) {
    return "input and output overlap without being the same array";
  }
  return "";
}

}  // namespace

Error check(const Collective& collective, const JobConfig& config) {
  std::string why = reason(collective, config);
  if (why.empty()) return {};
  return {.code = ErrorCode::kUnsupported,
          .job = config.job,
          .rank = config.rank,
          .operation = name(collective.kind),
          .detail = std::move(why)};
}

std::unique_ptr<Algorithm> make_algorithm(const Collective& collective, const JobConfig& config) {
  if (collective.count == 0) return std::make_unique<Barrier>();
  if (collective.kind == CollectiveKind::kBroadcast) {
    return std::make_unique<Broadcast>(collective, config);
  }
  if (collective.type == DataType::kFloat32) {
    return std::make_unique<AllReduceFloat32>(collective, config);
  }
  return std::make_unique<AllReduceInt32>(collective, config);
}

}  // namespace pycollective
