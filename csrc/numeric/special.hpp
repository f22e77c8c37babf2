// NaN and infinities, which have no fixed-point form and travel in a chunk of their own.
//
// Each rank remembers what kind every element of a flagged block was (1 byte an element), sends the
// kinds as codes that can be summed, and reads the agreed kinds back from the sum. The codes leave
// 10 bits a count, so the three counts do not touch for up to 32 ranks.
#pragma once

#include <cstdint>
#include <span>

namespace pycollective::numeric {

enum class Special : std::uint8_t {
  kNone = 0,
  kNan = 1,
  kPositiveInfinity = 2,
  kNegativeInfinity = 3,
};

inline constexpr std::uint32_t kNanCode = 1;
inline constexpr std::uint32_t kPositiveInfinityCode = 1U << 10;
inline constexpr std::uint32_t kNegativeInfinityCode = 1U << 20;

// What each value is; kinds.size() == values.size().
void classify(std::span<const float> values, std::span<Special> kinds);

// Writes one lane with the code of each kind.
void store_codes(std::span<const Special> kinds, std::uint8_t* lanes);

// Reads summed codes: any NaN, or infinities of both signs, is kNan; else the infinity there is.
void load_codes(const std::uint8_t* lanes, std::span<Special> kinds);

// Overwrites the values that have a kind; a NaN becomes the quiet NaN 0x7fc00000 on every rank.
void apply(std::span<const Special> kinds, std::span<float> values);

}  // namespace pycollective::numeric
