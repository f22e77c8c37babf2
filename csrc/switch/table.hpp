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
  // An ActionEntry with its data and counter behind it, in one allocation.
  struct Stored {
    TableEntry entry;
    std::unique_ptr<std::uint64_t[]> memory;
    std::uint32_t next = FlatIndex::kNone;  // the next entry with the same masked key, by priority
    [[nodiscard]] const ActionEntry* action() const {
      return reinterpret_cast<const ActionEntry*>(memory.get());
    }
  };
  struct Group {
    std::vector<std::uint8_t> mask;
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
  [[nodiscard]] std::vector<std::uint8_t> group_mask(const TableEntry& entry) const;
  [[nodiscard]] std::vector<std::uint8_t> masked(const std::vector<std::uint8_t>& value,
                                                 const std::vector<std::uint8_t>& mask) const;
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
  bool exact_ = true;     // every field is exact: one group, no masking
  bool has_lpm_ = false;  // the prefix length is the priority
  bool has_ranges_ = false;
  std::vector<Stored> stored_;
  std::vector<std::uint32_t> free_;
  std::vector<std::unique_ptr<Group>> groups_;  // by best priority, descending
  std::unique_ptr<std::uint64_t[]> default_;
  DefaultAction default_action_;
  mutable std::vector<std::uint8_t> scratch_;  // a masked key during a lookup
};

}  // namespace p4emu
