// The contract between JIT-compiled P4 (emulator/p4emu/jit) and the run time in this folder.
//
// This file is the whole of it: the two functions a compiled program exports, the structures both
// sides touch, and the calls the program makes back. Nothing here knows of sockets, threads or
// Python. The Python code generator mirrors these layouts (jit/abi.py); a test has the compiler
// compare the two, and a switch refuses programs of another `kAbiVersion`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace p4emu {

inline constexpr std::uint32_t kAbiVersion = 1;

// Errors a parser raises, as indices in the program's error list (core.p4's order, then the
// program's own). 0 is NoError.

// One packet on its way through the program. The run time fills `data` and `length`; ingress fills
// the rest. `payload` is where the unparsed remainder begins, in bytes from `data`.
struct Packet {
  const std::uint8_t* data;
  std::uint32_t length;
  std::uint32_t payload;
};

// What a table lookup returns, and what follows it in memory: the action's parameters, each at the
// offset given by `action_data_layout`: in order, each aligned to its own storage size (8 at most),
// the first at byte 0 of `data`. Storage sizes are 1, 2, 4, 8 bytes up to 64 bits, then multiples
// of 8; little-endian.
struct ActionEntry {
  std::uint32_t action;  // index in the table's action list
  std::uint32_t hit;     // 1 for an entry, 0 for the default action
  // Direct counter of this entry, or null: {packets, bytes}.
  std::uint64_t* counter;
  std::uint8_t data[1];
};
inline constexpr std::size_t kActionDataOffset = 16;

// Everything stateful a program uses, in the order the program image lists it. Opaque to the JIT
// except for `registers` and `counters`, which it addresses directly.
struct State {
  void* const* tables;  // arguments of `p4emu_table_lookup`
  // One base pointer a register group, 64-byte aligned. A group is `length` rows (one an index,
  // all members side by side) and one more, the scratch row: accesses out of range go there, so
  // that compiled code needs no branch for them. Its contents are never seen.
  std::uint8_t* const* registers;
  std::uint64_t* const* counters;  // {packets, bytes} pairs, one a cell
};

// Compiled program, first half: parser, checksum verification, ingress control. `vars` is the
// packet's variable block (`vars_size` bytes, 64-byte aligned for speed, zeroed by the run time
// except standard metadata it fills). Sets packet->payload. No two of the pointers a function gets
// may overlap.
using IngressFunction = void (*)(std::uint8_t* vars, const State* state, Packet* packet);

// Second half, once for each replica: egress control, checksum update, deparser. Writes the emitted
// headers to `out` (room for `max_header_bytes`) and returns their length in bytes; the run time
// appends the payload. The run time reads egress_spec afterwards to see a drop in egress.
using EgressFunction = std::uint32_t (*)(std::uint8_t* vars, const State* state,
                                         const Packet* packet, std::uint8_t* out);

}  // namespace p4emu

extern "C" {

// The entry that matches `key`, or the default entry; never null. `key` holds the key fields in
// order, each big-endian, zero-extended to whole bytes, without padding between them.
const p4emu::ActionEntry* p4emu_table_lookup(void* table, const std::uint8_t* key);

// CRC-16/ARC and CRC-32 over bytes; ones-complement sums are compiled inline.
std::uint16_t p4emu_crc16(const std::uint8_t* data, std::uint64_t length);
std::uint32_t p4emu_crc32(const std::uint8_t* data, std::uint64_t length);
}
