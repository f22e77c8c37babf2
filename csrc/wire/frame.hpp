// Whole frames: Ethernet / IPv4 / UDP / INA / lanes, written and read.
//
// FrameWriter writes one host's frames: everything that is the same in all of them is laid down
// once. parse_frame checks a frame from the outside in and says what is wrong with it as a
// FrameError; it accepts exactly what docs/protocol.md calls well formed. Whether a frame is for
// this job, rank or chunk is not decided here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "wire/checksum.hpp"
#include "wire/headers.hpp"
#include "wire/ina.hpp"

namespace pycollective::wire {

inline constexpr std::size_t kIpv4Offset = sizeof(EthernetLayout);
inline constexpr std::size_t kUdpOffset = kIpv4Offset + sizeof(Ipv4Layout);
inline constexpr std::size_t kInaOffset = kUdpOffset + sizeof(UdpLayout);
inline constexpr std::size_t kLanesOffset = kInaOffset + kInaHeaderBytes;

// Bytes of a frame that carries `lanes` lanes, from its Ethernet header on.
[[nodiscard]] constexpr std::size_t frame_bytes(std::size_t lanes) {
  return kLanesOffset + kLaneBytes * lanes;
}

struct Addresses {
  MacAddress source_mac{};
  MacAddress destination_mac{};
  std::uint32_t source_ipv4 = 0;
  std::uint32_t destination_ipv4 = 0;
};

// Writes frames from one address to another. A frame is made in three steps, so that lanes are
// written in place: the caller writes `frame.subspan(kLanesOffset)`, then calls `finish`.
class FrameWriter {
 public:
  // `lanes` is INA_LANES, the number of lanes of a frame with data.
  FrameWriter(const Addresses& addresses, std::size_t lanes);

  // Writes all headers around the lanes, checksums included, and returns the frame's length in
  // bytes. The frame has lanes when header.flags has kData: then all of them must be written.
  // `frame` has room for frame_bytes(lanes), or for frame_bytes(0) if there are none.
  std::size_t finish(const InaHeader& header, std::span<std::uint8_t> frame) const;

 private:
  // Ethernet, IPv4 and UDP headers; the UDP checksum field is zero.
  using Prefix = std::array<std::uint8_t, kInaOffset>;
  struct Template {
    Prefix prefix;
    PartialSum sum;  // of pseudo header and UDP header
  };
  static Template make(const Addresses& addresses, std::size_t lanes);

  std::size_t lanes_;
  Template full_;
  Template short_;
};

// Why a frame is not one of ours, in the order in which it is checked.
enum class FrameError : std::uint8_t {
  kNone,
  kTruncated,     // ends before its headers, or before the lengths they state
  kNotIna,        // other EtherType, IPv4 with options, fragment, other protocol or UDP port
  kIpv4Checksum,  // the IPv4 header's sum is wrong
  kLength,        // IPv4, UDP and INA disagree on how long it is
  kUdpChecksum,   // the sum over pseudo header and datagram is wrong
  kVersion,       // another version of the INA header
  kOpcode,        // an opcode without a name
};
inline constexpr std::size_t kFrameErrors = 8;

// The error's name for statistics and messages, like "truncated".
[[nodiscard]] std::string_view name(FrameError error);

struct Frame {
  Addresses addresses;
  InaHeader header;
  std::span<const std::uint8_t> lanes;  // into the parsed bytes; empty without kData
};

// Reads a frame. Bytes after the IPv4 packet (Ethernet padding) are ignored. `frame` is complete
// when the result is kNone and unspecified otherwise.
[[nodiscard]] FrameError parse_frame(std::span<const std::uint8_t> bytes, Frame& frame);

}  // namespace pycollective::wire
