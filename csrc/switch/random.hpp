// Random numbers for impaired links: xoshiro256** seeded through splitmix64, so that a seed printed
// by a failing run gives the same run on every machine and standard library. Main type: Random.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace p4emu {

class Random {
 public:
  // `stream` separates the users of one seed (each link has its own), so that adding a draw in one
  // place does not change every other.
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) {
    std::uint64_t x = seed ^ (stream * 0xd1342543de82ef95U);
    for (std::uint64_t& word : state_) {
      x += 0x9e3779b97f4a7c15U;
      std::uint64_t z = x;
      z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
      z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
      word = z ^ (z >> 31U);
    }
  }

  std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17U;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound). The bias of the plain remainder is below 2^-40 for the bounds used here
  // (frame sizes and counts under 2^24), far under what any run could notice.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

  // True with this probability. Draws even for 0 and 1: the sequence must not depend on it.
  bool chance(double probability) {
    return static_cast<double>(next() >> 11U) * 0x1.0p-53 < probability;
  }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace p4emu
