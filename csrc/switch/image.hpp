// What the run time is told about a compiled program: addresses, sizes and offsets, no names but
// those of tables (for messages). Mirrors emulator/p4emu/jit/image.py. Main type: ProgramImage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "switch/abi.hpp"

namespace p4emu {

enum class MatchKind : std::uint8_t { kExact, kLpm, kTernary, kRange, kOptional };

// A key field of a table: `bytes` big-endian bytes of the lookup key.
struct KeyFieldImage {
  MatchKind kind = MatchKind::kExact;
  std::uint32_t bytes = 0;
};

// An entry as the control plane sees it. `value` and `mask` are key-sized; a range field has its
// low bound in `value` and its high bound in `mask`. A larger priority wins.
struct TableEntry {
  std::vector<std::uint8_t> value;
  std::vector<std::uint8_t> mask;
  std::int32_t priority = 0;
  std::uint32_t action = 0;
  std::vector<std::uint8_t> data;
};

// An action call without a key: what a table does on a miss.
struct DefaultAction {
  std::uint32_t action = 0;
  std::vector<std::uint8_t> data;
};

struct TableImage {
  std::string name;
  std::vector<KeyFieldImage> key;
  std::vector<std::uint32_t> action_data_bytes;  // one for each action
  DefaultAction initial;
  std::vector<TableEntry> entries;  // const entries
  std::uint32_t size = 0;
  bool counts = false;         // entries have direct counters
  bool const_default = false;  // the default action cannot be changed
  bool const_entries = false;  // entries cannot be changed
};

struct RegisterGroupImage {
  std::uint32_t row_bytes = 0;
  std::uint32_t length = 0;  // rows, without the scratch row
};

// A field of standard_metadata in the variable block; `bytes` is 0 when the program has none.
struct FieldImage {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

struct StandardMetadataImage {
  FieldImage ingress_port;
  FieldImage egress_spec;
  FieldImage egress_port;
  FieldImage instance_type;
  FieldImage packet_length;
  FieldImage enq_timestamp;
  FieldImage ingress_global_timestamp;
  FieldImage egress_global_timestamp;
  FieldImage mcast_grp;
  FieldImage egress_rid;
};

struct ProgramImage {
  IngressFunction ingress = nullptr;
  EgressFunction egress = nullptr;
  std::uint32_t vars_size = 0;
  std::uint32_t max_header_bytes = 0;
  StandardMetadataImage standard;
  std::vector<TableImage> tables;
  std::vector<RegisterGroupImage> registers;
  std::vector<std::uint32_t> counters;  // cells of each counter array; 0 for direct ones
};

}  // namespace p4emu
