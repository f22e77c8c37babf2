// Elements that travel as they are: 32-bit integers in network order, and words of opaque bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pycollective::numeric {

// Host integers to big-endian lanes and back; 4 bytes a lane.
void store_int32(std::span<const std::int32_t> values, std::uint8_t* lanes);
void load_int32(const std::uint8_t* lanes, std::span<std::int32_t> values);

// Bytes to lanes in the order they have in memory; the last lane is filled up with zeros. Returns
// the number of lanes written: ceil(bytes.size() / 4).
std::size_t store_bytes(std::span<const std::uint8_t> bytes, std::uint8_t* lanes);
// The first bytes.size() bytes of the lanes.
void load_bytes(const std::uint8_t* lanes, std::span<std::uint8_t> bytes);

// Zeros for the lanes first to last - 1, so that a short block does not send what was in the
// buffer.
void clear_lanes(std::uint8_t* lanes, std::size_t first, std::size_t last);

}  // namespace pycollective::numeric
