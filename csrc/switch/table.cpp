#include "switch/table.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "switch/status.hpp"

namespace p4emu {
namespace {

// 64-bit words of an action block: header, data, then the direct counter's two words.
std::size_t data_words(std::size_t data_bytes) { return (data_bytes + 7) / 8; }

}  // namespace

Table::Table(TableImage image) : image_(std::move(image)) {
  for (const KeyFieldImage& field : image_.key) {
    key_bytes_ += field.bytes;
    exact_ = exact_ && field.kind == MatchKind::kExact;
    has_lpm_ = has_lpm_ || field.kind == MatchKind::kLpm;
    has_ranges_ = has_ranges_ || field.kind == MatchKind::kRange;
  }
  for (const KeyFieldImage& field : image_.key) {
    // With ternary or range fields beside it, an LPM field is one mask among others and the
    // control plane's priority decides.
    if (field.kind == MatchKind::kTernary || field.kind == MatchKind::kRange ||
        field.kind == MatchKind::kOptional) {
      has_lpm_ = false;
    }
  }
  key_words_ = data_words(key_bytes_);
  scratch_.resize(2 * key_words_);
  // The program's own entries may be more than the size it asks for.
  for (const TableEntry& entry : image_.entries) add(entry, image_.entries.size());
  reset_default();
}

const ActionEntry* Table::lookup(const std::uint8_t* key) const {
  const auto* otherwise = reinterpret_cast<const ActionEntry*>(default_.get());
  if (groups_.empty()) return otherwise;
  std::uint64_t* words = scratch_.data();
  // The bytes behind the key in its last word are zero and stay so.
  std::memcpy(words, key, key_bytes_);
  if (exact_) {
    const std::uint32_t number = groups_.front()->index.find(words);
    return number != FlatIndex::kNone ? rules_[number].action : otherwise;
  }
  std::uint64_t* masked = words + key_words_;
  const Rule* winner = nullptr;
  for (const std::unique_ptr<Group>& group : groups_) {
    if (winner != nullptr && winner->priority >= group->best) break;
    for (std::size_t i = 0; i < key_words_; ++i) masked[i] = words[i] & group->mask[i];
    for (std::uint32_t number = group->index.find(masked); number != FlatIndex::kNone;
         number = rules_[number].next) {
      const Rule& candidate = rules_[number];
      if (winner != nullptr && winner->priority >= candidate.priority) break;
      if (has_ranges_ && !in_ranges(stored_[number].entry, key)) continue;
      winner = &candidate;
      break;
    }
  }
  return winner != nullptr ? winner->action : otherwise;
}

void Table::insert(const TableEntry& entry) {
  check_entries_may_change();
  add(entry, image_.size);
}

void Table::add(const TableEntry& raw, std::size_t limit) {
  TableEntry entry = normalised(raw);
  check_action(entry.action, entry.data.size());
  if (find(entry)) {
    throw SwitchError(Code::kAlreadyExists,
                      "table " + image_.name + " already has an entry with this key and priority");
  }
  if (stored_.size() - free_.size() >= limit) {
    throw SwitchError(Code::kResourceExhausted, "table " + image_.name + " is full: its size is " +
                                                    std::to_string(image_.size) + " entries");
  }
  std::uint32_t number;
  if (free_.empty()) {
    number = static_cast<std::uint32_t>(stored_.size());
    stored_.emplace_back();
    rules_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  Stored& stored = stored_[number];
  stored.memory = make_action(entry.action, entry.data, true, {});
  stored.entry = std::move(entry);
  link(number);
}

void Table::modify(const TableEntry& raw) {
  check_entries_may_change();
  TableEntry entry = normalised(raw);
  check_action(entry.action, entry.data.size());
  const std::uint32_t number = found(entry);
  Stored& stored = stored_[number];
  CounterCell counts;
  if (image_.counts) counts = this->counts(entry);
  stored.memory = make_action(entry.action, entry.data, true, counts);
  rules_[number].action = stored.action();
  stored.entry.action = entry.action;
  stored.entry.data = std::move(entry.data);
}

void Table::erase(const TableEntry& key) {
  check_entries_may_change();
  const std::uint32_t number = found(normalised(key));
  unlink(number);
  stored_[number] = {};
  rules_[number] = {};
  free_.push_back(number);
}

void Table::set_default(const DefaultAction& action) {
  if (image_.const_default) {
    throw SwitchError(Code::kPermissionDenied,
                      "the default action of table " + image_.name + " is const");
  }
  check_action(action.action, action.data.size());
  default_ = make_action(action.action, action.data, false, {});
  default_action_ = action;
}

void Table::reset_default() {
  default_ = make_action(image_.initial.action, image_.initial.data, false, {});
  default_action_ = image_.initial;
}

std::vector<TableEntry> Table::entries() const {
  std::vector<TableEntry> all;
  for (const Stored& stored : stored_) {
    if (stored.memory != nullptr) all.push_back(stored.entry);
  }
  return all;
}

DefaultAction Table::default_action() const { return default_action_; }

CounterCell Table::counts(const TableEntry& key) const {
  const std::uint64_t* cell = counter_of(stored_[found(normalised(key))]);
  return {cell[0], cell[1]};
}

void Table::set_counts(const TableEntry& key, CounterCell cell) {
  std::uint64_t* target = counter_of(stored_[found(normalised(key))]);
  target[0] = cell.packets;
  target[1] = cell.bytes;
}

CounterCell Table::default_counts() const {
  const auto* action = reinterpret_cast<const ActionEntry*>(default_.get());
  if (action->counter == nullptr) {
    throw SwitchError(Code::kFailedPrecondition, "table " + image_.name + " has no direct counter");
  }
  return {action->counter[0], action->counter[1]};
}

std::uint64_t* Table::counter_of(const Stored& stored) const {
  if (!image_.counts) {
    throw SwitchError(Code::kFailedPrecondition, "table " + image_.name + " has no direct counter");
  }
  return stored.action()->counter;
}

TableEntry Table::normalised(TableEntry entry) const {
  if (image_.key.empty()) {
    throw SwitchError(Code::kInvalidArgument, "table " + image_.name +
                                                  " has no key, so it has no entries; set its "
                                                  "default action instead");
  }
  if (entry.value.size() != key_bytes_ || entry.mask.size() != key_bytes_) {
    throw SwitchError(Code::kInvalidArgument,
                      "the key of table " + image_.name + " has " + std::to_string(key_bytes_) +
                          " bytes; got " + std::to_string(entry.value.size()) + " and a mask of " +
                          std::to_string(entry.mask.size()));
  }
  std::size_t at = 0;
  std::int32_t prefix_bits = 0;
  for (const KeyFieldImage& field : image_.key) {
    for (std::size_t i = at; i < at + field.bytes; ++i) {
      if (field.kind == MatchKind::kExact) entry.mask[i] = 0xff;
      if (field.kind == MatchKind::kLpm) prefix_bits += std::popcount(entry.mask[i]);
      if (field.kind != MatchKind::kRange) entry.value[i] &= entry.mask[i];
    }
    at += field.bytes;
  }
  if (exact_) entry.priority = 0;
  if (has_lpm_) entry.priority = prefix_bits;
  return entry;
}

void Table::check_action(std::uint32_t action, std::size_t data_bytes) const {
  if (action >= image_.action_data_bytes.size() || data_bytes != image_.action_data_bytes[action]) {
    throw SwitchError(Code::kInvalidArgument,
                      "table " + image_.name + ": action number " + std::to_string(action) +
                          " with " + std::to_string(data_bytes) + " bytes of data does not fit");
  }
}

void Table::check_entries_may_change() const {
  if (image_.const_entries) {
    throw SwitchError(Code::kPermissionDenied,
                      "the entries of table " + image_.name + " are const");
  }
}

std::unique_ptr<std::uint64_t[]> Table::make_action(std::uint32_t action,
                                                    const std::vector<std::uint8_t>& data, bool hit,
                                                    CounterCell counts) const {
  constexpr std::size_t kHeaderWords = kActionDataOffset / 8;
  const std::size_t words = kHeaderWords + data_words(data.size());
  auto memory = std::make_unique<std::uint64_t[]>(words + 2);
  std::uint64_t* counter = image_.counts ? memory.get() + words : nullptr;
  memory[words] = counts.packets;
  memory[words + 1] = counts.bytes;
  ActionEntry header{action, hit ? 1U : 0U, counter, {0}};
  std::memcpy(memory.get(), &header, kActionDataOffset);
  if (!data.empty()) std::memcpy(memory.get() + kHeaderWords, data.data(), data.size());
  return memory;
}

Table::Words Table::words_of(const std::vector<std::uint8_t>& bytes) const {
  Words words(key_words_);
  std::memcpy(words.data(), bytes.data(), key_bytes_);
  return words;
}

Table::Words Table::group_mask(const TableEntry& entry) const {
  std::vector<std::uint8_t> mask = entry.mask;
  std::size_t at = 0;
  for (const KeyFieldImage& field : image_.key) {
    if (field.kind == MatchKind::kRange) std::fill_n(mask.begin() + at, field.bytes, 0);
    at += field.bytes;
  }
  return words_of(mask);
}

Table::Words Table::group_key(const TableEntry& entry, const Words& mask) const {
  Words key = words_of(entry.value);
  for (std::size_t i = 0; i < key_words_; ++i) key[i] &= mask[i];
  return key;
}

bool Table::in_ranges(const TableEntry& entry, const std::uint8_t* key) const {
  std::size_t at = 0;
  for (const KeyFieldImage& field : image_.key) {
    // Big-endian, so the order of bytes is the order of numbers.
    if (field.kind == MatchKind::kRange &&
        (std::memcmp(key + at, entry.value.data() + at, field.bytes) < 0 ||
         std::memcmp(key + at, entry.mask.data() + at, field.bytes) > 0)) {
      return false;
    }
    at += field.bytes;
  }
  return true;
}

std::optional<std::uint32_t> Table::find(const TableEntry& entry) const {
  const Words mask = group_mask(entry);
  for (const std::unique_ptr<Group>& group : groups_) {
    if (group->mask != mask) continue;
    for (std::uint32_t number = group->index.find(group_key(entry, mask).data());
         number != FlatIndex::kNone; number = rules_[number].next) {
      const TableEntry& other = stored_[number].entry;
      if (other.priority == entry.priority && other.value == entry.value &&
          other.mask == entry.mask) {
        return number;
      }
    }
  }
  return std::nullopt;
}

std::uint32_t Table::found(const TableEntry& entry) const {
  const std::optional<std::uint32_t> number = find(entry);
  if (!number) {
    throw SwitchError(Code::kNotFound,
                      "table " + image_.name + " has no entry with this key and priority");
  }
  return *number;
}

void Table::link(std::uint32_t number) {
  const Stored& stored = stored_[number];
  const std::int32_t priority = stored.entry.priority;
  const Words mask = group_mask(stored.entry);
  auto at = std::find_if(groups_.begin(), groups_.end(),
                         [&](const std::unique_ptr<Group>& g) { return g->mask == mask; });
  if (at == groups_.end()) {
    groups_.push_back(std::make_unique<Group>(Group{mask, FlatIndex(key_words_), priority, {}}));
    at = groups_.end() - 1;
  }
  Group& group = **at;
  const Words key = group_key(stored.entry, mask);
  // The chain is kept in descending priority; equal priorities in order of insertion.
  std::uint32_t first = group.index.find(key.data());
  std::uint32_t before = FlatIndex::kNone;
  std::uint32_t after = first;
  while (after != FlatIndex::kNone && rules_[after].priority >= priority) {
    before = after;
    after = rules_[after].next;
  }
  rules_[number] = {stored.action(), priority, after};
  if (before == FlatIndex::kNone) {
    group.index.assign(key.data(), number);
  } else {
    rules_[before].next = number;
  }
  ++group.priorities[priority];
  sort_groups();
}

void Table::unlink(std::uint32_t number) {
  const TableEntry& entry = stored_[number].entry;
  const Words mask = group_mask(entry);
  const auto at = std::find_if(groups_.begin(), groups_.end(),
                               [&](const std::unique_ptr<Group>& g) { return g->mask == mask; });
  Group& group = **at;
  const Words key = group_key(entry, mask);
  std::uint32_t current = group.index.find(key.data());
  const std::uint32_t next = rules_[number].next;
  if (current == number) {
    if (next == FlatIndex::kNone) {
      group.index.erase(key.data());
    } else {
      group.index.assign(key.data(), next);
    }
  } else {
    while (rules_[current].next != number) current = rules_[current].next;
    rules_[current].next = next;
  }
  if (--group.priorities[entry.priority] == 0) group.priorities.erase(entry.priority);
  if (group.priorities.empty()) {
    groups_.erase(at);
  } else {
    sort_groups();
  }
}

void Table::sort_groups() {
  bool sorted = true;
  std::int32_t last = INT32_MAX;
  for (const std::unique_ptr<Group>& group : groups_) {
    group->best = group->priorities.rbegin()->first;
    sorted = sorted && group->best <= last;
    last = group->best;
  }
  if (sorted) return;
  std::stable_sort(groups_.begin(), groups_.end(),
                   [](const auto& a, const auto& b) { return a->best > b->best; });
}

}  // namespace p4emu

const p4emu::ActionEntry* p4emu_table_lookup(void* table, const std::uint8_t* key) {
  return static_cast<const p4emu::Table*>(table)->lookup(key);
}
