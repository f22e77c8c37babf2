// The deterministic simulation for Python: hosts with the real engine around a compiled P4 switch,
// or around a Python function where a test wants to play the switch.
#include <pybind11/native_enum.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings/core.hpp"
#include "sim/p4_switch_node.hpp"
#include "sim/simulation.hpp"

namespace pycollective::bindings {
namespace {

using sim::Direction;
using sim::Ended;
using sim::FaultAction;
using sim::FaultRule;
using sim::FaultStatistics;
using sim::FrameMatch;
using sim::LinkConfig;
using sim::LinkStatistics;

// How much virtual time passes between two looks at signals.
constexpr Duration kRunSlice = std::chrono::milliseconds(10);

// A Python function (port, frame) -> [(port, frame), ...] as the switch.
class FunctionNode final : public sim::SwitchNode {
 public:
  explicit FunctionNode(py::object function) : function_(std::move(function)) {}
  ~FunctionNode() override {
    const py::gil_scoped_acquire acquire;
    function_ = py::object();
  }

  void process(std::uint16_t port, std::span<const std::uint8_t> frame,
               sim::FrameSink& sink) override {
    const py::gil_scoped_acquire acquire;
    const py::object answers =
        function_(port, py::bytes(reinterpret_cast<const char*>(frame.data()), frame.size()));
    for (const auto& [to, bytes] :
         answers.cast<std::vector<std::pair<std::uint16_t, std::string>>>()) {
      sink.frame(to, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
    }
  }

 private:
  py::object function_;
};

class PySimulation {
 public:
  PySimulation(py::object target, const std::vector<JobConfig>& hosts, std::uint64_t seed,
               const LinkConfig& to_switch, const LinkConfig& to_host, double switch_delay)
      : target_(std::move(target)),
        jobs_(hosts),
        seed_(seed),
        simulation_(std::make_unique<sim::Simulation>(
            sim::SimulationConfig{.seed = seed,
                                  .to_switch = to_switch,
                                  .to_host = to_host,
                                  .switch_delay = to_duration(switch_delay)},
            hosts, make_node(target_))) {}

  CollectiveId all_reduce(std::uint16_t host, const py::object& input, const py::object& output,
                          DataType type, wire::ReduceOp op, const std::optional<double>& deadline) {
    Memory memory;
    const Collective collective =
        make_all_reduce(job(host), input, output, type, op, deadline, memory);
    return submit(host, collective, std::move(memory));
  }

  CollectiveId broadcast(std::uint16_t host, const py::object& buffer, DataType type,
                         std::uint16_t root, const std::optional<double>& deadline) {
    Memory memory;
    const Collective collective = make_broadcast(job(host), buffer, type, root, deadline, memory);
    return submit(host, collective, std::move(memory));
  }

  CollectiveId barrier(std::uint16_t host, const std::optional<double>& deadline) {
    return submit(host, make_barrier(deadline), Memory{});
  }

  bool run(double limit) {
    return advance(limit, [this](Duration slice) { return simulation_->run(slice); });
  }

  bool drain(double limit) {
    return advance(limit, [this](Duration slice) { return simulation_->drain(slice); });
  }

  py::object error(std::uint16_t host, CollectiveId id) const {
    for (const Ended& ended : simulation_->ended()) {
      if (ended.host == host && ended.id == id) return to_python(ended.error);
    }
    throw py::key_error("collective " + std::to_string(id) + " of host " + std::to_string(host) +
                        " has not ended");
  }

  sim::Simulation& core() { return *simulation_; }
  const sim::Simulation& core() const { return *simulation_; }
  std::uint64_t seed() const { return seed_; }

 private:
  static std::unique_ptr<sim::SwitchNode> make_node(const py::object& target) {
    if (py::isinstance<p4emu::Switch>(target)) {
      return std::make_unique<sim::P4SwitchNode>(target.cast<p4emu::Switch&>());
    }
    if (PyCallable_Check(target.ptr()) != 0) return std::make_unique<FunctionNode>(target);
    throw py::type_error("the switch must be a p4emu._runtime.Switch or a function; found " +
                         py::repr(py::type::of(target)).cast<std::string>());
  }

  const JobConfig& job(std::uint16_t host) const {
    if (host >= jobs_.size()) {
      throw py::index_error("host " + std::to_string(host) + " of " + std::to_string(jobs_.size()));
    }
    return jobs_[host];
  }

  CollectiveId submit(std::uint16_t host, const Collective& collective, Memory memory) {
    job(host);
    const CollectiveId id = simulation_->submit(host, collective);
    running_.insert_or_assign({host, id}, std::move(memory));
    return id;
  }

  template <typename Step>
  bool advance(double limit, Step&& step) {
    Duration left = to_duration(limit);
    bool finished = false;
    while (!finished) {
      const Duration slice = std::min(left, kRunSlice);
      {
        const py::gil_scoped_release release;
        finished = step(slice);
      }
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      left -= slice;
      if (left <= Duration::zero()) break;
    }
    const auto& ended = simulation_->ended();
    for (; seen_ < ended.size(); ++seen_) running_.erase({ended[seen_].host, ended[seen_].id});
    return finished;
  }

  py::object target_;
  std::vector<JobConfig> jobs_;
  std::uint64_t seed_;
  std::map<std::pair<std::uint16_t, CollectiveId>, Memory> running_;  // memory in use
  std::size_t seen_ = 0;  // of the ended ones, memory released
  // Last, so that the engines are gone before the memory they may point to.
  std::unique_ptr<sim::Simulation> simulation_;
};

template <Time LinkConfig::* Field>
void bind_time(py::class_<LinkConfig>& type, const char* name) {
  type.def_property(
      name, [](const LinkConfig& config) { return to_seconds(config.*Field); },
      [](LinkConfig& config, double seconds) { config.*Field = to_duration(seconds); });
}

void bind_links(py::module_& module) {
  py::native_enum<Direction>(module, "Direction", "enum.IntEnum")
      .value("TO_SWITCH", Direction::kToSwitch)
      .value("TO_HOST", Direction::kToHost)
      .finalize();
  py::class_<LinkConfig> link(module, "LinkConfig");
  link.def(py::init([](double delay, double bits_per_second, std::size_t queue_frames, double loss,
                       double duplicate, double hold, std::uint32_t hold_frames, double hold_limit,
                       double corrupt) {
             return LinkConfig{.delay = to_duration(delay),
                               .bits_per_second = bits_per_second,
                               .queue_frames = queue_frames,
                               .loss = loss,
                               .duplicate = duplicate,
                               .hold = hold,
                               .hold_frames = hold_frames,
                               .hold_limit = to_duration(hold_limit),
                               .corrupt = corrupt};
           }),
           py::kw_only(), py::arg("delay") = to_seconds(LinkConfig{}.delay),
           py::arg("bits_per_second") = 0.0, py::arg("queue_frames") = 0, py::arg("loss") = 0.0,
           py::arg("duplicate") = 0.0, py::arg("hold") = 0.0,
           py::arg("hold_frames") = LinkConfig{}.hold_frames,
           py::arg("hold_limit") = to_seconds(LinkConfig{}.hold_limit), py::arg("corrupt") = 0.0);
  bind_time<&LinkConfig::delay>(link, "delay");
  bind_time<&LinkConfig::hold_limit>(link, "hold_limit");
  link.def_readwrite("bits_per_second", &LinkConfig::bits_per_second)
      .def_readwrite("queue_frames", &LinkConfig::queue_frames)
      .def_readwrite("loss", &LinkConfig::loss)
      .def_readwrite("duplicate", &LinkConfig::duplicate)
      .def_readwrite("hold", &LinkConfig::hold)
      .def_readwrite("hold_frames", &LinkConfig::hold_frames)
      .def_readwrite("corrupt", &LinkConfig::corrupt);
  py::class_<LinkStatistics>(module, "LinkStatistics")
      .def_readonly("sent", &LinkStatistics::sent)
      .def_readonly("delivered", &LinkStatistics::delivered)
      .def_readonly("lost", &LinkStatistics::lost)
      .def_readonly("queue_drops", &LinkStatistics::queue_drops)
      .def_readonly("duplicated", &LinkStatistics::duplicated)
      .def_readonly("held", &LinkStatistics::held)
      .def_readonly("corrupted", &LinkStatistics::corrupted);
}

void bind_faults(py::module_& module) {
  py::native_enum<FaultAction>(module, "FaultAction", "enum.IntEnum")
      .value("DROP", FaultAction::kDrop)
      .value("HOLD", FaultAction::kHold)
      .value("DUPLICATE", FaultAction::kDuplicate)
      .finalize();
  py::class_<FrameMatch>(module, "FrameMatch")
      .def(py::init([](std::optional<std::uint16_t> host, std::optional<Direction> direction,
                       std::optional<wire::Opcode> opcode, std::optional<std::uint32_t> sequence,
                       std::optional<std::uint32_t> chunk, std::optional<std::uint16_t> slot,
                       std::optional<std::uint8_t> slot_version, std::optional<bool> retransmit) {
             FrameMatch match{.host = host,
                              .direction = direction,
                              .opcode = std::nullopt,
                              .sequence = sequence,
                              .chunk = chunk,
                              .slot = slot,
                              .slot_version = slot_version,
                              .retransmit = retransmit};
             if (opcode) match.opcode = static_cast<std::uint8_t>(*opcode);
             return match;
           }),
           py::kw_only(), py::arg("host") = py::none(), py::arg("direction") = py::none(),
           py::arg("opcode") = py::none(), py::arg("sequence") = py::none(),
           py::arg("chunk") = py::none(), py::arg("slot") = py::none(),
           py::arg("slot_version") = py::none(), py::arg("retransmit") = py::none());
  py::class_<FaultRule>(module, "FaultRule")
      .def(
          py::init([](FaultAction action, const FrameMatch& match, std::uint32_t skip,
                      std::uint32_t count, std::optional<FrameMatch> until_delivered,
                      std::uint32_t until_occurrence, std::optional<double> until_time) {
            FaultRule rule{.action = action,
                           .match = match,
                           .skip = skip,
                           .count = count,
                           .until_delivered = until_delivered,
                           .until_occurrence = until_occurrence,
                           .until_time = std::nullopt};
            if (until_time) rule.until_time = to_duration(*until_time);
            if (action != FaultAction::kDrop && !until_delivered && !until_time) {
              throw py::value_error("a rule that holds frames needs until_delivered or until_time");
            }
            return rule;
          }),
          py::arg("action"), py::arg("match"), py::kw_only(), py::arg("skip") = 0,
          py::arg("count") = 1, py::arg("until_delivered") = py::none(),
          py::arg("until_occurrence") = 1, py::arg("until_time") = py::none());
  py::class_<FaultStatistics>(module, "FaultStatistics")
      .def_readonly("hit", &FaultStatistics::hit)
      .def_readonly("released", &FaultStatistics::released)
      .def_property_readonly("moment", [](const FaultStatistics& s) -> std::optional<double> {
        if (!s.moment) return std::nullopt;
        return to_seconds(*s.moment);
      });
}

}  // namespace

void bind_simulation(py::module_& module) {
  bind_links(module);
  bind_faults(module);
  py::class_<Ended>(module, "Ended")
      .def_readonly("host", &Ended::host)
      .def_readonly("id", &Ended::id)
      .def_property_readonly("error", [](const Ended& e) { return to_python(e.error); })
      .def_property_readonly("at", [](const Ended& e) { return to_seconds(e.at); });

  py::class_<PySimulation>(module, "Simulation")
      .def(py::init<py::object, const std::vector<JobConfig>&, std::uint64_t, const LinkConfig&,
                    const LinkConfig&, double>(),
           py::arg("switch"), py::arg("hosts"), py::kw_only(), py::arg("seed"),
           py::arg("to_switch") = LinkConfig{}, py::arg("to_host") = LinkConfig{},
           py::arg("switch_delay") = to_seconds(sim::SimulationConfig{}.switch_delay))
      .def("all_reduce", &PySimulation::all_reduce, py::arg("host"), py::arg("input"),
           py::arg("output"), py::arg("dtype"), py::arg("op") = wire::ReduceOp::kSum, py::kw_only(),
           py::arg("deadline") = py::none())
      .def("broadcast", &PySimulation::broadcast, py::arg("host"), py::arg("buffer"),
           py::arg("dtype"), py::arg("root"), py::kw_only(), py::arg("deadline") = py::none())
      .def("barrier", &PySimulation::barrier, py::arg("host"), py::kw_only(),
           py::arg("deadline") = py::none())
      .def(
          "configure_link",
          [](PySimulation& self, std::uint16_t host, Direction direction,
             const LinkConfig& config) { self.core().configure_link(host, direction, config); },
          py::arg("host"), py::arg("direction"), py::arg("config"))
      .def(
          "add_fault",
          [](PySimulation& self, const FaultRule& rule) { return self.core().add_fault(rule); },
          py::arg("rule"))
      .def(
          "silence", [](PySimulation& self, std::uint16_t host) { self.core().silence(host); },
          py::arg("host"))
      .def(
          "capture",
          [](PySimulation& self, std::uint16_t host, const std::string& path) {
            self.core().capture(host, path);
          },
          py::arg("host"), py::arg("path"))
      .def("run", &PySimulation::run, py::arg("limit") = 60.0)
      .def("drain", &PySimulation::drain, py::arg("limit") = 60.0)
      .def("error", &PySimulation::error, py::arg("host"), py::arg("id"))
      .def(
          "statistics",
          [](const PySimulation& self, std::uint16_t host) {
            return self.core().engine(host).statistics();
          },
          py::arg("host"))
      .def(
          "link",
          [](const PySimulation& self, std::uint16_t host, Direction direction) {
            return self.core().link(host, direction);
          },
          py::arg("host"), py::arg("direction"))
      .def(
          "fault",
          [](const PySimulation& self, std::size_t rule) { return self.core().fault(rule); },
          py::arg("rule"))
      .def_property_readonly("now",
                             [](const PySimulation& self) { return to_seconds(self.core().now()); })
      .def_property_readonly("seed", &PySimulation::seed)
      .def_property_readonly("ended", [](const PySimulation& self) { return self.core().ended(); });
}

}  // namespace pycollective::bindings
