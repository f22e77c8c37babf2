// Impairment: what goes in comes out as often as its counts say, at the latest when they say, and
// the same for the same seed.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "switch/impairment.hpp"
#include "tests/check.hpp"

namespace {

using namespace p4emu;
using namespace std::chrono_literals;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kFrames = 5000;

Bytes numbered(std::uint32_t number) {
  Bytes frame(60, 0xa5);
  std::memcpy(frame.data(), &number, sizeof(number));
  return frame;
}

std::uint32_t number_of(std::span<const std::uint8_t> frame) {
  std::uint32_t number = 0;
  std::memcpy(&number, frame.data(), sizeof(number));
  return number;
}

// The numbers of the frames that come out of `kFrames` that go in, one a microsecond.
std::vector<std::uint32_t> pass_all(Impairment& impairment) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    impairment.pass(i * 1us, numbered(i),
                    [&](std::span<const std::uint8_t> frame) { out.push_back(number_of(frame)); });
  }
  return out;
}

std::map<std::uint32_t, int> times(const std::vector<std::uint32_t>& numbers) {
  std::map<std::uint32_t, int> all;
  for (const std::uint32_t number : numbers) ++all[number];
  return all;
}

}  // namespace

TEST(no_impairment_changes_nothing) {
  Impairment impairment;
  CHECK(!impairment.config().active());
  const std::vector<std::uint32_t> out = pass_all(impairment);
  REQUIRE_EQ(out.size(), kFrames);
  CHECK(std::ranges::is_sorted(out));
  CHECK(!impairment.next_deadline());
}

TEST(as_many_frames_are_lost_and_doubled_as_counted_and_about_as_many_as_asked_for) {
  Impairment impairment({.loss = 0.05, .duplicate = 0.1}, 7);
  const std::map<std::uint32_t, int> out = times(pass_all(impairment));
  const auto doubled =
      std::ranges::count_if(out, [](const auto& entry) { return entry.second == 2; });
  CHECK_EQ(kFrames - out.size(), impairment.counts().lost);
  CHECK_EQ(doubled, impairment.counts().duplicated);
  // Five standard deviations of 5000 draws are 77 and 106.
  CHECK(impairment.counts().lost > 250 - 77 && impairment.counts().lost < 250 + 77);
  CHECK(doubled > 475 - 106 && doubled < 475 + 106);
}

TEST(held_frames_come_out_behind_at_most_as_many_later_ones_as_asked_for) {
  Impairment impairment({.hold = 0.2, .hold_frames = 10, .hold_limit = 1h}, 7);
  const std::vector<std::uint32_t> out = pass_all(impairment);
  std::uint32_t latest = 0;
  std::uint32_t furthest = 0;
  std::size_t overtaken = 0;
  for (const std::uint32_t number : out) {
    if (number < latest) ++overtaken;
    if (number < latest) furthest = std::max(furthest, latest - number);
    latest = std::max(latest, number);
  }
  CHECK_EQ(furthest, 10);
  CHECK(overtaken > kFrames / 10);
  // Every frame once, those that still wait excepted.
  CHECK_EQ(times(out).size(), out.size());
  CHECK_EQ(out.size() + impairment.held(), kFrames);
}

TEST(held_frames_are_let_go_at_their_limit_in_the_order_they_came) {
  Impairment impairment({.hold = 1, .hold_frames = 1000, .hold_limit = 2ms}, 7);
  std::vector<std::uint32_t> out;
  const auto collect = [&](std::span<const std::uint8_t> f) { out.push_back(number_of(f)); };
  impairment.pass(0us, numbered(1), collect);
  impairment.pass(5us, numbered(2), collect);
  CHECK(out.empty());
  REQUIRE(impairment.next_deadline() == 2ms);
  impairment.expire(2ms - 1ns, collect);
  CHECK(out.empty());
  impairment.expire(2ms, collect);
  CHECK(out == std::vector<std::uint32_t>{1});
  CHECK(impairment.next_deadline() == 2ms + 5us);
  // What is held stays so when the cable is mended.
  impairment.configure({});
  impairment.pass(10us, numbered(3), collect);
  impairment.expire(1s, collect);
  CHECK((out == std::vector<std::uint32_t>{1, 3, 2}));
  CHECK_EQ(impairment.held(), 0);
}

TEST(corruption_changes_a_burst_of_bits_of_the_copy_and_never_the_original) {
  Impairment impairment({.corrupt = 1}, 7);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const Bytes original = numbered(i);
    Bytes damaged;
    impairment.pass(0us, original,
                    [&](std::span<const std::uint8_t> f) { damaged.assign(f.begin(), f.end()); });
    CHECK(original == numbered(i));
    REQUIRE_EQ(damaged.size(), original.size());
    std::vector<std::size_t> changed;
    for (std::size_t bit = 0; bit < original.size() * 8; ++bit) {
      if (((original[bit / 8] ^ damaged[bit / 8]) >> (7 - bit % 8) & 1) != 0)
        changed.push_back(bit);
    }
    REQUIRE(!changed.empty());
    CHECK(changed.back() - changed.front() < kBurstBits);
  }
  CHECK_EQ(impairment.counts().corrupted, 1000);
}

TEST(an_empty_frame_has_no_bits_to_change) {
  Impairment impairment({.corrupt = 1}, 7);
  int out = 0;
  impairment.pass(0us, {}, [&](std::span<const std::uint8_t> frame) {
    CHECK(frame.empty());
    ++out;
  });
  CHECK_EQ(out, 1);
  CHECK_EQ(impairment.counts().corrupted, 0);
}

TEST(a_seed_and_stream_decide_everything) {
  const ImpairmentConfig rough{.loss = 0.1, .duplicate = 0.1, .hold = 0.1, .corrupt = 0};
  Impairment a(rough, 7);
  Impairment b(rough, 7);
  Impairment other_seed(rough, 8);
  Impairment other_stream(rough, 7, 1);
  const std::vector<std::uint32_t> out = pass_all(a);
  CHECK(pass_all(b) == out);
  CHECK(pass_all(other_seed) != out);
  CHECK(pass_all(other_stream) != out);
}

TEST(one_probability_does_not_shift_the_luck_of_another) {
  Impairment losing({.loss = 0.1}, 7);
  Impairment losing_and_doubling({.loss = 0.1, .duplicate = 0.3}, 7);
  std::vector<std::uint32_t> doubled = pass_all(losing_and_doubling);
  doubled.erase(std::unique(doubled.begin(), doubled.end()), doubled.end());
  CHECK(pass_all(losing) == doubled);
}
