#include "wire/frame.hpp"

#include <cstring>
#include <stdexcept>

namespace pycollective::wire {
namespace {

template <typename Layout>
Layout read(std::span<const std::uint8_t> bytes, std::size_t offset) {
  Layout layout;
  std::memcpy(&layout, bytes.data() + offset, sizeof(Layout));
  return layout;
}

template <typename Layout>
std::span<const std::uint8_t> bytes_of(const Layout& layout) {
  return {reinterpret_cast<const std::uint8_t*>(&layout), sizeof(Layout)};
}

// The pseudo header of RFC 768: both addresses, the protocol, the UDP length.
PartialSum pseudo_header_sum(const Ipv4Layout& ipv4, std::uint16_t udp_length) {
  return sum_words(ipv4.source.bytes) + sum_words(ipv4.destination.bytes) +
         PartialSum::of_field(kIpProtocolUdp) + PartialSum::of_field(udp_length);
}

constexpr std::uint16_t complement(PartialSum sum) {
  return static_cast<std::uint16_t>(~sum.fold());
}

// What a sum comes to when the checksum it contains is right.
constexpr std::uint16_t kIntact = 0xffff;

}  // namespace

FrameWriter::Template FrameWriter::make(const Addresses& addresses, std::size_t lanes) {
  EthernetLayout ethernet{addresses.destination_mac, addresses.source_mac, {}};
  ethernet.ether_type.set(kEtherTypeIpv4);

  UdpLayout udp{};
  const auto udp_length =
      static_cast<std::uint16_t>(sizeof(UdpLayout) + kInaHeaderBytes + kLaneBytes * lanes);
  udp.source_port.set(kInaUdpPort);
  udp.destination_port.set(kInaUdpPort);
  udp.length.set(udp_length);

  Ipv4Layout ipv4{};
  ipv4.version_and_length = kIpv4VersionAndLength;
  ipv4.total_length.set(static_cast<std::uint16_t>(sizeof(Ipv4Layout) + udp_length));
  ipv4.flags_and_offset.set(kIpv4DontFragment);
  ipv4.ttl = kIpv4Ttl;
  ipv4.protocol = kIpProtocolUdp;
  ipv4.source.set(addresses.source_ipv4);
  ipv4.destination.set(addresses.destination_ipv4);
  ipv4.checksum.set(complement(sum_words(bytes_of(ipv4))));

  Template result{};
  std::memcpy(result.prefix.data(), &ethernet, sizeof(ethernet));
  std::memcpy(result.prefix.data() + kIpv4Offset, &ipv4, sizeof(ipv4));
  std::memcpy(result.prefix.data() + kUdpOffset, &udp, sizeof(udp));
  result.sum = pseudo_header_sum(ipv4, udp_length) + sum_words(bytes_of(udp));
  return result;
}

FrameWriter::FrameWriter(const Addresses& addresses, std::size_t lanes)
    : lanes_(lanes), full_(make(addresses, lanes)), short_(make(addresses, 0)) {}

std::size_t FrameWriter::finish(const InaHeader& header, std::span<std::uint8_t> frame) const {
  const bool data = (header.flags & flag::kData) != 0;
  const std::size_t length = frame_bytes(data ? lanes_ : 0);
  if (frame.size() < length) throw std::length_error("FrameWriter::finish: no room for the frame");

  const Template& headers = data ? full_ : short_;
  std::memcpy(frame.data(), headers.prefix.data(), headers.prefix.size());
  const InaLayout ina = encode(header);
  std::memcpy(frame.data() + kInaOffset, &ina, sizeof(ina));

  const PartialSum sum = headers.sum + sum_words(frame.subspan(kInaOffset, length - kInaOffset));
  std::uint16_t checksum = complement(sum);
  // Zero would mean "no checksum" to a receiver that follows RFC 768; both stand for the same sum.
  if (checksum == 0) checksum = 0xffff;
  Big16 field{};
  field.set(checksum);
  std::memcpy(frame.data() + kUdpOffset + offsetof(UdpLayout, checksum), &field, sizeof(field));
  return length;
}

std::string_view name(FrameError error) {
  switch (error) {
    case FrameError::kNone:
      return "none";
    case FrameError::kTruncated:
      return "truncated";
    case FrameError::kNotIna:
      return "not_ina";
    case FrameError::kIpv4Checksum:
      return "ipv4_checksum";
    case FrameError::kLength:
      return "length";
    case FrameError::kUdpChecksum:
      return "udp_checksum";
    case FrameError::kVersion:
      return "version";
    case FrameError::kOpcode:
      return "opcode";
  }
  return "unknown";
}

FrameError parse_frame(std::span<const std::uint8_t> bytes, Frame& frame) {
  if (bytes.size() < sizeof(EthernetLayout)) return FrameError::kTruncated;
  const auto ethernet = read<EthernetLayout>(bytes, 0);
  if (ethernet.ether_type.get() != kEtherTypeIpv4) return FrameError::kNotIna;

  if (bytes.size() < kUdpOffset) return FrameError::kTruncated;
  const auto ipv4 = read<Ipv4Layout>(bytes, kIpv4Offset);
  if (ipv4.version_and_length != kIpv4VersionAndLength || ipv4.protocol != kIpProtocolUdp ||
      (ipv4.flags_and_offset.get() & kIpv4FragmentMask) != 0) {
    return FrameError::kNotIna;
  }

  if (bytes.size() < kInaOffset) return FrameError::kTruncated;
  const auto udp = read<UdpLayout>(bytes, kUdpOffset);
  if (udp.destination_port.get() != kInaUdpPort) return FrameError::kNotIna;
  if (sum_words(bytes_of(ipv4)).fold() != kIntact) return FrameError::kIpv4Checksum;

  const std::size_t total_length = ipv4.total_length.get();
  const std::size_t udp_length = udp.length.get();
  if (udp_length < sizeof(UdpLayout) + kInaHeaderBytes ||
      total_length != sizeof(Ipv4Layout) + udp_length) {
    return FrameError::kLength;
  }
  if (bytes.size() < kUdpOffset + udp_length) return FrameError::kTruncated;

  const auto datagram = bytes.subspan(kUdpOffset, udp_length);
  const PartialSum sum =
      pseudo_header_sum(ipv4, static_cast<std::uint16_t>(udp_length)) + sum_words(datagram);
  if (sum.fold() != kIntact) return FrameError::kUdpChecksum;

  frame.header = decode(read<InaLayout>(bytes, kInaOffset));
  frame.lanes = datagram.subspan(sizeof(UdpLayout) + kInaHeaderBytes);
  if (frame.header.version != kInaVersion) return FrameError::kVersion;
  if (frame.header.opcode < Opcode::kContribute || frame.header.opcode > Opcode::kNack) {
    return FrameError::kOpcode;
  }
  const bool data = (frame.header.flags & flag::kData) != 0;
  if (data == frame.lanes.empty() || frame.lanes.size() % kLaneBytes != 0) {
    return FrameError::kLength;
  }
  frame.addresses = {ethernet.source, ethernet.destination, ipv4.source.get(),
                     ipv4.destination.get()};
  return FrameError::kNone;
}

}  // namespace pycollective::wire
