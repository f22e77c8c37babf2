// The checksum functions compiled programs call for data that they have put into a buffer.
#include <array>
#include <cstdint>

#include "switch/abi.hpp"

namespace {

// CRC-16/ARC: polynomial 0x8005 reflected, initial value 0.
constexpr std::array<std::uint16_t, 256> kCrc16 = [] {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0xa001U : crc >> 1;
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}();

// CRC-32 (ISO-HDLC): polynomial 0x04c11db7 reflected.
constexpr std::array<std::uint32_t, 256> kCrc32 = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0xedb88320U : crc >> 1;
    table[byte] = crc;
  }
  return table;
}();

}  // namespace

std::uint16_t p4emu_crc16(const std::uint8_t* data, std::uint64_t length) {
  std::uint16_t crc = 0;
  for (std::uint64_t i = 0; i < length; ++i) {
    crc = static_cast<std::uint16_t>(kCrc16[(crc ^ data[i]) & 0xff] ^ (crc >> 8));
  }
  return crc;
}

std::uint32_t p4emu_crc32(const std::uint8_t* data, std::uint64_t length) {
  std::uint32_t crc = 0xffffffff;
  for (std::uint64_t i = 0; i < length; ++i) crc = kCrc32[(crc ^ data[i]) & 0xff] ^ (crc >> 8);
  return ~crc;
}
