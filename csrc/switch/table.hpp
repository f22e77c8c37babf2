// One match-action table: its entries, and the lookup the packet path makes. It knows keys and
// action data as bytes only; names and types are the control plane's business. Not thread-safe: the
// switch holds its lock around every call. Main type: Table.
//
// Theory of operation. Entries with the same mask form a *group*, and a group is a hash index from
// masked keys to entries (tuple space search; Srinivasan, Suri, Varghese, SIGCOMM 1999). A lookup
// tries the groups in descending order of their best priority and stops as soon as no later group
// can win. An exact table has one group; an LPM table has one for each prefix length in use, the
// length being the priority. Fields matched by range have an empty mask; their bounds are checked
// along the chain of entries with the same masked key.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "switch/abi.hpp"
#include "switch/flat_index.hpp"
#include "switch/image.hpp"

namespace p4emu {

// Packets and bytes counted.
struct CounterCell {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
};

class Table {
 public:
  explicit Table(TableImage image);

  // The entry that matches, else the default action; never null. Valid until the next change.
  [[nodiscard]] const ActionEntry* lookup(const std::uint8_t* key) const;

  // These throw SwitchError: a malformed entry (kInvalidArgument), one that exists
  // (kAlreadyExists) or does not (kNotFound), a full table (kResourceExhausted), one whose
  // entries or default the program declares const (kPermissionDenied).
  void insert(const TableEntry& entry);
  void modify(const TableEntry& entry);
  void erase(const TableEntry& key);
  void set_default(const DefaultAction& action);
  void reset_default();

  [[nodiscard]] std::vector<TableEntry> entries() const;
  [[nodiscard]] DefaultAction default_action() const;
  // Counts of an entry with a direct counter; throws SwitchError when there is none.
  [[nodiscard]] CounterCell counts(const TableEntry& key) const;
  void set_counts(const TableEntry& key, CounterCell cell);
  [[nodiscard]] CounterCell default_counts() const;
  [[nodiscard]] const TableImage& image() const { return image_; }

 private:
  // Keys in 64-bit words: bytes in order, padded with zeroes.
  using Words = std::vector<std::uint64_t>;

  // What the control plane knows of an entry, and its ActionEntry with data and counter behind it,
  // in one allocation.
  struct Stored {
    TableEntry entry;
    std::unique_ptr<std::uint64_t[]> memory;
    [[nodiscard]] const ActionEntry* action() const {
      return reinterpret_cast<const ActionEntry*>(memory.get());
    }
  };
  // What a lookup needs of an entry, apart from the rest to stay in the cache.
  struct Rule {
    const ActionEntry* action = nullptr;
    std::int32_t priority = 0;
    std::uint32_t next = FlatIndex::kNone;  // the next with the same masked key, by priority
  };
  struct Group {
    Words mask;
    FlatIndex index;  // masked key -> first entry of its chain
    std::int32_t best;
    std::map<std::int32_t, std::uint32_t> priorities;  // priority -> entries that have it
  };

  [[nodiscard]] TableEntry normalised(TableEntry entry) const;
  void check_action(std::uint32_t action, std::size_t data_bytes) const;
  void check_entries_may_change() const;
  [[nodiscard]] std::unique_ptr<std::uint64_t[]> make_action(std::uint32_t action,
                                                             const std::vector<std::uint8_t>& data,
                                                             bool hit, CounterCell counts) const;
  [[nodiscard]] Words words_of(const std::vector<std::uint8_t>& bytes) const;
  [[nodiscard]] Words group_mask(const TableEntry& entry) const;
  // The entry's key as its group's index has it.
  [[nodiscard]] Words group_key(const TableEntry& entry, const Words& mask) const;
  [[nodiscard]] bool in_ranges(const TableEntry& entry, const std::uint8_t* key) const;
  [[nodiscard]] std::optional<std::uint32_t> find(const TableEntry& entry) const;
  [[nodiscard]] std::uint32_t found(const TableEntry& entry) const;
  void link(std::uint32_t number);
  void unlink(std::uint32_t number);
  void sort_groups();
  void add(const TableEntry& entry, std::size_t limit);
  [[nodiscard]] std::uint64_t* counter_of(const Stored& stored) const;

  TableImage image_;
  std::size_t key_bytes_ = 0;
  std::size_t key_words_ = 0;
  bool exact_ = true;     // every field is exact: one group, no masking
  bool has_lpm_ = false;  // the prefix length is the priority
  bool has_ranges_ = false;
  std::vector<Stored> stored_;
  std::vector<Rule> rules_;  // beside stored_
  std::vector<std::uint32_t> free_;
  std::vector<std::unique_ptr<Group>> groups_;  // by best priority, descending
  std::unique_ptr<std::uint64_t[]> default_;
  DefaultAction default_action_;
  // Of a lookup: the key, and behind it the key masked.
  mutable Words scratch_;
};

}  // namespace p4emu
