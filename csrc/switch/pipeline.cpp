#include "switch/pipeline.hpp"

#include <cstring>
#include <new>
#include <string>

#include "switch/status.hpp"

namespace p4emu {
namespace {

constexpr std::size_t kAlignment = 64;
// BMv2's instance types: PKT_INSTANCE_TYPE_NORMAL and PKT_INSTANCE_TYPE_REPLICATION.
constexpr std::uint64_t kNormal = 0;
constexpr std::uint64_t kReplication = 5;

void put(std::uint8_t* vars, FieldImage field, std::uint64_t value) {
  // Little-endian storage; a field the program does not have has no bytes.
  std::memcpy(vars + field.offset, &value, field.bytes);
}

std::uint64_t get(const std::uint8_t* vars, FieldImage field) {
  std::uint64_t value = 0;
  std::memcpy(&value, vars + field.offset, field.bytes);
  return value;
}

}  // namespace

void Pipeline::AlignedDelete::operator()(std::uint8_t* memory) const {
  ::operator delete[](memory, std::align_val_t{kAlignment});
}

Pipeline::AlignedBytes Pipeline::aligned_zeroes(std::size_t bytes) {
  auto* memory = static_cast<std::uint8_t*>(
      ::operator new[](bytes > 0 ? bytes : 1, std::align_val_t{kAlignment}));
  std::memset(memory, 0, bytes);
  return AlignedBytes(memory);
}

Pipeline::Pipeline(ProgramImage image) : image_(std::move(image)) {
  for (TableImage& table : image_.tables) {
    tables_.push_back(std::make_unique<Table>(std::move(table)));
    table_pointers_.push_back(tables_.back().get());
  }
  for (const RegisterGroupImage& group : image_.registers) {
    registers_.push_back(
        aligned_zeroes(static_cast<std::size_t>(group.row_bytes) * (group.length + 1ULL)));
    register_pointers_.push_back(registers_.back().get());
  }
  for (const std::uint32_t cells : image_.counters) {
    counters_.emplace_back(2ULL * cells);
    counter_pointers_.push_back(counters_.back().data());
  }
  state_ = {table_pointers_.data(), register_pointers_.data(), counter_pointers_.data()};
  vars_ = aligned_zeroes(image_.vars_size);
  replica_vars_ = aligned_zeroes(image_.vars_size);
  out_.resize(image_.max_header_bytes + kMaxFrameBytes);
}

void Pipeline::process(std::uint16_t port, std::span<const std::uint8_t> frame,
                       std::uint64_t microseconds, FrameSink& sink) {
  ++counts_.processed;
  if (frame.size() > kMaxFrameBytes) {
    ++counts_.oversized;
    ++counts_.dropped;
    return;
  }
  std::uint8_t* vars = vars_.get();
  const StandardMetadataImage& standard = image_.standard;
  std::memset(vars, 0, image_.vars_size);
  put(vars, standard.ingress_port, port);
  put(vars, standard.packet_length, frame.size());
  put(vars, standard.instance_type, kNormal);
  put(vars, standard.ingress_global_timestamp, microseconds);

  Packet packet{frame.data(), static_cast<std::uint32_t>(frame.size()), 0};
  image_.ingress(vars, &state_, &packet);

  const std::uint64_t group = get(vars, standard.mcast_grp);
  const std::uint64_t spec = get(vars, standard.egress_spec);
  put(vars, standard.enq_timestamp, microseconds);
  bool sent = false;
  if (group != 0) {
    // Multicast goes before egress_spec, as in BMv2's simple_switch.
    const auto found = groups_.find(static_cast<std::uint16_t>(group));
    if (found == groups_.end()) {
      ++counts_.unknown_group;
    } else {
      const std::vector<Replica>& replicas = found->second;
      for (std::size_t i = 0; i < replicas.size(); ++i) {
        // The last copy may use up the original.
        std::uint8_t* copy = vars;
        if (i + 1 < replicas.size()) {
          copy = replica_vars_.get();
          std::memcpy(copy, vars, image_.vars_size);
        }
        sent |= egress(copy, packet, replicas[i].port, replicas[i].instance, kReplication,
                       microseconds, sink);
      }
    }
  } else if (spec != kDropPort) {
    sent = egress(vars, packet, static_cast<std::uint16_t>(spec), 0, kNormal, microseconds, sink);
  }
  if (!sent) ++counts_.dropped;
}

bool Pipeline::egress(std::uint8_t* vars, const Packet& packet, std::uint16_t port,
                      std::uint16_t instance, std::uint64_t instance_type,
                      std::uint64_t microseconds, FrameSink& sink) {
  const StandardMetadataImage& standard = image_.standard;
  put(vars, standard.egress_port, port);
  put(vars, standard.egress_rid, instance);
  put(vars, standard.instance_type, instance_type);
  put(vars, standard.packet_length, packet.length);
  put(vars, standard.egress_spec, 0);
  put(vars, standard.egress_global_timestamp, microseconds);
  const std::uint32_t header = image_.egress(vars, &state_, &packet, out_.data());
  if (get(vars, standard.egress_spec) == kDropPort) return false;
  const std::size_t payload = packet.length - packet.payload;
  if (header + payload > kMaxFrameBytes) {
    ++counts_.oversized;
    return false;
  }
  if (payload > 0) std::memcpy(out_.data() + header, packet.data + packet.payload, payload);
  ++counts_.sent;
  sink.frame(port, {out_.data(), header + payload});
  return true;
}

Table& Pipeline::table(std::uint32_t number) {
  if (number >= tables_.size()) {
    throw SwitchError(Code::kNotFound, "no table number " + std::to_string(number));
  }
  return *tables_[number];
}

void Pipeline::check_register(std::uint32_t group, std::uint32_t element, std::uint64_t index,
                              std::size_t bytes) const {
  if (group >= registers_.size() || element + bytes > image_.registers[group].row_bytes) {
    throw SwitchError(Code::kNotFound, "no register at this place");
  }
  if (index >= image_.registers[group].length) {
    throw SwitchError(Code::kOutOfRange, "register index " + std::to_string(index) +
                                             " is not below its size of " +
                                             std::to_string(image_.registers[group].length));
  }
}

void Pipeline::read_register(std::uint32_t group, std::uint32_t element, std::uint64_t index,
                             std::span<std::uint8_t> value) const {
  check_register(group, element, index, value.size());
  std::memcpy(value.data(),
              registers_[group].get() + index * image_.registers[group].row_bytes + element,
              value.size());
}

void Pipeline::write_register(std::uint32_t group, std::uint32_t element, std::uint64_t index,
                              std::span<const std::uint8_t> value) {
  check_register(group, element, index, value.size());
  std::memcpy(registers_[group].get() + index * image_.registers[group].row_bytes + element,
              value.data(), value.size());
}

void Pipeline::check_counter(std::uint32_t counter, std::uint64_t index) const {
  if (counter >= counters_.size()) {
    throw SwitchError(Code::kNotFound, "no counter number " + std::to_string(counter));
  }
  if (index >= counters_[counter].size() / 2) {
    throw SwitchError(Code::kOutOfRange, "counter index " + std::to_string(index) +
                                             " is not below its size of " +
                                             std::to_string(counters_[counter].size() / 2));
  }
}

CounterCell Pipeline::read_counter(std::uint32_t counter, std::uint64_t index) const {
  check_counter(counter, index);
  return {counters_[counter][2 * index], counters_[counter][2 * index + 1]};
}

void Pipeline::write_counter(std::uint32_t counter, std::uint64_t index, CounterCell cell) {
  check_counter(counter, index);
  counters_[counter][2 * index] = cell.packets;
  counters_[counter][2 * index + 1] = cell.bytes;
}

void Pipeline::set_group(std::uint16_t group, std::vector<Replica> replicas) {
  if (group == 0) throw SwitchError(Code::kInvalidArgument, "multicast group 0 means no group");
  groups_[group] = std::move(replicas);
}

void Pipeline::delete_group(std::uint16_t group) {
  if (groups_.erase(group) == 0) {
    throw SwitchError(Code::kNotFound, "no multicast group " + std::to_string(group));
  }
}

}  // namespace p4emu
