// A compiled program with its state: tables, registers, counters and multicast groups, and the
// packet replication engine between its two halves. It decides nothing a program decides; it knows
// standard_metadata and nothing else of a packet. Not thread-safe: the switch serialises.
// Main type: Pipeline.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "switch/abi.hpp"
#include "switch/frame_sink.hpp"
#include "switch/image.hpp"
#include "switch/port_io.hpp"
#include "switch/table.hpp"

namespace p4emu {

// v1model's convention, as BMv2 has it: a packet with this egress_spec is dropped.
inline constexpr std::uint64_t kDropPort = 511;

// One copy of a multicast packet.
struct Replica {
  std::uint16_t port = 0;
  std::uint16_t instance = 0;
};

struct PipelineCounts {
  std::uint64_t processed = 0;      // frames that came in
  std::uint64_t sent = 0;           // frames that went out, copies counted
  std::uint64_t dropped = 0;        // frames of which no copy went out: by the program's choice, or
  std::uint64_t oversized = 0;      // longer than kMaxFrameBytes, in or (each copy) out
  std::uint64_t unknown_group = 0;  // multicast to a group that is not set
};

class Pipeline {
 public:
  explicit Pipeline(ProgramImage image);
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Runs one frame through the program. `microseconds` is the time since the switch began.
  void process(std::uint16_t port, std::span<const std::uint8_t> frame, std::uint64_t microseconds,
               FrameSink& sink);

  // All of these throw SwitchError (kNotFound, kOutOfRange) for what does not exist.
  [[nodiscard]] Table& table(std::uint32_t number);
  // `element` is an offset in a row; bytes are little-endian.
  void read_register(std::uint32_t group, std::uint32_t element, std::uint64_t index,
                     std::span<std::uint8_t> value) const;
  void write_register(std::uint32_t group, std::uint32_t element, std::uint64_t index,
                      std::span<const std::uint8_t> value);
  [[nodiscard]] CounterCell read_counter(std::uint32_t counter, std::uint64_t index) const;
  void write_counter(std::uint32_t counter, std::uint64_t index, CounterCell cell);
  void set_group(std::uint16_t group, std::vector<Replica> replicas);
  void delete_group(std::uint16_t group);
  [[nodiscard]] const std::unordered_map<std::uint16_t, std::vector<Replica>>& groups() const {
    return groups_;
  }
  [[nodiscard]] const PipelineCounts& counts() const { return counts_; }

 private:
  struct AlignedDelete {
    void operator()(std::uint8_t* memory) const;
  };
  using AlignedBytes = std::unique_ptr<std::uint8_t[], AlignedDelete>;
  static AlignedBytes aligned_zeroes(std::size_t bytes);

  // Egress for one copy; false if the program drops it.
  bool egress(std::uint8_t* vars, const Packet& packet, std::uint16_t port, std::uint16_t instance,
              std::uint64_t instance_type, std::uint64_t microseconds, FrameSink& sink);
  void check_register(std::uint32_t group, std::uint32_t element, std::uint64_t index,
                      std::size_t bytes) const;
  void check_counter(std::uint32_t counter, std::uint64_t index) const;

  ProgramImage image_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::vector<AlignedBytes> registers_;
  std::vector<std::vector<std::uint64_t>> counters_;
  std::unordered_map<std::uint16_t, std::vector<Replica>> groups_;
  PipelineCounts counts_;

  // What compiled code sees, built once: arrays of pointers into the above.
  std::vector<void*> table_pointers_;
  std::vector<std::uint8_t*> register_pointers_;
  std::vector<std::uint64_t*> counter_pointers_;
  State state_{};

  AlignedBytes vars_;
  AlignedBytes replica_vars_;
  std::vector<std::uint8_t> out_;
};

}  // namespace p4emu
