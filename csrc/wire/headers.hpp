// Layouts of the headers that carry ours: Ethernet II, IPv4 without options, UDP. Bytes and their
// places only; frame.hpp gives them values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/endian.hpp"

namespace pycollective::wire {

using MacAddress = std::array<std::uint8_t, 6>;

inline constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr std::uint8_t kIpv4VersionAndLength = 0x45;  // version 4, five words
inline constexpr std::uint16_t kIpv4DontFragment = 0x4000;
// Everything in `flags_and_offset` that makes a packet a fragment.
inline constexpr std::uint16_t kIpv4FragmentMask = 0x3fff;
inline constexpr std::uint8_t kIpv4Ttl = 64;
inline constexpr std::uint8_t kIpProtocolUdp = 17;

struct EthernetLayout {
  MacAddress destination;
  MacAddress source;
  Big16 ether_type;
};
static_assert(sizeof(EthernetLayout) == 14 && offsetof(EthernetLayout, ether_type) == 12);

struct Ipv4Layout {
  std::uint8_t version_and_length;
  std::uint8_t type_of_service;
  Big16 total_length;
  Big16 identification;
  Big16 flags_and_offset;
  std::uint8_t ttl;
  std::uint8_t protocol;
  Big16 checksum;
  Big32 source;
  Big32 destination;
};
static_assert(sizeof(Ipv4Layout) == 20 && offsetof(Ipv4Layout, checksum) == 10);
static_assert(offsetof(Ipv4Layout, source) == 12 && offsetof(Ipv4Layout, destination) == 16);

struct UdpLayout {
  Big16 source_port;
  Big16 destination_port;
  Big16 length;
  Big16 checksum;
};
static_assert(sizeof(UdpLayout) == 8 && offsetof(UdpLayout, checksum) == 6);

}  // namespace pycollective::wire
