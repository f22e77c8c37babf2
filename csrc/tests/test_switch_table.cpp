// Tables of the switch: random entries and lookups against a naive reference that scans all
// entries.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "switch/flat_index.hpp"
#include "switch/status.hpp"
#include "switch/table.hpp"
#include "tests/check.hpp"

namespace {

using namespace p4emu;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kSeed = 20261201;

TableImage image(std::vector<KeyFieldImage> key, std::uint32_t size = 100000) {
  TableImage image;
  image.name = std::string("t");
  image.key = std::move(key);
  image.action_data_bytes = {0, 4};
  image.initial = {0, {}};
  image.size = size;
  image.counts = true;
  return image;
}

Bytes data_of(std::uint32_t number) {
  return {static_cast<std::uint8_t>(number), static_cast<std::uint8_t>(number >> 8),
          static_cast<std::uint8_t>(number >> 16), static_cast<std::uint8_t>(number >> 24)};
}

// The number an entry was given, or nothing for the default action.
std::optional<std::uint32_t> number_of(const ActionEntry* entry) {
  if (entry->hit == 0) return std::nullopt;
  std::uint32_t number;
  std::memcpy(&number, entry->data, 4);
  return number;
}

template <typename Call>
std::optional<Code> code_of(Call&& call) {
  try {
    call();
  } catch (const SwitchError& error) {
    return error.code();
  }
  return std::nullopt;
}

// Matches as the P4Runtime specification describes it, one entry at a time.
class Reference {
 public:
  explicit Reference(std::vector<KeyFieldImage> key) : key_(std::move(key)) {}

  bool matches(const TableEntry& entry, const Bytes& key) const {
    std::size_t at = 0;
    for (const KeyFieldImage& field : key_) {
      const std::uint8_t* k = key.data() + at;
      const std::uint8_t* v = entry.value.data() + at;
      const std::uint8_t* m = entry.mask.data() + at;
      if (field.kind == MatchKind::kRange) {
        if (std::memcmp(k, v, field.bytes) < 0 || std::memcmp(k, m, field.bytes) > 0) return false;
      } else {
        for (std::uint32_t i = 0; i < field.bytes; ++i) {
          if ((k[i] & m[i]) != (v[i] & m[i])) return false;
        }
      }
      at += field.bytes;
    }
    return true;
  }

  // The best priority among the entries that match; with several the winner is any of them.
  std::optional<std::int32_t> best(const std::vector<TableEntry>& entries, const Bytes& key) const {
    std::optional<std::int32_t> best;
    for (const TableEntry& entry : entries) {
      if (matches(entry, key) && (!best || entry.priority > *best)) best = entry.priority;
    }
    return best;
  }

 private:
  std::vector<KeyFieldImage> key_;
};

// Inserts, erases and looks up at random; every lookup must give a matching entry of the best
// priority. Keys are drawn from few values, so that entries overlap.
void compare_with_reference(const std::vector<KeyFieldImage>& key, std::uint32_t seed) {
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  const bool lpm_alone =
      std::ranges::any_of(key, [](const KeyFieldImage& f) { return f.kind == MatchKind::kLpm; }) &&
      std::ranges::all_of(key, [](const KeyFieldImage& f) {
        return f.kind == MatchKind::kLpm || f.kind == MatchKind::kExact;
      });

  Table table(image(key));
  const Reference reference(key);
  std::vector<TableEntry> entries;
  std::uint32_t next_number = 0;

  const auto random_entry = [&] {
    TableEntry entry;
    std::int32_t prefix = 0;
    for (const KeyFieldImage& field : key) {
      Bytes value(field.bytes);
      Bytes mask(field.bytes, 0xff);
      for (auto& byte : value) byte = static_cast<std::uint8_t>(below(4) * 0x41);
      if (field.kind == MatchKind::kTernary) {
        for (auto& byte : mask) byte = static_cast<std::uint8_t>(below(2) * 0xff ^ below(2));
      } else if (field.kind == MatchKind::kOptional) {
        if (below(2) == 0) std::ranges::fill(mask, 0);
      } else if (field.kind == MatchKind::kLpm) {
        const std::uint32_t bits = below(field.bytes * 8 + 1);
        for (std::uint32_t i = 0; i < field.bytes; ++i) {
          const int ones = std::clamp(static_cast<int>(bits) - static_cast<int>(i) * 8, 0, 8);
          mask[i] = static_cast<std::uint8_t>(0xff00 >> ones);
        }
        prefix += static_cast<std::int32_t>(bits);
      } else if (field.kind == MatchKind::kRange) {
        for (auto& byte : mask) byte = static_cast<std::uint8_t>(below(4) * 0x41);
        if (value > mask) value.swap(mask);
      }
      if (field.kind != MatchKind::kRange) {
        for (std::uint32_t i = 0; i < field.bytes; ++i) value[i] &= mask[i];
      }
      entry.value.insert(entry.value.end(), value.begin(), value.end());
      entry.mask.insert(entry.mask.end(), mask.begin(), mask.end());
    }
    entry.priority = lpm_alone ? prefix : static_cast<std::int32_t>(below(20));
    if (std::ranges::all_of(key, [](const auto& f) { return f.kind == MatchKind::kExact; })) {
      entry.priority = 0;
    }
    entry.action = 1;
    return entry;
  };
  const auto same = [](const TableEntry& a, const TableEntry& b) {
    return a.value == b.value && a.mask == b.mask && a.priority == b.priority;
  };

  for (int step = 0; step < 4000; ++step) {
    if (below(3) == 0 && !entries.empty()) {
      const std::uint32_t victim = below(static_cast<std::uint32_t>(entries.size()));
      table.erase(entries[victim]);
      entries.erase(entries.begin() + victim);
    } else {
      TableEntry entry = random_entry();
      entry.data = data_of(next_number++);
      const bool exists =
          std::ranges::any_of(entries, [&](const TableEntry& e) { return same(e, entry); });
      const auto code = code_of([&] { table.insert(entry); });
      CHECK_EQ(code.has_value(), exists);
      if (exists) {
        CHECK(code == Code::kAlreadyExists);
      } else {
        entries.push_back(entry);
      }
    }
    Bytes lookup;
    for (const KeyFieldImage& field : key) {
      for (std::uint32_t i = 0; i < field.bytes; ++i) {
        lookup.push_back(static_cast<std::uint8_t>(below(4) * 0x41));
      }
    }
    const auto found = number_of(table.lookup(lookup.data()));
    const auto best = reference.best(entries, lookup);
    CHECK_EQ(found.has_value(), best.has_value());
    if (found && best) {
      const auto winner = std::ranges::find_if(
          entries, [&](const TableEntry& e) { return e.data == data_of(*found); });
      CHECK(winner != entries.end());
      CHECK(reference.matches(*winner, lookup));
      CHECK_EQ(winner->priority, *best);
    }
  }
  CHECK_EQ(table.entries().size(), entries.size());
}

}  // namespace

TEST(an_exact_table_finds_what_is_in_it_and_nothing_else) {
  compare_with_reference({{MatchKind::kExact, 2}}, kSeed);
  compare_with_reference({{MatchKind::kExact, 1}, {MatchKind::kExact, 9}}, kSeed + 1);
}

TEST(the_longest_prefix_wins) {
  compare_with_reference({{MatchKind::kLpm, 2}}, kSeed);
  compare_with_reference({{MatchKind::kExact, 1}, {MatchKind::kLpm, 4}}, kSeed + 1);
}

TEST(the_largest_priority_of_the_matching_ternary_entries_wins) {
  compare_with_reference({{MatchKind::kTernary, 2}}, kSeed);
  compare_with_reference({{MatchKind::kTernary, 1}, {MatchKind::kOptional, 1}}, kSeed + 1);
  compare_with_reference({{MatchKind::kLpm, 2}, {MatchKind::kTernary, 1}}, kSeed + 2);
}

TEST(ranges_include_both_bounds_and_priorities_decide) {
  compare_with_reference({{MatchKind::kRange, 2}}, kSeed);
  compare_with_reference({{MatchKind::kRange, 1}, {MatchKind::kTernary, 1}}, kSeed + 1);
}

TEST(a_hash_index_survives_many_insertions_and_removals) {
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  FlatIndex index(2);
  std::vector<std::uint32_t> model(4096, FlatIndex::kNone);
  for (std::uint32_t step = 0; step < 200000; ++step) {
    const std::uint64_t key = random() % model.size();
    const std::uint64_t words[2] = {key >> 6, key << 58};
    CHECK_EQ(index.find(words), model[key]);
    if (random() % 2 == 0) {
      index.assign(words, step);
      model[key] = step;
    } else {
      index.erase(words);
      model[key] = FlatIndex::kNone;
    }
  }
  CHECK_EQ(index.size(),
           model.size() - static_cast<std::size_t>(std::ranges::count(model, FlatIndex::kNone)));
}

TEST(a_table_refuses_what_does_not_fit_and_says_how) {
  Table table(image({{MatchKind::kExact, 2}}, 2));
  const TableEntry entry{{1, 2}, {255, 255}, 0, 1, data_of(1)};
  table.insert(entry);
  CHECK(code_of([&] { table.insert(entry); }) == Code::kAlreadyExists);
  CHECK(code_of([&] { table.erase({{9, 9}, {255, 255}, 0, 0, {}}); }) == Code::kNotFound);
  CHECK(code_of([&] { table.modify({{9, 9}, {255, 255}, 0, 1, data_of(1)}); }) == Code::kNotFound);
  CHECK(code_of([&] { table.insert({{1}, {255}, 0, 1, data_of(1)}); }) == Code::kInvalidArgument);
  CHECK(code_of([&] { table.insert({{3, 3}, {255, 255}, 0, 2, {}}); }) == Code::kInvalidArgument);
  CHECK(code_of([&] { table.insert({{3, 3}, {255, 255}, 0, 1, {}}); }) == Code::kInvalidArgument);
  table.insert({{3, 3}, {255, 255}, 0, 1, data_of(2)});
  CHECK(code_of([&] { table.insert({{4, 4}, {255, 255}, 0, 1, data_of(3)}); }) ==
        Code::kResourceExhausted);
  table.erase(entry);
  table.insert({{4, 4}, {255, 255}, 0, 1, data_of(3)});
  CHECK_EQ(table.entries().size(), 2U);
}

TEST(a_table_without_a_key_has_only_its_default_action) {
  Table table(image({}));
  CHECK(code_of([&] { table.insert({{}, {}, 0, 1, data_of(1)}); }) == Code::kInvalidArgument);
  table.set_default({1, data_of(9)});
  const std::uint8_t nothing = 0;
  CHECK_EQ(table.lookup(&nothing)->action, 1U);
}

TEST(what_the_program_declares_const_cannot_be_changed) {
  TableImage fixed = image({{MatchKind::kExact, 1}});
  fixed.entries = {{{5}, {255}, 0, 1, data_of(77)}};
  fixed.const_entries = true;
  fixed.const_default = true;
  Table table(fixed);
  const std::uint8_t key = 5;
  CHECK(number_of(table.lookup(&key)) == 77U);
  CHECK(code_of([&] { table.insert({{6}, {255}, 0, 1, data_of(1)}); }) == Code::kPermissionDenied);
  CHECK(code_of([&] { table.erase({{5}, {255}, 0, 0, {}}); }) == Code::kPermissionDenied);
  CHECK(code_of([&] { table.set_default({1, data_of(1)}); }) == Code::kPermissionDenied);
}

TEST(modifying_an_entry_keeps_its_counter) {
  Table table(image({{MatchKind::kExact, 1}}));
  table.insert({{5}, {255}, 0, 1, data_of(1)});
  const std::uint8_t key = 5;
  table.lookup(&key)->counter[0] = 41;
  table.lookup(&key)->counter[1] = 4100;
  table.modify({{5}, {255}, 0, 1, data_of(2)});
  CHECK(number_of(table.lookup(&key)) == 2U);
  CHECK_EQ(table.counts({{5}, {255}, 0, 0, {}}).packets, 41U);
  CHECK_EQ(table.counts({{5}, {255}, 0, 0, {}}).bytes, 4100U);
}

TEST(the_default_action_can_be_set_and_reset) {
  Table table(image({{MatchKind::kExact, 1}}));
  const std::uint8_t key = 1;
  CHECK_EQ(table.lookup(&key)->action, 0U);
  table.set_default({1, data_of(9)});
  CHECK_EQ(table.lookup(&key)->action, 1U);
  CHECK_EQ(table.lookup(&key)->hit, 0U);
  table.reset_default();
  CHECK_EQ(table.lookup(&key)->action, 0U);
}
