// A switch for tests of the engine: the table of docs/protocol.md, section 3, written down for one
// job in plain C++. It has no ports, no time and no tables that can be configured, and it is not
// part of any library; what the P4 program does is tested with the P4 program.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/config.hpp"
#include "wire/frame.hpp"

namespace pycollective::test {

using Bytes = std::vector<std::uint8_t>;

class SlotSwitch {
 public:
  struct Counters {
    std::uint64_t packets = 0;
    std::uint64_t duplicates = 0;
    std::uint64_t stale = 0;
    std::uint64_t rejected = 0;
    std::uint64_t completions = 0;
    std::uint64_t malformed = 0;
  };
  // Takes a frame for a rank.
  using Output = std::function<void(std::uint16_t rank, Bytes frame)>;

  // `job` is the configuration that the ranks have, or should have.
  explicit SlotSwitch(const JobConfig& job) : job_(job), rows_(2 * std::size_t{job.slots}) {
    for (Row& row : rows_) row.lanes.resize(job.lanes);
  }

  // A frame comes in from the port of this rank.
  void process(std::uint16_t port, std::span<const std::uint8_t> bytes, const Output& output) {
    wire::Frame frame;
    if (wire::parse_frame(bytes, frame) != wire::FrameError::kNone ||
        (!frame.lanes.empty() && frame.lanes.size() != lane_bytes())) {
      ++counters.malformed;
      return;
    }
    const wire::InaHeader& header = frame.header;
    if (header.opcode != wire::Opcode::kContribute && header.opcode != wire::Opcode::kProbe) {
      ++counters.malformed;
    } else if (header.job != job_.job || header.rank != port || port >= job_.world_size) {
      ++counters.rejected;
    } else if (header.epoch != job_.epoch) {
      refuse(frame, wire::NackReason::kEpoch, output);
    } else if (header.slot >= job_.slots) {
      refuse(frame, wire::NackReason::kSlot, output);
    } else if (header.opcode == wire::Opcode::kProbe) {
      wire::InaHeader reply = answer(header, wire::Opcode::kProbeReply);
      reply.lane_count = job_.lanes;
      send(header.rank, reply, {}, output);
    } else {
      contribute(frame, output);
    }
  }

  // The job begins anew: its slots' contents are no longer current.
  void set_epoch(std::uint16_t epoch) { job_.epoch = epoch; }
  // The job's slice of the pool becomes smaller.
  void set_slots(std::uint16_t slots) { job_.slots = slots; }
  // The ranks whose part of the current use of this slot version is in.
  [[nodiscard]] std::uint32_t bitmap(std::uint16_t slot, std::uint8_t version) const {
    return rows_[2 * std::size_t{slot} + version].bitmap;
  }

  Counters counters;

 private:
  struct Row {
    std::uint16_t epoch = 0;
    std::uint32_t sequence = 0;
    std::uint32_t chunk = 0;
    std::uint32_t bitmap = 0;
    std::int8_t exponent = 0;
    std::uint32_t fingerprint = 0;
    std::uint8_t flags = 0;
    std::vector<std::uint32_t> lanes;
  };

  [[nodiscard]] std::size_t lane_bytes() const { return wire::kLaneBytes * job_.lanes; }

  [[nodiscard]] wire::InaHeader answer(wire::InaHeader header, wire::Opcode opcode) const {
    header.opcode = opcode;
    header.epoch = job_.epoch;
    header.flags = 0;
    return header;
  }

  void refuse(const wire::Frame& frame, wire::NackReason reason, const Output& output) {
    wire::InaHeader header = answer(frame.header, wire::Opcode::kNack);
    header.fingerprint = static_cast<std::uint32_t>(reason);
    send(header.rank, header, {}, output);
  }

  void contribute(const wire::Frame& frame, const Output& output) {
    const wire::InaHeader& header = frame.header;
    Row& row = rows_[2 * std::size_t{header.slot} + header.slot_version];
    const std::uint32_t members =
        static_cast<std::uint32_t>((std::uint64_t{1} << job_.world_size) - 1);
    const std::uint32_t bit = std::uint32_t{1} << header.rank;

    const bool reset = row.epoch != job_.epoch;
    const bool later = reset || wire::serial_before(row.sequence, header.sequence);
    const bool current = !reset && row.sequence == header.sequence;
    const bool newer = later || (current && header.chunk > row.chunk);
    const bool same = current && header.chunk == row.chunk;
    if (!newer && !same) {
      ++counters.stale;
      return;
    }
    if (same && (row.bitmap & bit) != 0) {
      ++counters.duplicates;
      if (row.bitmap == members) {
        wire::InaHeader reply = result(row, header);
        reply.flags |= wire::flag::kRetransmit;
        send(header.rank, reply, row.lanes, output);
      } else {
        wire::InaHeader reply = answer(header, wire::Opcode::kStatus);
        reply.fingerprint = row.bitmap;
        send(header.rank, reply, {}, output);
      }
      return;
    }
    ++counters.packets;
    if (newer) {
      row.epoch = job_.epoch;
      row.sequence = header.sequence;
      row.chunk = header.chunk;
      row.bitmap = 0;
      row.exponent = header.exponent;
      row.fingerprint = header.fingerprint;
      row.flags = 0;
    }
    add(row, frame, newer);
    row.bitmap |= bit;
    row.exponent = std::max(row.exponent, header.exponent);
    row.flags |= header.flags & wire::flag::kSpecial;
    if (row.fingerprint != header.fingerprint) row.flags |= wire::flag::kMismatch;
    if (row.bitmap != members) return;
    ++counters.completions;
    wire::InaHeader reply = result(row, header);
    for (std::uint16_t rank = 0; rank < job_.world_size; ++rank) {
      reply.rank = rank;
      send(rank, reply, row.lanes, output);
    }
  }

  void add(Row& row, const wire::Frame& frame, bool first) {
    if (frame.lanes.empty()) return;
    const bool store = first || frame.header.reduce_op == wire::ReduceOp::kCopy;
    for (std::size_t i = 0; i < row.lanes.size(); ++i) {
      wire::Big32 value;
      std::copy_n(frame.lanes.begin() + static_cast<std::ptrdiff_t>(4 * i), 4, value.bytes);
      const std::uint32_t left = store ? 0 : row.lanes[i];
      const std::uint32_t right = value.get();
      row.lanes[i] = left + right;
      if (((left ^ row.lanes[i]) & (right ^ row.lanes[i])) >> 31 != 0) {
        row.flags |= wire::flag::kOverflow;
      }
    }
  }

  // The header of a RESULT as an answer to this contribution.
  [[nodiscard]] wire::InaHeader result(const Row& row, const wire::InaHeader& header) const {
    wire::InaHeader reply = answer(header, wire::Opcode::kResult);
    reply.exponent = row.exponent;
    reply.flags = row.flags;
    if ((header.flags & wire::flag::kData) != 0 || header.reduce_op == wire::ReduceOp::kCopy) {
      reply.flags |= wire::flag::kData;
    }
    return reply;
  }

  void send(std::uint16_t rank, const wire::InaHeader& header,
            const std::vector<std::uint32_t>& lanes, const Output& output) {
    const wire::FrameWriter writer({.source_mac = job_.switch_mac,
                                    .destination_mac = job_.mac,
                                    .source_ipv4 = job_.switch_ipv4,
                                    .destination_ipv4 = job_.ipv4 + rank},
                                   job_.lanes);
    Bytes frame(wire::frame_bytes(job_.lanes));
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      wire::Big32 value{};
      value.set(lanes[i]);
      std::copy_n(value.bytes, 4,
                  frame.begin() + static_cast<std::ptrdiff_t>(wire::kLanesOffset + 4 * i));
    }
    frame.resize(writer.finish(header, frame));
    output(rank, std::move(frame));
  }

  JobConfig job_;
  std::vector<Row> rows_;
};

}  // namespace pycollective::test
