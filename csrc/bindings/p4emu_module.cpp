// p4emu._runtime: the run time of compiled P4 programs for Python. Conversions only; numbers
// instead of names (emulator/p4emu/switch.py has the names). Everything that may wait releases the
// GIL.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "switch/abi.hpp"
#include "switch/status.hpp"
#include "switch/switch.hpp"

namespace py = pybind11;
using namespace p4emu;

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes to_bytes(const py::bytes& bytes) {
  const std::string_view view = bytes;
  return {view.begin(), view.end()};
}

py::bytes from_bytes(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

MatchKind to_kind(const std::string& kind) {
  if (kind == "exact") return MatchKind::kExact;
  if (kind == "lpm") return MatchKind::kLpm;
  if (kind == "ternary") return MatchKind::kTernary;
  if (kind == "range") return MatchKind::kRange;
  if (kind == "optional") return MatchKind::kOptional;
  throw py::value_error("unknown match kind '" + kind + "'");
}

// (value, mask, priority, action, data), as switch.py builds it.
TableEntry to_entry(const py::tuple& tuple) {
  return {to_bytes(tuple[0]), to_bytes(tuple[1]), tuple[2].cast<std::int32_t>(),
          tuple[3].cast<std::uint32_t>(), to_bytes(tuple[4])};
}

py::tuple from_entry(const TableEntry& entry) {
  return py::make_tuple(from_bytes(entry.value), from_bytes(entry.mask), entry.priority,
                        entry.action, from_bytes(entry.data));
}

DefaultAction to_default(const py::tuple& tuple) {
  return {tuple[0].cast<std::uint32_t>(), to_bytes(tuple[1])};
}

TableImage to_table(const py::dict& spec) {
  TableImage table;
  table.name = spec["name"].cast<std::string>();
  for (const auto field : spec["key"].cast<py::list>()) {
    const auto pair = field.cast<std::pair<std::string, std::uint32_t>>();
    table.key.push_back({to_kind(pair.first), pair.second});
  }
  table.action_data_bytes = spec["action_data_bytes"].cast<std::vector<std::uint32_t>>();
  table.initial = to_default(spec["initial"].cast<py::tuple>());
  for (const auto entry : spec["entries"].cast<py::list>()) {
    table.entries.push_back(to_entry(entry.cast<py::tuple>()));
  }
  table.size = spec["size"].cast<std::uint32_t>();
  table.counts = spec["counts"].cast<bool>();
  table.const_default = spec["const_default"].cast<bool>();
  table.const_entries = spec["const_entries"].cast<bool>();
  return table;
}

FieldImage to_field(const py::dict& standard, const char* name) {
  if (!standard.contains(name)) return {};
  const auto pair = standard[name].cast<std::pair<std::uint32_t, std::uint32_t>>();
  if (pair.second > sizeof(std::uint64_t)) {
    throw py::value_error(std::string("standard_metadata.") + name + " is wider than 64 bits");
  }
  return {pair.first, pair.second};
}

ProgramImage to_image(const py::dict& spec) {
  ProgramImage image;
  image.ingress = reinterpret_cast<IngressFunction>(spec["ingress"].cast<std::uintptr_t>());
  image.egress = reinterpret_cast<EgressFunction>(spec["egress"].cast<std::uintptr_t>());
  image.vars_size = spec["vars_size"].cast<std::uint32_t>();
  image.max_header_bytes = spec["max_header_bytes"].cast<std::uint32_t>();
  const auto standard = spec["standard"].cast<py::dict>();
  StandardMetadataImage& fields = image.standard;
  fields.ingress_port = to_field(standard, "ingress_port");
  fields.egress_spec = to_field(standard, "egress_spec");
  fields.egress_port = to_field(standard, "egress_port");
  fields.instance_type = to_field(standard, "instance_type");
  fields.packet_length = to_field(standard, "packet_length");
  fields.enq_timestamp = to_field(standard, "enq_timestamp");
  fields.ingress_global_timestamp = to_field(standard, "ingress_global_timestamp");
  fields.egress_global_timestamp = to_field(standard, "egress_global_timestamp");
  fields.mcast_grp = to_field(standard, "mcast_grp");
  fields.egress_rid = to_field(standard, "egress_rid");
  for (const auto table : spec["tables"].cast<py::list>()) {
    image.tables.push_back(to_table(table.cast<py::dict>()));
  }
  for (const auto group : spec["registers"].cast<py::list>()) {
    const auto pair = group.cast<std::pair<std::uint32_t, std::uint32_t>>();
    image.registers.push_back({pair.first, pair.second});
  }
  image.counters = spec["counters"].cast<std::vector<std::uint32_t>>();
  return image;
}

py::tuple from_cell(CounterCell cell) { return py::make_tuple(cell.packets, cell.bytes); }

void add_counts(py::dict& all, const std::string& side, const ImpairmentCounts& counts) {
  all[py::str(side + "_lost")] = counts.lost;
  all[py::str(side + "_duplicated")] = counts.duplicated;
  all[py::str(side + "_held")] = counts.held;
  all[py::str(side + "_corrupted")] = counts.corrupted;
}

py::dict from_counts(const PortCounts& counts) {
  py::dict all;
  all["rx_frames"] = counts.io.rx_frames;
  all["rx_bytes"] = counts.io.rx_bytes;
  all["tx_frames"] = counts.io.tx_frames;
  all["tx_bytes"] = counts.io.tx_bytes;
  all["rx_kernel_drops"] = counts.io.rx_kernel_drops;
  all["rx_truncated"] = counts.io.rx_truncated;
  all["tx_no_peer"] = counts.io.tx_no_peer;
  all["tx_queue_full"] = counts.io.tx_queue_full;
  all["tx_errors"] = counts.io.tx_errors;
  all["capture_errors"] = counts.capture_errors;
  add_counts(all, "rx", counts.receive);
  add_counts(all, "tx", counts.transmit);
  return all;
}

Direction to_direction(const std::string& direction) {
  if (direction == "rx") return Direction::kReceive;
  if (direction == "tx") return Direction::kTransmit;
  throw SwitchError(
      Code::kInvalidArgument,
      "a direction is rx (into the switch) or tx (out of it); got '" + direction + "'");
}

// Collects copies of what leaves.
struct Collector final : FrameSink {
  void frame(std::uint16_t port, std::span<const std::uint8_t> bytes) override {
    frames.emplace_back(port, Bytes(bytes.begin(), bytes.end()));
  }
  std::vector<std::pair<std::uint16_t, Bytes>> frames;
};

// Releases a Python object from whatever thread lets go of it last.
std::shared_ptr<void> keep_object(const py::object& object) {
  auto* handle = new py::object(object);
  return {handle, [](void* held) {
            const py::gil_scoped_acquire gil;
            delete static_cast<py::object*>(held);
          }};
}

using Release = py::call_guard<py::gil_scoped_release>;

// Calls `function` with the pipeline, without the GIL: the packet thread may hold the lock.
template <typename Function>
auto with(Switch& self, Function&& function) {
  const py::gil_scoped_release release;
  return self.with_pipeline(std::forward<Function>(function));
}

void bind_tables(py::class_<Switch, std::shared_ptr<Switch>>& c) {
  c.def("table_insert", [](Switch& self, std::uint32_t table, const py::tuple& entry) {
    const TableEntry e = to_entry(entry);
    with(self, [&](Pipeline& p) { p.table(table).insert(e); });
  });
  c.def("table_modify", [](Switch& self, std::uint32_t table, const py::tuple& entry) {
    const TableEntry e = to_entry(entry);
    with(self, [&](Pipeline& p) { p.table(table).modify(e); });
  });
  c.def("table_erase", [](Switch& self, std::uint32_t table, const py::tuple& entry) {
    const TableEntry e = to_entry(entry);
    with(self, [&](Pipeline& p) { p.table(table).erase(e); });
  });
  c.def("table_entries", [](Switch& self, std::uint32_t table) {
    const auto entries = with(self, [&](Pipeline& p) { return p.table(table).entries(); });
    py::list list;
    for (const TableEntry& entry : entries) list.append(from_entry(entry));
    return list;
  });
  c.def("table_set_default", [](Switch& self, std::uint32_t table, const py::tuple& action) {
    const DefaultAction a = to_default(action);
    with(self, [&](Pipeline& p) { p.table(table).set_default(a); });
  });
  c.def("table_reset_default", [](Switch& self, std::uint32_t table) {
    with(self, [&](Pipeline& p) { p.table(table).reset_default(); });
  });
  c.def("table_default", [](Switch& self, std::uint32_t table) {
    const DefaultAction action =
        with(self, [&](Pipeline& p) { return p.table(table).default_action(); });
    return py::make_tuple(action.action, from_bytes(action.data));
  });
  c.def("table_counts", [](Switch& self, std::uint32_t table, const py::tuple& entry) {
    const TableEntry e = to_entry(entry);
    return from_cell(with(self, [&](Pipeline& p) { return p.table(table).counts(e); }));
  });
  c.def("table_set_counts", [](Switch& self, std::uint32_t table, const py::tuple& entry,
                               std::uint64_t packets, std::uint64_t bytes) {
    const TableEntry e = to_entry(entry);
    with(self, [&](Pipeline& p) { p.table(table).set_counts(e, {packets, bytes}); });
  });
  c.def("table_default_counts", [](Switch& self, std::uint32_t table) {
    return from_cell(with(self, [&](Pipeline& p) { return p.table(table).default_counts(); }));
  });
}

void bind_state(py::class_<Switch, std::shared_ptr<Switch>>& c) {
  c.def("read_register", [](Switch& self, std::uint32_t group, std::uint32_t element,
                            std::uint32_t bytes, std::uint64_t first, std::uint64_t count) {
    const Bytes values = with(self, [&](Pipeline& p) {
      Bytes all(count * bytes);
      for (std::uint64_t i = 0; i < count; ++i) {
        p.read_register(group, element, first + i, std::span(all).subspan(i * bytes, bytes));
      }
      return all;
    });
    return from_bytes(values);
  });
  c.def("write_register", [](Switch& self, std::uint32_t group, std::uint32_t element,
                             std::uint64_t index, const py::bytes& value) {
    const Bytes bytes = to_bytes(value);
    with(self, [&](Pipeline& p) { p.write_register(group, element, index, bytes); });
  });
  c.def("read_counter", [](Switch& self, std::uint32_t counter, std::uint64_t index) {
    return from_cell(with(self, [&](Pipeline& p) { return p.read_counter(counter, index); }));
  });
  c.def("write_counter", [](Switch& self, std::uint32_t counter, std::uint64_t index,
                            std::uint64_t packets, std::uint64_t bytes) {
    with(self, [&](Pipeline& p) { p.write_counter(counter, index, {packets, bytes}); });
  });
  c.def("set_group", [](Switch& self, std::uint16_t group,
                        const std::vector<std::pair<std::uint16_t, std::uint16_t>>& replicas) {
    std::vector<Replica> copies;
    for (const auto& [port, instance] : replicas) copies.push_back({port, instance});
    with(self, [&](Pipeline& p) { p.set_group(group, std::move(copies)); });
  });
  c.def("delete_group", [](Switch& self, std::uint16_t group) {
    with(self, [&](Pipeline& p) { p.delete_group(group); });
  });
  c.def("groups", [](Switch& self) {
    const auto groups = with(self, [](Pipeline& p) { return p.groups(); });
    py::dict all;
    for (const auto& [group, replicas] : groups) {
      py::list list;
      for (const Replica& r : replicas) list.append(py::make_tuple(r.port, r.instance));
      all[py::int_(group)] = list;
    }
    return all;
  });
}

}  // namespace

PYBIND11_MODULE(_runtime, module) {
  module.doc() = "The run time of compiled P4 programs; use p4emu.Switch instead.";

  // SwitchError arrives as p4emu.errors.SwitchError, with the canonical code as a number.
  py::register_local_exception_translator([](std::exception_ptr error) {
    try {
      if (error) std::rethrow_exception(error);
    } catch (const SwitchError& e) {
      const py::object type = py::module_::import("p4emu.errors").attr("SwitchError");
      const py::object value =
          type.attr("from_code")(static_cast<int>(e.code()), std::string(e.what()));
      PyErr_SetObject(type.ptr(), value.ptr());
    }
  });

  module.attr("ABI_VERSION") = kAbiVersion;
  module.def(
      "symbols",
      [] {
        py::dict all;
        all["p4emu_table_lookup"] = reinterpret_cast<std::uintptr_t>(&p4emu_table_lookup);
        all["p4emu_crc16"] = reinterpret_cast<std::uintptr_t>(&p4emu_crc16);
        all["p4emu_crc32"] = reinterpret_cast<std::uintptr_t>(&p4emu_crc32);
        return all;
      },
      "Addresses of the functions compiled programs call.");

  py::class_<Switch, std::shared_ptr<Switch>> c(module, "Switch");
  c.def(py::init<>());
  c.def("load", [](Switch& self, const py::object& spec, const py::object& keep) {
    if (spec.is_none()) {
      const py::gil_scoped_release release;
      self.load(nullptr, nullptr);
      return;
    }
    const ProgramImage image = to_image(spec.cast<py::dict>());
    std::shared_ptr<void> held = keep_object(keep);
    const py::gil_scoped_release release;
    self.load(&image, std::move(held));
  });
  c.def("process", [](Switch& self, std::uint16_t port, const py::bytes& frame) {
    const std::string_view view = frame;
    Collector collector;
    {
      const py::gil_scoped_release release;
      self.process(port, {reinterpret_cast<const std::uint8_t*>(view.data()), view.size()},
                   collector);
    }
    py::list list;
    for (const auto& [out, bytes] : collector.frames) {
      list.append(py::make_tuple(out, from_bytes(bytes)));
    }
    return list;
  });
  c.def("measure", [](Switch& self, const py::list& frames, std::uint64_t rounds) {
    std::vector<std::pair<std::uint16_t, Bytes>> copies;
    for (const auto item : frames) {
      const auto pair = item.cast<py::tuple>();
      copies.emplace_back(pair[0].cast<std::uint16_t>(), to_bytes(pair[1]));
    }
    const py::gil_scoped_release release;
    return self.measure(copies, rounds);
  });
  c.def(
      "add_udp_port",
      [](Switch& self, std::uint16_t number, const std::string& host, std::uint16_t port,
         const std::string& capture, std::uint64_t capture_limit) {
        return self.add_udp_port(number, host, port, {capture, capture_limit});
      },
      Release());
  c.def("impair", [](Switch& self, std::uint16_t number, const std::string& direction, double loss,
                     double duplicate, double hold, std::uint32_t hold_frames, double hold_limit,
                     double corrupt, std::uint64_t seed) {
    const ImpairmentConfig config{
        .loss = loss,
        .duplicate = duplicate,
        .hold = hold,
        .hold_frames = hold_frames,
        .hold_limit = std::chrono::duration_cast<std::chrono::nanoseconds>(
            std::chrono::duration<double>(hold_limit)),
        .corrupt = corrupt};
    const Direction side = to_direction(direction);
    const py::gil_scoped_release release;
    self.impair(number, side, config, seed);
  });
  c.def("counts", [](const Switch& self) {
    SwitchCounts counts;
    {
      const py::gil_scoped_release release;
      counts = self.counts();
    }
    py::dict all;
    all["processed"] = counts.pipeline.processed;
    all["sent"] = counts.pipeline.sent;
    all["dropped"] = counts.pipeline.dropped;
    all["oversized"] = counts.pipeline.oversized;
    all["unknown_group"] = counts.pipeline.unknown_group;
    all["no_program"] = counts.no_program;
    all["no_such_port"] = counts.no_such_port;
    return all;
  });
  c.def("ports", [](const Switch& self) {
    std::map<std::uint16_t, std::pair<std::string, PortCounts>> ports;
    {
      const py::gil_scoped_release release;
      ports = self.ports();
    }
    py::dict all;
    for (const auto& [number, port] : ports) {
      all[py::int_(number)] = py::make_tuple(port.first, from_counts(port.second));
    }
    return all;
  });
  c.def("start", &Switch::start, Release());
  c.def("stop", &Switch::stop, Release());
  c.def("running", &Switch::running, Release());
  bind_tables(c);
  bind_state(c);
}
