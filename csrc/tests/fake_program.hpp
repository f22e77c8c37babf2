// A program for the switch's run time written by hand instead of compiled from P4: frames say what
// is to become of them, and what leaves says how it got there. Main types: Order, Report.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "switch/image.hpp"

namespace fake {

// A frame's first bytes: what ingress and egress are to do with it.
struct Order {
  std::uint16_t spec = 0;                  // egress_spec
  std::uint16_t group = 0;                 // mcast_grp
  std::uint16_t egress_drop_rid = 0xffff;  // egress drops the copy with this egress_rid
  std::uint16_t grow = 0;                  // zero bytes egress adds to its header
  std::uint32_t register_index = 0;        // ingress adds 1 to this element of register group 0
};

// What leaves begins with this; the rest of the frame follows as payload.
struct Report {
  std::uint64_t ingress_timestamp, egress_timestamp;
  std::uint32_t instance_type, packet_length, enq_timestamp;
  std::uint16_t ingress_port, egress_port, rid, egress_spec_before;
  std::uint16_t egress_runs;  // how often egress ran on this copy's variables
  std::uint16_t unused;
};

// The variable block. `order` and `egress_runs` are the program's own.
struct Vars {
  Order order;
  Report report;
  std::uint16_t egress_spec, mcast_grp;
};

inline constexpr std::uint32_t kMaxGrow = 0xffff;
inline constexpr std::uint32_t kRegisterRows = 4;
inline constexpr std::uint32_t kRowBytes = 8;

inline void ingress(std::uint8_t* block, const p4emu::State* state, p4emu::Packet* packet) {
  auto* vars = reinterpret_cast<Vars*>(block);
  packet->payload = packet->length < sizeof(Order) ? 0 : sizeof(Order);
  vars->order = {};
  if (packet->payload > 0) std::memcpy(&vars->order, packet->data, sizeof(Order));
  vars->egress_spec = vars->order.spec;
  vars->mcast_grp = vars->order.group;
  const std::uint32_t row =
      vars->order.register_index < kRegisterRows ? vars->order.register_index : kRegisterRows;
  std::uint64_t element;
  std::memcpy(&element, state->registers[0] + row * kRowBytes, sizeof(element));
  ++element;
  std::memcpy(state->registers[0] + row * kRowBytes, &element, sizeof(element));
  ++state->counters[0][0];
  state->counters[0][1] += packet->length;
}

inline std::uint32_t egress(std::uint8_t* block, const p4emu::State* /*state*/,
                            const p4emu::Packet* /*packet*/, std::uint8_t* out) {
  auto* vars = reinterpret_cast<Vars*>(block);
  vars->report.egress_spec_before = vars->egress_spec;
  ++vars->report.egress_runs;
  if (vars->report.rid == vars->order.egress_drop_rid) vars->egress_spec = 511;
  std::memcpy(out, &vars->report, sizeof(Report));
  std::memset(out + sizeof(Report), 0, vars->order.grow);
  return static_cast<std::uint32_t>(sizeof(Report) + vars->order.grow);
}

inline p4emu::ProgramImage image() {
  const auto report = [](std::size_t offset, std::uint32_t bytes) {
    return p4emu::FieldImage{static_cast<std::uint32_t>(offsetof(Vars, report) + offset), bytes};
  };
  p4emu::ProgramImage image;
  image.ingress = &ingress;
  image.egress = &egress;
  image.vars_size = sizeof(Vars);
  image.max_header_bytes = sizeof(Report) + kMaxGrow;
  image.standard.ingress_port = report(offsetof(Report, ingress_port), 2);
  image.standard.egress_port = report(offsetof(Report, egress_port), 2);
  image.standard.egress_rid = report(offsetof(Report, rid), 2);
  image.standard.instance_type = report(offsetof(Report, instance_type), 4);
  image.standard.packet_length = report(offsetof(Report, packet_length), 4);
  image.standard.enq_timestamp = report(offsetof(Report, enq_timestamp), 4);
  image.standard.ingress_global_timestamp = report(offsetof(Report, ingress_timestamp), 8);
  image.standard.egress_global_timestamp = report(offsetof(Report, egress_timestamp), 8);
  image.standard.egress_spec = {offsetof(Vars, egress_spec), 2};
  image.standard.mcast_grp = {offsetof(Vars, mcast_grp), 2};
  image.registers = {{kRowBytes, kRegisterRows}};
  image.counters = {1};
  return image;
}

inline std::vector<std::uint8_t> frame(const Order& order, std::size_t payload = 10,
                                       std::uint8_t fill = 0xab) {
  std::vector<std::uint8_t> bytes(sizeof(Order) + payload, fill);
  std::memcpy(bytes.data(), &order, sizeof(order));
  return bytes;
}

inline Report report_of(std::span<const std::uint8_t> bytes) {
  Report report{};
  if (bytes.size() >= sizeof(report)) std::memcpy(&report, bytes.data(), sizeof(report));
  return report;
}

}  // namespace fake
