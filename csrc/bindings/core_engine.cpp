// What speaks of the engine in Python: enumerations, errors, configuration, statistics.
#include <pybind11/native_enum.h>
#include <pybind11/stl.h>

#include <cerrno>
#include <exception>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include "bindings/core.hpp"
#include "engine/engine.hpp"
#include "transport/driver.hpp"

namespace pycollective::bindings {
namespace {

// Turns the core's exceptions into Python's. What is not about a job keeps its usual type.
void translate(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const EngineError& error) {
    try {
      raise(error.error());
    } catch (py::error_already_set& raised) {
      raised.restore();
    }
  } catch (const transport::TransportError& error) {
    try {
      raise(transport::to_error(error));
    } catch (py::error_already_set& raised) {
      raised.restore();
    }
  } catch (const std::system_error& error) {
    errno = error.code().value();
    PyErr_SetObject(PyExc_OSError,
                    py::make_tuple(error.code().value(), std::string(error.what())).ptr());
  }
}

std::vector<unsigned> ranks_of(std::uint32_t bitmap) {
  std::vector<unsigned> ranks;
  for (unsigned rank = 0; rank < kMaxWorldSize; ++rank) {
    if (((bitmap >> rank) & 1U) != 0) ranks.push_back(rank);
  }
  return ranks;
}

template <typename Field>
py::object place_field(const Error& error, Field ChunkPlace::* field) {
  if (!error.place) return py::none();
  return py::cast((*error.place).*field);
}

template <Duration Timers::* Field>
void bind_timer(py::class_<Timers>& type, const char* name) {
  type.def_property(
      name, [](const Timers& timers) { return to_seconds(timers.*Field); },
      [](Timers& timers, double seconds) { timers.*Field = to_duration(seconds); });
}

void bind_enumerations(py::module_& module) {
  py::native_enum<DataType>(module, "DataType", "enum.IntEnum")
      .value("BYTE", DataType::kByte)
      .value("INT32", DataType::kInt32)
      .value("FLOAT32", DataType::kFloat32)
      .finalize();
  py::native_enum<ErrorCode>(module, "ErrorCode", "enum.IntEnum")
      .value("NONE", ErrorCode::kNone)
      .value("DEADLINE_EXCEEDED", ErrorCode::kDeadlineExceeded)
      .value("SWITCH_UNREACHABLE", ErrorCode::kSwitchUnreachable)
      .value("MISMATCH", ErrorCode::kMismatch)
      .value("REDUCTION_OVERFLOW", ErrorCode::kReductionOverflow)
      .value("EPOCH_CHANGED", ErrorCode::kEpochChanged)
      .value("BAD_SLOT", ErrorCode::kBadSlot)
      .value("MTU", ErrorCode::kMtu)
      .value("TRANSPORT", ErrorCode::kTransport)
      .value("CANCELLED", ErrorCode::kCancelled)
      .value("UNSUPPORTED", ErrorCode::kUnsupported)
      .finalize();
  py::native_enum<State>(module, "State", "enum.IntEnum")
      .value("CONNECTING", State::kConnecting)
      .value("IDLE", State::kIdle)
      .value("RUNNING", State::kRunning)
      .value("FAILED", State::kFailed)
      .finalize();
}

void bind_errors(py::module_& module) {
  py::class_<Error>(module, "Error")
      .def_readonly("code", &Error::code)
      .def_readonly("job", &Error::job)
      .def_readonly("rank", &Error::rank)
      .def_property_readonly("operation", [](const Error& e) { return e.operation; })
      .def_readonly("sequence", &Error::sequence)
      .def_property_readonly("chunk",
                             [](const Error& e) { return place_field(e, &ChunkPlace::chunk); })
      .def_property_readonly("slot",
                             [](const Error& e) { return place_field(e, &ChunkPlace::slot); })
      .def_property_readonly(
          "slot_version", [](const Error& e) { return place_field(e, &ChunkPlace::slot_version); })
      .def_property_readonly("missing_ranks",
                             [](const Error& e) -> std::optional<std::vector<unsigned>> {
                               if (!e.missing_ranks) return std::nullopt;
                               return ranks_of(*e.missing_ranks);
                             })
      .def_property_readonly("waited", [](const Error& e) { return to_seconds(e.waited); })
      .def_property_readonly("silent",
                             [](const Error& e) -> std::optional<double> {
                               if (!e.silent) return std::nullopt;
                               return to_seconds(*e.silent);
                             })
      .def_readonly("expected", &Error::expected)
      .def_readonly("found", &Error::found)
      .def_readonly("detail", &Error::detail)
      .def_property_readonly("text", &Error::text)
      .def("__str__", &Error::text)
      .def("__repr__", [](const Error& e) {
        return "<Error " + std::string(name(e.code)) + ": " + e.text() + ">";
      });

  const py::object base = py::reinterpret_borrow<py::object>(PyExc_Exception);
  const auto type = py::reinterpret_steal<py::object>(PyErr_NewExceptionWithDoc(
      "pycollective._core.CoreError", "A call could not be carried out. `error` says why.",
      base.ptr(), nullptr));
  if (!type) throw py::error_already_set();
  module.attr("CoreError") = type;
  py::register_local_exception_translator(&translate);
}

void bind_configuration(py::module_& module) {
  py::class_<Timers> timers(module, "Timers");
  timers.def(py::init([](double rto_initial, double rto_min, double rto_max, double probe_interval,
                         double connect_timeout, double deadline) {
               return Timers{.rto_initial = to_duration(rto_initial),
                             .rto_min = to_duration(rto_min),
                             .rto_max = to_duration(rto_max),
                             .probe_interval = to_duration(probe_interval),
                             .connect_timeout = to_duration(connect_timeout),
                             .deadline = to_duration(deadline)};
             }),
             py::kw_only(), py::arg("rto_initial") = to_seconds(Timers{}.rto_initial),
             py::arg("rto_min") = to_seconds(Timers{}.rto_min),
             py::arg("rto_max") = to_seconds(Timers{}.rto_max),
             py::arg("probe_interval") = to_seconds(Timers{}.probe_interval),
             py::arg("connect_timeout") = to_seconds(Timers{}.connect_timeout),
             py::arg("deadline") = to_seconds(Timers{}.deadline));
  bind_timer<&Timers::rto_initial>(timers, "rto_initial");
  bind_timer<&Timers::rto_min>(timers, "rto_min");
  bind_timer<&Timers::rto_max>(timers, "rto_max");
  bind_timer<&Timers::probe_interval>(timers, "probe_interval");
  bind_timer<&Timers::connect_timeout>(timers, "connect_timeout");
  bind_timer<&Timers::deadline>(timers, "deadline");

  py::class_<JobConfig>(module, "JobConfig")
      .def(py::init([](std::uint16_t job, std::uint16_t rank, std::uint16_t world_size,
                       std::uint16_t epoch, std::uint16_t slots, const std::string& mac,
                       const std::string& switch_mac, const std::string& ipv4,
                       const std::string& switch_ipv4, std::uint16_t lanes, const Timers& timers,
                       std::uint32_t first_sequence) {
             return JobConfig{.job = job,
                              .rank = rank,
                              .world_size = world_size,
                              .epoch = epoch,
                              .slots = slots,
                              .lanes = lanes,
                              .mac = parse_mac(mac),
                              .switch_mac = parse_mac(switch_mac),
                              .ipv4 = parse_ipv4(ipv4),
                              .switch_ipv4 = parse_ipv4(switch_ipv4),
                              .timers = timers,
                              .first_sequence = first_sequence};
           }),
           py::kw_only(), py::arg("job"), py::arg("rank"), py::arg("world_size"), py::arg("epoch"),
           py::arg("slots"), py::arg("mac"), py::arg("switch_mac"), py::arg("ipv4"),
           py::arg("switch_ipv4"), py::arg("lanes") = JobConfig{}.lanes,
           py::arg("timers") = Timers{}, py::arg("first_sequence") = JobConfig{}.first_sequence)
      .def_readwrite("job", &JobConfig::job)
      .def_readwrite("rank", &JobConfig::rank)
      .def_readwrite("world_size", &JobConfig::world_size)
      .def_readwrite("epoch", &JobConfig::epoch)
      .def_readwrite("slots", &JobConfig::slots)
      .def_readwrite("lanes", &JobConfig::lanes)
      .def_property(
          "mac", [](const JobConfig& c) { return format_mac(c.mac); },
          [](JobConfig& c, const std::string& text) { c.mac = parse_mac(text); })
      .def_property(
          "switch_mac", [](const JobConfig& c) { return format_mac(c.switch_mac); },
          [](JobConfig& c, const std::string& text) { c.switch_mac = parse_mac(text); })
      .def_property(
          "ipv4", [](const JobConfig& c) { return format_ipv4(c.ipv4); },
          [](JobConfig& c, const std::string& text) { c.ipv4 = parse_ipv4(text); })
      .def_property(
          "switch_ipv4", [](const JobConfig& c) { return format_ipv4(c.switch_ipv4); },
          [](JobConfig& c, const std::string& text) { c.switch_ipv4 = parse_ipv4(text); })
      .def_readwrite("timers", &JobConfig::timers)
      .def_readwrite("first_sequence", &JobConfig::first_sequence);
}

void bind_statistics(py::module_& module) {
  py::class_<Statistics>(module, "EngineStatistics")
      .def_readonly("frames_sent", &Statistics::frames_sent)
      .def_readonly("bytes_sent", &Statistics::bytes_sent)
      .def_readonly("probes_sent", &Statistics::probes_sent)
      .def_readonly("retransmissions", &Statistics::retransmissions)
      .def_readonly("frames_received", &Statistics::frames_received)
      .def_readonly("bytes_received", &Statistics::bytes_received)
      .def_readonly("results", &Statistics::results)
      .def_readonly("statuses", &Statistics::statuses)
      .def_readonly("probe_replies", &Statistics::probe_replies)
      .def_readonly("nacks", &Statistics::nacks)
      .def_readonly("ecn_echoes", &Statistics::ecn_echoes)
      .def_property_readonly("malformed",
                             [](const Statistics& s) {
                               std::map<std::string, std::uint64_t> counts;
                               for (std::size_t i = 1; i < s.malformed.size(); ++i) {
                                 const auto reason = static_cast<wire::FrameError>(i);
                                 counts.emplace(wire::name(reason), s.malformed[i]);
                               }
                               return counts;
                             })
      .def_readonly("foreign_opcode", &Statistics::foreign_opcode)
      .def_readonly("foreign_job", &Statistics::foreign_job)
      .def_readonly("foreign_rank", &Statistics::foreign_rank)
      .def_readonly("foreign_epoch", &Statistics::foreign_epoch)
      .def_readonly("duplicates", &Statistics::duplicates)
      .def_readonly("stale", &Statistics::stale)
      .def_readonly("unexpected", &Statistics::unexpected)
      .def_readonly("collectives_completed", &Statistics::collectives_completed)
      .def_readonly("collectives_failed", &Statistics::collectives_failed)
      .def_property_readonly("smoothed_rtt",
                             [](const Statistics& s) { return to_seconds(s.smoothed_rtt); })
      .def_property_readonly("rto", [](const Statistics& s) { return to_seconds(s.rto); });

  using transport::TransportStatistics;
  py::class_<TransportStatistics>(module, "TransportStatistics")
      .def_readonly("frames_sent", &TransportStatistics::frames_sent)
      .def_readonly("bytes_sent", &TransportStatistics::bytes_sent)
      .def_readonly("frames_received", &TransportStatistics::frames_received)
      .def_readonly("bytes_received", &TransportStatistics::bytes_received)
      .def_readonly("send_calls", &TransportStatistics::send_calls)
      .def_readonly("receive_calls", &TransportStatistics::receive_calls)
      .def_readonly("send_blocked", &TransportStatistics::send_blocked)
      .def_readonly("send_dropped", &TransportStatistics::send_dropped)
      .def_readonly("oversized", &TransportStatistics::oversized)
      .def_readonly("peer_refused", &TransportStatistics::peer_refused)
      .def_readonly("peer_unreachable", &TransportStatistics::peer_unreachable);

  using transport::DriverStatistics;
  py::class_<DriverStatistics>(module, "ConnectionStatistics")
      .def_readonly("state", &DriverStatistics::state)
      .def_readonly("engine", &DriverStatistics::engine)
      .def_readonly("transport", &DriverStatistics::transport)
      .def_readonly("wakeups", &DriverStatistics::wakeups);
}

}  // namespace

void bind_engine(py::module_& module) {
  bind_enumerations(module);
  bind_errors(module);
  bind_configuration(module);
  bind_statistics(module);
}

}  // namespace pycollective::bindings
