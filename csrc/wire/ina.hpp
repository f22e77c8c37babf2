// The INA header (docs/protocol.md, section 1): its constants, its layout and its description.
//
// InaHeader is the header as host values; InaLayout is the same as bytes; `decode` and `encode` go
// between them. kInaFields describes the header to machines: a test compares it with the P4 and the
// Scapy definitions. Nothing here looks at anything outside these 28 bytes; frame.hpp does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "wire/endian.hpp"

namespace pycollective::wire {

inline constexpr std::uint8_t kInaVersion = 1;
inline constexpr std::uint16_t kInaUdpPort = 0x4e41;
// Bytes of one lane.
inline constexpr std::size_t kLaneBytes = 4;
// `exponent` of a chunk that speaks of no block.
inline constexpr std::int8_t kNoExponent = -128;
// The field `slot` has 15 bits.
inline constexpr std::uint32_t kMaxSlots = 1U << 15;

enum class Opcode : std::uint8_t {
  kContribute = 1,
  kResult = 2,
  kStatus = 3,
  kProbe = 4,
  kProbeReply = 5,
  kNack = 6,
};

enum class ReduceOp : std::uint8_t {
  kSum = 0,
  kMin = 1,
  kMax = 2,
  kBitAnd = 3,
  kBitOr = 4,
  kBitXor = 5,
  kCopy = 6,
};

enum class ElementType : std::uint8_t {
  kNone = 0,
  kInt32 = 1,
  kBlockFloat32 = 2,
  kRawWord = 3,
  kSpecialCode = 4,
};

// Bits of the field `flags`.
namespace flag {
inline constexpr std::uint8_t kRetransmit = 0x01;
inline constexpr std::uint8_t kOverflow = 0x02;
inline constexpr std::uint8_t kSpecial = 0x04;
inline constexpr std::uint8_t kEcnEcho = 0x08;
inline constexpr std::uint8_t kData = 0x10;
inline constexpr std::uint8_t kMismatch = 0x20;
}  // namespace flag

// `fingerprint` of a NACK.
enum class NackReason : std::uint32_t {
  kEpoch = 1,
  kSlot = 2,
};

// The header as bytes.
struct InaLayout {
  std::uint8_t version;
  std::uint8_t opcode;
  std::uint8_t reduce_op;
  std::uint8_t element_type;
  Big16 job;
  Big16 rank;
  Big16 epoch;
  Big16 slot_and_version;
  Big32 sequence;
  Big32 chunk;
  Big16 lane_count;
  std::uint8_t exponent;
  std::uint8_t flags;
  Big32 fingerprint;
};

inline constexpr std::size_t kInaHeaderBytes = 28;
static_assert(sizeof(InaLayout) == kInaHeaderBytes && alignof(InaLayout) == 1);
static_assert(offsetof(InaLayout, job) == 4 && offsetof(InaLayout, rank) == 6);
static_assert(offsetof(InaLayout, epoch) == 8 && offsetof(InaLayout, slot_and_version) == 10);
static_assert(offsetof(InaLayout, sequence) == 12 && offsetof(InaLayout, chunk) == 16);
static_assert(offsetof(InaLayout, lane_count) == 20 && offsetof(InaLayout, exponent) == 22);
static_assert(offsetof(InaLayout, flags) == 23 && offsetof(InaLayout, fingerprint) == 24);

// The header as values. Enumerations may hold numbers without a name when they come off the wire;
// parse_frame refuses unknown opcodes only, the others are for the receiver to judge.
struct InaHeader {
  std::uint8_t version = kInaVersion;
  Opcode opcode = Opcode::kContribute;
  ReduceOp reduce_op = ReduceOp::kSum;
  ElementType element_type = ElementType::kNone;
  std::uint16_t job = 0;
  std::uint16_t rank = 0;
  std::uint16_t epoch = 0;
  std::uint16_t slot = 0;         // below kMaxSlots
  std::uint8_t slot_version = 0;  // 0 or 1
  std::uint32_t sequence = 0;
  std::uint32_t chunk = 0;
  std::uint16_t lane_count = 0;
  std::int8_t exponent = kNoExponent;
  std::uint8_t flags = 0;
  std::uint32_t fingerprint = 0;

  friend bool operator==(const InaHeader&, const InaHeader&) = default;
};

[[nodiscard]] constexpr InaHeader decode(const InaLayout& bytes) {
  const std::uint16_t slot = bytes.slot_and_version.get();
  return {
      .version = bytes.version,
      .opcode = static_cast<Opcode>(bytes.opcode),
      .reduce_op = static_cast<ReduceOp>(bytes.reduce_op),
      .element_type = static_cast<ElementType>(bytes.element_type),
      .job = bytes.job.get(),
      .rank = bytes.rank.get(),
      .epoch = bytes.epoch.get(),
      .slot = static_cast<std::uint16_t>(slot >> 1),
      .slot_version = static_cast<std::uint8_t>(slot & 1),
      .sequence = bytes.sequence.get(),
      .chunk = bytes.chunk.get(),
      .lane_count = bytes.lane_count.get(),
      .exponent = static_cast<std::int8_t>(bytes.exponent),
      .flags = bytes.flags,
      .fingerprint = bytes.fingerprint.get(),
  };
}

[[nodiscard]] constexpr InaLayout encode(const InaHeader& header) {
  InaLayout bytes{};
  bytes.version = header.version;
  bytes.opcode = static_cast<std::uint8_t>(header.opcode);
  bytes.reduce_op = static_cast<std::uint8_t>(header.reduce_op);
  bytes.element_type = static_cast<std::uint8_t>(header.element_type);
  bytes.job.set(header.job);
  bytes.rank.set(header.rank);
  bytes.epoch.set(header.epoch);
  bytes.slot_and_version.set(
      static_cast<std::uint16_t>((header.slot << 1) | (header.slot_version & 1)));
  bytes.sequence.set(header.sequence);
  bytes.chunk.set(header.chunk);
  bytes.lane_count.set(header.lane_count);
  bytes.exponent = static_cast<std::uint8_t>(header.exponent);
  bytes.flags = header.flags;
  bytes.fingerprint.set(header.fingerprint);
  return bytes;
}

// One field of the header: name as in the specification, offset and width in bits, most significant
// bit first.
struct FieldDescription {
  std::string_view name;
  std::uint16_t bit_offset;
  std::uint16_t width;
  bool is_signed;
};

inline constexpr std::array<FieldDescription, 15> kInaFields{{
    {"version", 0, 8, false},
    {"opcode", 8, 8, false},
    {"reduce_op", 16, 8, false},
    {"element_type", 24, 8, false},
    {"job", 32, 16, false},
    {"rank", 48, 16, false},
    {"epoch", 64, 16, false},
    {"slot", 80, 15, false},
    {"slot_version", 95, 1, false},
    {"sequence", 96, 32, false},
    {"chunk", 128, 32, false},
    {"lane_count", 160, 16, false},
    {"exponent", 176, 8, true},
    {"flags", 184, 8, false},
    {"fingerprint", 192, 32, false},
}};
static_assert(kInaFields.back().bit_offset + kInaFields.back().width == 8 * kInaHeaderBytes);

// Whether a is before b, by serial number arithmetic (RFC 1982) on 32 bits.
[[nodiscard]] constexpr bool serial_before(std::uint32_t a, std::uint32_t b) {
  return a != b && (b - a) < 0x80000000U;
}

}  // namespace pycollective::wire
