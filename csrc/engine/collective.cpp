#include "engine/collective.hpp"

namespace pycollective {

const char* name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kBarrier:
      return "barrier";
  }
  return "unknown collective";
}

std::size_t size_of(DataType type) { return type == DataType::kByte ? 1 : 4; }

std::uint32_t fingerprint(const Collective& collective) {
  // FNV-1a over the fields in a fixed order and width, so that all machines agree.
  std::uint32_t hash = 0x811c9dc5;
  const auto mix = [&hash](std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      hash = (hash ^ static_cast<std::uint8_t>(value >> (8 * i))) * 0x01000193;
    }
  };
  mix(static_cast<std::uint64_t>(collective.kind), 1);
  mix(static_cast<std::uint64_t>(collective.op), 1);
  mix(static_cast<std::uint64_t>(collective.type), 1);
  mix(collective.count, 8);
  mix(collective.root, 2);
  mix(collective.signature, 4);
  return hash;
}

}  // namespace pycollective
