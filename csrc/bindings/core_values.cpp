// Durations, addresses, errors and buffers between Python and C++ (core.hpp).
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "bindings/core.hpp"

namespace pycollective::bindings {
namespace {

// A century, so that deadlines added to a clock stay in range.
constexpr double kMostSeconds = 100.0 * 365 * 24 * 3600;

// Parses `count` numbers of the base, each at most 255, with the separator between them.
bool parse_octets(const std::string& text, char separator, int base, std::uint8_t* octets,
                  std::size_t count) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0 && (at == end || *at++ != separator)) return false;
    const auto [next, error] = std::from_chars(at, end, octets[i], base);
    if (error != std::errc{}) return false;
    at = next;
  }
  return at == end;
}

bool is_aligned(const void* address, DataType type) {
  return reinterpret_cast<std::uintptr_t>(address) % size_of(type) == 0;
}

const char* name_of(DataType type) {
  switch (type) {
    case DataType::kByte:
      return "BYTE";
    case DataType::kInt32:
      return "INT32";
    case DataType::kFloat32:
      return "FLOAT32";
  }
  return "unknown";
}

bool format_fits(const HeldBuffer& buffer, DataType type) {
  switch (type) {
    case DataType::kByte:
      return true;
    case DataType::kInt32:
      return buffer.item_bytes() == 4 && (buffer.format() == "i" || buffer.format() == "l");
    case DataType::kFloat32:
      return buffer.format() == "f";
  }
  return false;
}

// Exports the buffer and checks that it holds elements of `type`.
HeldBuffer hold(const JobConfig& job, const char* operation, const char* role,
                const py::object& object, bool writable, DataType type) {
  HeldBuffer buffer;
  try {
    buffer = HeldBuffer(object, writable);
  } catch (const py::error_already_set& error) {
    raise_unsupported(job, operation,
                      std::string("the ") + role + " is no " + (writable ? "writable " : "") +
                          "C-contiguous buffer: " + error.what());
  }
  if (!format_fits(buffer, type)) {
    raise_unsupported(job, operation,
                      std::string("the ") + role + " has elements of format '" + buffer.format() +
                          "' and " + std::to_string(buffer.item_bytes()) + " bytes, expected " +
                          name_of(type));
  }
  return buffer;
}

void check_arrays(const JobConfig& job, const char* operation, const Collective& collective) {
  const std::size_t bytes = collective.count * size_of(collective.type);
  if (bytes == 0) return;
  if (collective.input == nullptr || collective.output == nullptr) {
    raise_unsupported(job, operation, "an address is 0");
  }
  if (!is_aligned(collective.input, collective.type) ||
      !is_aligned(collective.output, collective.type)) {
    raise_unsupported(job, operation,
                      "arrays must be aligned to their elements' " +
                          std::to_string(size_of(collective.type)) + " bytes");
  }
  const auto input = reinterpret_cast<std::uintptr_t>(collective.input);
  const auto output = reinterpret_cast<std::uintptr_t>(collective.output);
  if (input != output && input < output + bytes && output < input + bytes) {
    raise_unsupported(job, operation,
                      "input and output overlap in part; they must be the same or apart");
  }
}

std::optional<Duration> to_deadline(const std::optional<double>& deadline) {
  if (!deadline) return std::nullopt;
  return to_duration(*deadline);
}

}  // namespace

Duration to_duration(double seconds) {
  if (std::isnan(seconds) || seconds < 0) {
    throw py::value_error("a duration must be a number of seconds, 0 or more");
  }
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(seconds, kMostSeconds)));
}

std::optional<Duration> to_limit(const std::optional<double>& seconds) {
  if (!seconds || std::isinf(*seconds)) return std::nullopt;
  return to_duration(*seconds);
}

double to_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

wire::MacAddress parse_mac(const std::string& text) {
  wire::MacAddress mac{};
  if (!parse_octets(text, ':', 16, mac.data(), mac.size())) {
    throw py::value_error("'" + text + "' is no MAC address; expected six hexadecimal octets, " +
                          "as in 02:50:43:00:01:00");
  }
  return mac;
}

std::string format_mac(const wire::MacAddress& mac) {
  std::array<char, 18> text{};
  std::snprintf(text.data(), text.size(), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
                mac[3], mac[4], mac[5]);
  return text.data();
}

std::uint32_t parse_ipv4(const std::string& text) {
  std::array<std::uint8_t, 4> octets{};
  if (!parse_octets(text, '.', 10, octets.data(), octets.size())) {
    throw py::value_error("'" + text + "' is no IPv4 address; expected four decimal octets, " +
                          "as in 10.0.1.1");
  }
  std::uint32_t address = 0;
  for (const std::uint8_t octet : octets) address = (address << 8U) | octet;
  return address;
}

std::string format_ipv4(std::uint32_t address) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    if (!text.empty()) text += '.';
    text += std::to_string((address >> static_cast<unsigned>(shift)) & 0xffU);
  }
  return text;
}

void raise(const Error& error) {
  const py::object type = py::module_::import("pycollective._core").attr("CoreError");
  const py::object exception = type(error.text());
  exception.attr("error") = py::cast(error);
  PyErr_SetObject(type.ptr(), exception.ptr());
  throw py::error_already_set();
}

void raise_unsupported(const JobConfig& job, const char* operation, const std::string& why) {
  Error error;
  error.code = ErrorCode::kUnsupported;
  error.job = job.job;
  error.rank = job.rank;
  error.operation = operation;
  error.detail = why;
  raise(error);
}

py::object to_python(const Error& error) {
  if (!error) return py::none();
  return py::cast(error);
}

HeldBuffer::HeldBuffer(const py::object& object, bool writable) {
  const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw py::error_already_set();
}

HeldBuffer::HeldBuffer(HeldBuffer&& other) noexcept : view_(std::exchange(other.view_, {})) {}

HeldBuffer& HeldBuffer::operator=(HeldBuffer&& other) noexcept {
  if (this != &other) {
    release();
    view_ = std::exchange(other.view_, {});
  }
  return *this;
}

void HeldBuffer::release() {
  // Taken out first: releasing may run Python code that comes back here.
  Py_buffer view = std::exchange(view_, {});
  if (view.obj != nullptr) PyBuffer_Release(&view);
}

std::string HeldBuffer::format() const {
  std::string format = view_.format == nullptr ? "B" : view_.format;
  // Native order; the machines we run on are little-endian.
  if (!format.empty() && std::string("@=<").find(format[0]) != std::string::npos)
    format.erase(0, 1);
  return format;
}

void Memory::release() {
  input.release();
  output.release();
  const py::object last = std::exchange(keep_alive, py::object());
}

Collective make_all_reduce(const JobConfig& job, const py::object& input, const py::object& output,
                           DataType type, wire::ReduceOp op, const std::optional<double>& deadline,
                           Memory& memory) {
  constexpr const char* kOperation = "all_reduce";
  memory.input = hold(job, kOperation, "input", input, false, type);
  memory.output = hold(job, kOperation, "output", output, true, type);
  if (memory.input.bytes() != memory.output.bytes()) {
    raise_unsupported(job, kOperation,
                      "the input has " + std::to_string(memory.input.bytes()) +
                          " bytes and the output " + std::to_string(memory.output.bytes()));
  }
  return make_all_reduce_at(job, reinterpret_cast<std::uintptr_t>(memory.input.data()),
                            reinterpret_cast<std::uintptr_t>(memory.output.data()),
                            memory.input.bytes() / size_of(type), type, op, deadline);
}

Collective make_all_reduce_at(const JobConfig& job, std::uintptr_t input, std::uintptr_t output,
                              std::size_t count, DataType type, wire::ReduceOp op,
                              const std::optional<double>& deadline) {
  Collective collective;
  collective.kind = CollectiveKind::kAllReduce;
  collective.op = op;
  collective.type = type;
  collective.input = reinterpret_cast<const void*>(input);
  collective.output = reinterpret_cast<void*>(output);
  collective.count = count;
  collective.deadline = to_deadline(deadline);
  check_arrays(job, "all_reduce", collective);
  return collective;
}

Collective make_broadcast(const JobConfig& job, const py::object& buffer, DataType type,
                          std::uint16_t root, const std::optional<double>& deadline,
                          Memory& memory) {
  memory.output = hold(job, "broadcast", "buffer", buffer, job.rank != root, type);
  return make_broadcast_at(job, reinterpret_cast<std::uintptr_t>(memory.output.data()),
                           memory.output.bytes() / size_of(type), type, root, deadline);
}

Collective make_broadcast_at(const JobConfig& job, std::uintptr_t address, std::size_t count,
                             DataType type, std::uint16_t root,
                             const std::optional<double>& deadline) {
  Collective collective;
  collective.kind = CollectiveKind::kBroadcast;
  collective.op = wire::ReduceOp::kCopy;
  collective.type = type;
  collective.input = reinterpret_cast<const void*>(address);
  collective.output = reinterpret_cast<void*>(address);
  collective.count = count;
  collective.root = root;
  collective.deadline = to_deadline(deadline);
  check_arrays(job, "broadcast", collective);
  return collective;
}

Collective make_barrier(const std::optional<double>& deadline) {
  Collective collective;
  collective.kind = CollectiveKind::kBarrier;
  collective.deadline = to_deadline(deadline);
  return collective;
}

bool handles_signals() { return static_cast<pid_t>(syscall(SYS_gettid)) == getpid(); }

}  // namespace pycollective::bindings
