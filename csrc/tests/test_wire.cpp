// Frames against bytes written out by hand from docs/protocol.md, and the parser against damage.
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "tests/check.hpp"
#include "wire/checksum.hpp"
#include "wire/frame.hpp"
#include "wire/ina.hpp"

namespace {

using namespace pycollective::wire;
using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kLanes = 4;

const Addresses kAddresses{
    .source_mac = {0x02, 0x50, 0x43, 0x00, 0x01, 0x02},
    .destination_mac = {0x02, 0x50, 0x43, 0xff, 0xff, 0xfe},
    .source_ipv4 = 0x0a000103,
    .destination_ipv4 = 0x0afffffe,
};

// Every field differs from every other and from what a swapped or shifted field would read.
InaHeader distinct_header() {
  return {
      .version = 1,
      .opcode = Opcode::kContribute,
      .reduce_op = ReduceOp::kCopy,
      .element_type = ElementType::kRawWord,
      .job = 0x1122,
      .rank = 0x3344,
      .epoch = 0x5566,
      .slot = 0x4abc,
      .slot_version = 1,
      .sequence = 0x778899aa,
      .chunk = 0xbbccddee,
      .lane_count = 0x0203,
      .exponent = -3,
      .flags = flag::kEcnEcho | flag::kSpecial,
      .fingerprint = 0x0badf00d,
  };
}

// RFC 1071, one byte pair at a time.
std::uint16_t slow_sum(std::span<const std::uint8_t> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    sum += static_cast<std::uint32_t>(bytes[i]) << 8;
    if (i + 1 < bytes.size()) sum += bytes[i + 1];
    sum = (sum >> 16) + (sum & 0xffff);
  }
  return static_cast<std::uint16_t>(sum);
}

Bytes build(InaHeader header, bool data) {
  const FrameWriter writer(kAddresses, kLanes);
  Bytes frame(frame_bytes(kLanes), 0xee);
  std::iota(frame.begin() + kLanesOffset, frame.end(), std::uint8_t{1});
  if (data) header.flags |= flag::kData;
  frame.resize(writer.finish(header, frame));
  return frame;
}

FrameError parse(const Bytes& bytes) {
  Frame frame;
  return parse_frame(bytes, frame);
}

// Recomputes both checksums, so that a test of a later check is not stopped by an earlier one.
void repair(Bytes& frame) {
  const auto put = [&frame](std::size_t offset, std::uint16_t value) {
    frame[offset] = static_cast<std::uint8_t>(value >> 8);
    frame[offset + 1] = static_cast<std::uint8_t>(value);
  };
  put(kIpv4Offset + 10, 0);
  put(kIpv4Offset + 10, ~slow_sum(std::span(frame).subspan(kIpv4Offset, 20)));
  put(kUdpOffset + 6, 0);
  Bytes sum(frame.begin() + kIpv4Offset + 12, frame.begin() + kUdpOffset);
  sum.insert(sum.end(), {0, 17, frame[kUdpOffset + 4], frame[kUdpOffset + 5]});
  const std::size_t length = (frame[kUdpOffset + 4] << 8) | frame[kUdpOffset + 5];
  const auto end = frame.begin() + std::min(frame.size(), kUdpOffset + length);
  sum.insert(sum.end(), frame.begin() + kUdpOffset, end);
  put(kUdpOffset + 6, ~slow_sum(sum));
}

}  // namespace

TEST(header_bytes_are_those_of_the_specification) {
  const InaLayout layout = encode(distinct_header());
  const std::uint8_t expected[kInaHeaderBytes] = {
      0x01, 0x01, 0x06, 0x03, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x95, 0x79, 0x77, 0x88,
      0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0x02, 0x03, 0xfd, 0x0c, 0x0b, 0xad, 0xf0, 0x0d};
  CHECK(std::memcmp(&layout, expected, sizeof(layout)) == 0);
  CHECK(decode(layout) == distinct_header());
}

TEST(field_description_agrees_with_the_layout) {
  // Setting one field to all ones must set exactly the described bits.
  const auto check_bits = [](std::size_t index, InaHeader header) {
    const InaLayout layout = encode(header);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&layout);
    const FieldDescription& field = kInaFields[index];
    check::Context context("field", field.name);
    for (std::size_t bit = 0; bit < 8 * kInaHeaderBytes; ++bit) {
      const bool set = (bytes[bit / 8] >> (7 - bit % 8)) & 1;
      CHECK_EQ(set, bit >= field.bit_offset && bit < field.bit_offset + field.width);
    }
  };
  InaHeader zero{};
  zero.version = 0;
  zero.opcode = Opcode{0};
  zero.exponent = 0;
  std::vector<InaHeader> ones(kInaFields.size(), zero);
  ones[0].version = 0xff;
  ones[1].opcode = Opcode{0xff};
  ones[2].reduce_op = ReduceOp{0xff};
  ones[3].element_type = ElementType{0xff};
  ones[4].job = 0xffff;
  ones[5].rank = 0xffff;
  ones[6].epoch = 0xffff;
  ones[7].slot = 0x7fff;
  ones[8].slot_version = 1;
  ones[9].sequence = 0xffffffff;
  ones[10].chunk = 0xffffffff;
  ones[11].lane_count = 0xffff;
  ones[12].exponent = -1;
  ones[13].flags = 0xff;
  ones[14].fingerprint = 0xffffffff;
  for (std::size_t i = 0; i < ones.size(); ++i) check_bits(i, ones[i]);
}

TEST(frame_bytes_are_those_of_the_specification) {
  const Bytes frame = build(distinct_header(), true);
  REQUIRE_EQ(frame.size(), 14 + 20 + 8 + 28 + 4 * kLanes);
  const Bytes prefix = {0x02, 0x50, 0x43, 0xff, 0xff, 0xfe, 0x02, 0x50, 0x43, 0x00, 0x01, 0x02,
                        0x08, 0x00, 0x45, 0x00, 0x00, 0x48, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11};
  CHECK(std::equal(prefix.begin(), prefix.end(), frame.begin()));
  const Bytes addresses = {0x0a, 0x00, 0x01, 0x03, 0x0a, 0xff, 0xff,
                           0xfe, 0x4e, 0x41, 0x4e, 0x41, 0x00, 0x34};
  CHECK(std::equal(addresses.begin(), addresses.end(), frame.begin() + 26));
  for (std::size_t i = 0; i < 4 * kLanes; ++i) CHECK_EQ(frame[kLanesOffset + i], i + 1);
  // An independent computation finds the same checksums.
  Bytes repaired = frame;
  repair(repaired);
  CHECK(repaired == frame);
}

TEST(frames_read_back_as_written) {
  for (bool data : {false, true}) {
    const Bytes bytes = build(distinct_header(), data);
    CHECK_EQ(bytes.size(), frame_bytes(data ? kLanes : 0));
    Frame frame;
    REQUIRE_EQ(parse_frame(bytes, frame), FrameError::kNone);
    InaHeader expected = distinct_header();
    if (data) expected.flags |= flag::kData;
    CHECK(frame.header == expected);
    CHECK_EQ(frame.lanes.size(), data ? 4 * kLanes : 0);
    if (data) CHECK(frame.lanes.data() == bytes.data() + kLanesOffset);
    CHECK(frame.addresses.source_mac == kAddresses.source_mac);
    CHECK(frame.addresses.destination_mac == kAddresses.destination_mac);
    CHECK_EQ(frame.addresses.source_ipv4, kAddresses.source_ipv4);
    CHECK_EQ(frame.addresses.destination_ipv4, kAddresses.destination_ipv4);
  }
}

TEST(padding_after_the_packet_is_ignored) {
  Bytes bytes = build(distinct_header(), false);
  bytes.resize(bytes.size() + 7, 0xff);
  Frame frame;
  CHECK_EQ(parse_frame(bytes, frame), FrameError::kNone);
  CHECK(frame.lanes.empty());
}

TEST(every_shorter_frame_is_truncated) {
  const Bytes bytes = build(distinct_header(), true);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    check::Context context("length", length);
    // A copy of exactly this size, so that a sanitizer sees any read past its end.
    CHECK_EQ(parse(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length))),
             FrameError::kTruncated);
  }
}

TEST(every_single_bit_error_is_refused_or_outside_the_checksums) {
  const Bytes bytes = build(distinct_header(), true);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    check::Context context("bit", bit);
    Bytes damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    // Only the MAC addresses are not covered by a checksum.
    CHECK_EQ(parse(damaged) == FrameError::kNone, bit < 8 * 12);
  }
}

TEST(errors_are_told_apart) {
  const auto damage = [](std::size_t offset, std::uint8_t value, bool repaired) {
    Bytes bytes = build(distinct_header(), true);
    bytes[offset] = value;
    if (repaired) repair(bytes);
    return parse(bytes);
  };
  CHECK_EQ(damage(12, 0x86, false), FrameError::kNotIna);
  CHECK_EQ(damage(kIpv4Offset, 0x46, true), FrameError::kNotIna);      // options
  CHECK_EQ(damage(kIpv4Offset + 6, 0x20, true), FrameError::kNotIna);  // more fragments
  CHECK_EQ(damage(kIpv4Offset + 7, 0x01, true), FrameError::kNotIna);  // fragment offset
  CHECK_EQ(damage(kIpv4Offset + 9, 6, true), FrameError::kNotIna);     // TCP
  CHECK_EQ(damage(kUdpOffset + 3, 0x42, true), FrameError::kNotIna);   // other port
  CHECK_EQ(damage(kIpv4Offset + 8, 63, false), FrameError::kIpv4Checksum);
  CHECK_EQ(damage(kIpv4Offset + 8, 63, true), FrameError::kNone);      // a router's TTL
  CHECK_EQ(damage(kIpv4Offset + 3, 0x49, true), FrameError::kLength);  // total length
  CHECK_EQ(damage(kUdpOffset + 5, 0x33, true), FrameError::kLength);   // UDP length
  CHECK_EQ(damage(kLanesOffset, 9, false), FrameError::kUdpChecksum);
  CHECK_EQ(damage(kInaOffset, 2, true), FrameError::kVersion);
  CHECK_EQ(damage(kInaOffset + 1, 0, true), FrameError::kOpcode);
  CHECK_EQ(damage(kInaOffset + 1, 7, true), FrameError::kOpcode);
  CHECK_EQ(damage(kInaOffset + 23, 0, true), FrameError::kLength);  // lanes without the flag
}

TEST(lengths_that_agree_but_are_not_whole_lanes_are_refused) {
  Bytes bytes = build(distinct_header(), true);
  bytes[kIpv4Offset + 3] -= 2;
  bytes[kUdpOffset + 5] -= 2;
  repair(bytes);
  CHECK_EQ(parse(bytes), FrameError::kLength);
}

TEST(data_flag_without_lanes_is_refused) {
  Bytes bytes = build(distinct_header(), false);
  bytes[kInaOffset + 23] |= flag::kData;
  repair(bytes);
  CHECK_EQ(parse(bytes), FrameError::kLength);
}

TEST(checksum_zero_is_sent_as_all_ones_and_either_is_accepted) {
  // Find a fingerprint that makes the checksum come to zero.
  const FrameWriter writer(kAddresses, kLanes);
  InaHeader header = distinct_header();
  Bytes frame(frame_bytes(0));
  header.fingerprint = 0;
  static_cast<void>(writer.finish(header, frame));
  header.fingerprint =
      static_cast<std::uint32_t>((frame[kUdpOffset + 6] << 8) | frame[kUdpOffset + 7]);
  static_cast<void>(writer.finish(header, frame));
  CHECK_EQ(frame[kUdpOffset + 6], 0xff);
  CHECK_EQ(frame[kUdpOffset + 7], 0xff);
  CHECK_EQ(parse(frame), FrameError::kNone);
  frame[kUdpOffset + 6] = frame[kUdpOffset + 7] = 0;
  CHECK_EQ(parse(frame), FrameError::kNone);
}

TEST(sums_equal_those_of_byte_pairs_for_all_lengths) {
  std::mt19937 random(1);
  for (std::size_t length = 0; length < 300; ++length) {
    check::Context context("length", length);
    Bytes bytes(length + 1);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    const auto part = std::span(bytes).subspan(1);
    CHECK_EQ(sum_words(part).fold(), slow_sum(part));
  }
  const Bytes ones(65536, 0xff);
  CHECK_EQ(sum_words(ones).fold(), slow_sum(ones));
}

TEST(sums_of_parts_add_up) {
  std::mt19937 random(2);
  Bytes bytes(1000);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  const std::span<const std::uint8_t> all(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 2) {
    CHECK_EQ((sum_words(all.first(cut)) + sum_words(all.subspan(cut))).fold(), slow_sum(all));
  }
  CHECK_EQ(PartialSum::of_field(0x1234).fold(), 0x1234);
}

TEST(a_buffer_without_room_is_an_error) {
  const FrameWriter writer(kAddresses, kLanes);
  InaHeader header = distinct_header();
  header.flags |= flag::kData;
  Bytes frame(frame_bytes(kLanes) - 1);
  CHECK_THROWS(writer.finish(header, frame), std::length_error);
}

TEST(random_bytes_never_parse) {
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes(random() % 200);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    CHECK(parse(bytes) != FrameError::kNone);
  }
}

TEST(serial_numbers_wrap) {
  CHECK(serial_before(1, 2));
  CHECK(!serial_before(2, 1));
  CHECK(!serial_before(2, 2));
  CHECK(serial_before(0xffffffff, 0));
  CHECK(serial_before(0xfffffff0, 5));
  CHECK(!serial_before(5, 0xfffffff0));
}
