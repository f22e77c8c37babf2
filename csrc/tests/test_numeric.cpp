// The kernels against their references on every class of input, and the documented error bound
// against sums in extended precision.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "numeric/block_float.hpp"
#include "numeric/lanes.hpp"
#include "numeric/reference.hpp"
#include "numeric/special.hpp"
#include "tests/check.hpp"
#include "tests/inputs.hpp"

namespace {

using namespace pycollective;
using namespace pycollective::numeric;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kDenormMin = std::numeric_limits<float>::denorm_min();

std::int32_t lane_at(const std::vector<std::uint8_t>& lanes, std::size_t index) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = (value << 8) | lanes[4 * index + i];
  return static_cast<std::int32_t>(value);
}

void put_lane(std::vector<std::uint8_t>& lanes, std::size_t index, std::int32_t value) {
  for (std::size_t i = 0; i < 4; ++i) {
    lanes[4 * index + i] =
        static_cast<std::uint8_t>(static_cast<std::uint32_t>(value) >> (24 - 8 * i));
  }
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// Distance from |value| to the next fp32 number away from zero.
long double ulp(float value) {
  const float size = std::fabs(value);
  if (!(size < kMax)) return 0x1p104L;
  return static_cast<long double>(std::nextafter(size, kInfinity)) - size;
}

// All-reduce of one block as the ranks and the switch do it.
struct Reduced {
  int exponent;
  std::vector<float> values;
};
Reduced reduce(const std::vector<std::vector<float>>& ranks) {
  const std::size_t count = ranks.front().size();
  const int headroom = headroom_bits(static_cast<unsigned>(ranks.size()));
  Reduced result{kZeroBlockExponent, std::vector<float>(count)};
  for (const auto& values : ranks) {
    result.exponent = std::max(result.exponent, block_exponent(values).exponent);
  }
  std::vector<std::uint8_t> lanes(4 * count);
  std::vector<std::int64_t> sums(count, 0);
  for (const auto& values : ranks) {
    quantize(values, result.exponent, headroom, lanes.data());
    for (std::size_t i = 0; i < count; ++i) sums[i] += lane_at(lanes, i);
  }
  for (std::size_t i = 0; i < count; ++i) {
    CHECK(sums[i] >= std::numeric_limits<std::int32_t>::min());
    CHECK(sums[i] <= std::numeric_limits<std::int32_t>::max());
    put_lane(lanes, i, static_cast<std::int32_t>(sums[i]));
  }
  dequantize(lanes.data(), result.exponent, headroom, result.values);
  return result;
}

}  // namespace

TEST(headroom_is_the_ceiling_of_log2) {
  const int expected[] = {0, 0, 1, 2, 2, 3, 3, 3, 3, 4};
  for (unsigned world = 1; world < 10; ++world) CHECK_EQ(headroom_bits(world), expected[world]);
  CHECK_EQ(headroom_bits(16), 4);
  CHECK_EQ(headroom_bits(17), kMaxHeadroom);
  CHECK_EQ(headroom_bits(32), kMaxHeadroom);
}

TEST(block_exponent_of_single_values) {
  const auto exponent = [](float value) { return block_exponent(std::span(&value, 1)); };
  CHECK_EQ(exponent(1.0F).exponent, 0);
  CHECK_EQ(exponent(-1.5F).exponent, 0);
  CHECK_EQ(exponent(std::nextafter(2.0F, 0.0F)).exponent, 0);
  CHECK_EQ(exponent(2.0F).exponent, 1);
  CHECK_EQ(exponent(kMax).exponent, 127);
  CHECK_EQ(exponent(std::numeric_limits<float>::min()).exponent, -126);
  CHECK_EQ(exponent(kDenormMin).exponent, -126);
  CHECK_EQ(exponent(-0.0F).exponent, -127);
  CHECK(exponent(kInfinity) == (BlockExponent{-127, true}));
  CHECK(exponent(-kInfinity) == (BlockExponent{-127, true}));
  CHECK(exponent(kNan) == (BlockExponent{-127, true}));
  CHECK(block_exponent({}) == (BlockExponent{-127, false}));
}

TEST(block_exponent_equals_its_reference_for_all_lengths_and_inputs) {
  std::mt19937 random(1);
  for (inputs::Class kind : inputs::kAll) {
    check::Context context("class", kind);
    for (std::size_t count = 0; count < 130; ++count) {
      const auto values = inputs::block(kind, count, random);
      CHECK(block_exponent(values) == reference::block_exponent(values));
    }
  }
}

TEST(quantize_equals_its_reference_for_all_exponents_and_headrooms) {
  std::mt19937 random(2);
  for (inputs::Class kind : inputs::kAll) {
    check::Context context("class", kind);
    for (int headroom = 0; headroom <= kMaxHeadroom; ++headroom) {
      const std::size_t count = 1 + random() % 200;
      const auto values = inputs::block(kind, count, random);
      std::vector<std::uint8_t> lanes(4 * count);
      for (int exponent = block_exponent(values).exponent; exponent <= 127; ++exponent) {
        quantize(values, exponent, headroom, lanes.data());
        for (std::size_t i = 0; i < count; ++i) {
          CHECK_EQ(lane_at(lanes, i), reference::quantize(values[i], exponent, headroom));
        }
      }
    }
  }
}

TEST(quantize_rounds_halves_to_even) {
  // With exponent 30 and no headroom a lane is the value itself.
  const std::vector<float> values = {0.5F,  1.5F,  2.5F,   3.5F,       -0.5F,       -1.5F,
                                     -2.5F, 0.75F, -0.25F, 8388607.5F, -8388606.5F, 8388606.5F};
  const std::vector<int> expected = {0, 2, 2, 4, 0, -2, -2, 1, 0, 8388608, -8388606, 8388606};
  std::vector<std::uint8_t> lanes(4 * values.size());
  quantize(values, 30, 0, lanes.data());
  for (std::size_t i = 0; i < values.size(); ++i) CHECK_EQ(lane_at(lanes, i), expected[i]);
}

TEST(the_largest_values_keep_the_promised_distance_from_overflow) {
  for (int headroom = 0; headroom <= kMaxHeadroom; ++headroom) {
    check::Context context("headroom", headroom);
    const std::int64_t limit = (std::int64_t{1} << (31 - headroom)) - (1 << (7 - headroom));
    // The significand of all ones at every exponent.
    for (int exponent = -126; exponent <= 127; ++exponent) {
      const float value = std::ldexp(std::nextafter(2.0F, 0.0F), exponent);
      std::vector<std::uint8_t> lanes(8);
      quantize(std::vector<float>{value, -value}, exponent, headroom, lanes.data());
      CHECK_EQ(lane_at(lanes, 0), limit);
      CHECK_EQ(lane_at(lanes, 1), -limit);
    }
    CHECK(limit * (std::int64_t{1} << headroom) <= std::numeric_limits<std::int32_t>::max());
  }
}

TEST(dequantize_equals_its_reference_for_all_exponents_and_headrooms) {
  std::mt19937 random(3);
  std::vector<std::int32_t> sums = {0,          1,       -1, 2, 3, 0x7fffffff, -0x7fffffff - 1,
                                    0x7fffff80, 16777217};
  for (int bits = 1; bits <= 32; ++bits) {
    for (int i = 0; i < 4; ++i) sums.push_back(static_cast<std::int32_t>(random()) >> (32 - bits));
  }
  std::vector<std::uint8_t> lanes(4 * sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) put_lane(lanes, i, sums[i]);
  std::vector<float> values(sums.size());
  for (int headroom = 0; headroom <= kMaxHeadroom; ++headroom) {
    for (int exponent = kZeroBlockExponent; exponent <= kMaxBlockExponent; ++exponent) {
      check::Context context("exponent", exponent);
      dequantize(lanes.data(), exponent, headroom, values);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        CHECK(same_bits(values[i], reference::dequantize(sums[i], exponent, headroom)));
      }
    }
  }
}

TEST(sums_are_within_the_documented_bound_and_never_overflow) {
  std::mt19937 random(4);
  for (unsigned world : {1U, 2U, 3U, 4U, 5U, 8U, 9U, 31U, 32U}) {
    check::Context context("world", world);
    const int headroom = headroom_bits(world);
    for (inputs::Class kind : inputs::kAll) {
      if (kind == inputs::Class::kAnyBits) continue;
      check::Context kind_context("class", kind);
      for (int round = 0; round < 4; ++round) {
        const std::size_t count = 1 + random() % 257;
        std::vector<std::vector<float>> ranks;
        for (unsigned rank = 0; rank < world; ++rank) {
          // Ranks of different classes in the last rounds: one rank sets the exponent for all.
          const bool other = round == 3 && rank % 2 == 1;
          ranks.push_back(inputs::block(other ? inputs::Class::kDenormal : kind, count, random));
        }
        const Reduced reduced = reduce(ranks);
        const long double step = std::ldexp(1.0L, reduced.exponent - 30 + headroom);
        for (std::size_t i = 0; i < count; ++i) {
          long double exact = 0;
          for (const auto& values : ranks) exact += values[i];
          const float found = reduced.values[i];
          if (std::isinf(found)) {
            // Only where the exact sum is within the bound of the fp32 range's end or beyond.
            CHECK(std::fabs(exact) + world * step >= static_cast<long double>(kMax));
          } else {
            CHECK(std::fabs(found - exact) <= world * step + ulp(found) / 2);
          }
        }
      }
    }
  }
}

TEST(the_same_worst_case_on_all_32_ranks_does_not_overflow) {
  for (float value : {kMax, -kMax, 1.9999999F, kDenormMin, -kDenormMin}) {
    const std::vector<std::vector<float>> ranks(32, std::vector<float>(9, value));
    const Reduced reduced = reduce(ranks);  // checks that sums fit
    for (float found : reduced.values) {
      CHECK(same_bits(found, static_cast<float>(32.0 * static_cast<double>(value))));
    }
  }
}

TEST(one_rank_gets_its_values_back_to_the_last_kept_bit) {
  std::mt19937 random(5);
  const auto values = inputs::block(inputs::Class::kNormal, 256, random);
  const Reduced reduced = reduce({values});
  for (std::size_t i = 0; i < values.size(); ++i) {
    // 30 bits below the block's exponent hold the whole significand of anything this large.
    if (std::fabs(values[i]) >= std::ldexp(1.0F, reduced.exponent - 6)) {
      CHECK(same_bits(reduced.values[i], values[i]));
    }
  }
}

TEST(special_values_are_sent_as_zero_and_disturb_no_lane) {
  const std::vector<float> values = {1.0F, kNan, -kInfinity, kInfinity, 0.5F, -kNan};
  CHECK(block_exponent(values) == (BlockExponent{0, true}));
  std::vector<std::uint8_t> lanes(4 * values.size(), 0xee);
  quantize(values, 0, 0, lanes.data());
  const int expected[] = {1 << 30, 0, 0, 0, 1 << 29, 0};
  for (std::size_t i = 0; i < values.size(); ++i) CHECK_EQ(lane_at(lanes, i), expected[i]);
}

TEST(special_codes_sum_to_what_an_ieee_sum_gives) {
  std::mt19937 random(6);
  const float kinds[] = {0.0F, 1.0F, kNan, kInfinity, -kInfinity};
  for (std::size_t world : {1U, 2U, 3U, 32U}) {
    check::Context context("world", world);
    constexpr std::size_t kCount = 500;
    std::vector<std::uint32_t> sums(kCount, 0);
    std::vector<float> ieee(kCount, 0.0F);
    for (std::size_t rank = 0; rank < world; ++rank) {
      std::vector<float> values(kCount);
      for (std::size_t i = 0; i < kCount; ++i) {
        // The first elements are the same on all ranks, so that every count reaches the world size.
        values[i] = i < std::size(kinds) ? kinds[i] : kinds[random() % (i % 2 == 0 ? 5 : 2)];
        ieee[i] += values[i];
      }
      std::vector<Special> found(kCount);
      classify(values, found);
      std::vector<std::uint8_t> lanes(4 * kCount);
      store_codes(found, lanes.data());
      for (std::size_t i = 0; i < kCount; ++i) {
        sums[i] += static_cast<std::uint32_t>(lane_at(lanes, i));
      }
    }
    std::vector<std::uint8_t> lanes(4 * kCount);
    for (std::size_t i = 0; i < kCount; ++i) put_lane(lanes, i, static_cast<std::int32_t>(sums[i]));
    std::vector<Special> agreed(kCount);
    load_codes(lanes.data(), agreed);
    std::vector<float> values(kCount, 7.0F);
    apply(agreed, values);
    for (std::size_t i = 0; i < kCount; ++i) {
      if (std::isnan(ieee[i])) {
        CHECK_EQ(std::bit_cast<std::uint32_t>(values[i]), 0x7fc00000U);
      } else if (std::isinf(ieee[i])) {
        CHECK(same_bits(values[i], ieee[i]));
      } else {
        CHECK_EQ(values[i], 7.0F);
      }
    }
  }
}

TEST(integers_travel_in_network_order_and_come_back) {
  std::mt19937 random(7);
  for (std::size_t count = 0; count < 130; ++count) {
    std::vector<std::int32_t> values(count);
    for (auto& value : values) value = static_cast<std::int32_t>(random());
    std::vector<std::uint8_t> lanes(4 * count);
    store_int32(values, lanes.data());
    for (std::size_t i = 0; i < count; ++i) CHECK_EQ(lane_at(lanes, i), values[i]);
    std::vector<std::int32_t> back(count);
    load_int32(lanes.data(), back);
    CHECK(back == values);
    store_int32(values, reinterpret_cast<std::uint8_t*>(back.data()));
    load_int32(reinterpret_cast<const std::uint8_t*>(back.data()), back);
    CHECK(back == values);
  }
}

TEST(bytes_keep_their_order_and_a_tail_is_padded_with_zeros) {
  for (std::size_t count = 0; count < 40; ++count) {
    check::Context context("bytes", count);
    std::vector<std::uint8_t> bytes(count);
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
    std::vector<std::uint8_t> lanes(48, 0xee);
    const std::size_t written = store_bytes(bytes, lanes.data());
    CHECK_EQ(written, (count + 3) / 4);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const int expected = i < count ? static_cast<int>(i + 1) : i < 4 * written ? 0 : 0xee;
      CHECK_EQ(lanes[i], expected);
    }
    std::vector<std::uint8_t> back(count + 1, 0xdd);
    load_bytes(lanes.data(), std::span(back).first(count));
    CHECK(std::equal(bytes.begin(), bytes.end(), back.begin()));
    CHECK_EQ(back[count], 0xdd);
  }
}

TEST(cleared_lanes_are_zero_and_no_others) {
  std::vector<std::uint8_t> lanes(32, 0xee);
  clear_lanes(lanes.data(), 2, 6);
  clear_lanes(lanes.data(), 7, 7);
  for (std::size_t i = 0; i < lanes.size(); ++i) CHECK_EQ(lanes[i], i >= 8 && i < 24 ? 0 : 0xee);
}
