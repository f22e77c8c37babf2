// What the parts of the extension module `pycollective._core` share: how durations, addresses,
// buffers and errors cross between Python and C++. One bind_* function a part.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/collective.hpp"
#include "engine/config.hpp"
#include "engine/error.hpp"

namespace pycollective::bindings {

namespace py = pybind11;

void bind_wire(py::module_& module);
void bind_numeric(py::module_& module);
void bind_engine(py::module_& module);      // enumerations, errors, configuration, statistics
void bind_connection(py::module_& module);  // needs bind_engine
void bind_simulation(py::module_& module);  // needs bind_engine

// --- values ----------------------------------------------------------------------------------

// Seconds to a duration. Throws ValueError when negative or not a number; more than a century
// counts as a century.
Duration to_duration(double seconds);
// The same where None (and infinity) means "no limit".
std::optional<Duration> to_limit(const std::optional<double>& seconds);
double to_seconds(Duration duration);

// "02:50:43:00:01:00" and "10.0.1.1". Parsing throws ValueError.
wire::MacAddress parse_mac(const std::string& text);
std::string format_mac(const wire::MacAddress& mac);
std::uint32_t parse_ipv4(const std::string& text);
std::string format_ipv4(std::uint32_t address);

// --- errors ----------------------------------------------------------------------------------

// Raises pycollective._core.CoreError.
[[noreturn]] void raise(const Error& error);
// One of code kUnsupported.
[[noreturn]] void raise_unsupported(const JobConfig& job, const char* operation,
                                    const std::string& why);

// None for kNone.
py::object to_python(const Error& error);

// --- buffers ---------------------------------------------------------------------------------

// A C-contiguous buffer of a Python object, kept exported (so that it can be neither resized nor
// freed) until this is destroyed. Made, moved and destroyed with the GIL only.
class HeldBuffer {
 public:
  HeldBuffer() = default;
  // Throws py::error_already_set (BufferError, TypeError).
  HeldBuffer(const py::object& object, bool writable);
  HeldBuffer(HeldBuffer&& other) noexcept;
  HeldBuffer& operator=(HeldBuffer&& other) noexcept;
  ~HeldBuffer() { release(); }

  void release();
  void* data() const { return view_.buf; }
  std::size_t bytes() const { return static_cast<std::size_t>(view_.len); }
  std::size_t item_bytes() const { return static_cast<std::size_t>(view_.itemsize); }
  // struct-module format without byte order, "B" when there is none.
  std::string format() const;

 private:
  Py_buffer view_{};
};

// The memory of one collective: what Python must keep alive, and where it is.
struct Memory {
  HeldBuffer input;
  HeldBuffer output;
  py::object keep_alive;

  void release();
};

// Collectives over whole buffers or over addresses, with the checks that need no engine: element
// format, equal sizes, alignment, overlap. They raise CoreError (UNSUPPORTED).
Collective make_all_reduce(const JobConfig& job, const py::object& input, const py::object& output,
                           DataType type, wire::ReduceOp op, const std::optional<double>& deadline,
                           Memory& memory);
Collective make_all_reduce_at(const JobConfig& job, std::uintptr_t input, std::uintptr_t output,
                              std::size_t count, DataType type, wire::ReduceOp op,
                              const std::optional<double>& deadline);
Collective make_broadcast(const JobConfig& job, const py::object& buffer, DataType type,
                          std::uint16_t root, const std::optional<double>& deadline,
                          Memory& memory);
Collective make_broadcast_at(const JobConfig& job, std::uintptr_t address, std::size_t count,
                             DataType type, std::uint16_t root,
                             const std::optional<double>& deadline);
Collective make_barrier(const std::optional<double>& deadline);

// --- waiting ---------------------------------------------------------------------------------

// Whether Python runs its signal handlers on this thread.
bool handles_signals();

// How long a main thread sleeps before it looks whether Ctrl-C was pressed.
inline constexpr Duration kSignalInterval = std::chrono::milliseconds(50);

// Calls `wait(limit)` without the GIL until it returns true or the time is over; signal handlers
// run in between and may raise.
template <typename Wait>
bool wait_without_gil(std::optional<Duration> timeout, Wait&& wait) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (;;) {
    std::optional<Duration> left;
    if (timeout) left = std::max(*timeout - Duration(Clock::now() - begin), Duration::zero());
    std::optional<Duration> slice = left;
    if (handles_signals() && (!slice || *slice > kSignalInterval)) slice = kSignalInterval;
    {
      const py::gil_scoped_release release;
      if (wait(slice)) return true;
    }
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (left && *left <= slice.value_or(Duration::max())) return false;
  }
}

}  // namespace pycollective::bindings
