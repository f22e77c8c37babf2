// A connection of one rank for Python: a driver over UDP, and the Python objects that own the
// memory its collectives use.
//
// The I/O thread never touches Python: it completes C++ handles, and the references that kept a
// collective's memory alive are dropped later, by whichever Python thread comes by with the GIL
// (waiting, submitting, asking, closing).
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "bindings/core.hpp"
#include "transport/driver.hpp"
#include "transport/udp.hpp"

namespace pycollective::bindings {
namespace {

using transport::Driver;
using transport::DriverStatistics;
using transport::UdpConfig;
using transport::UdpTransport;

// A submitted collective: the core's handle and the memory it uses until it is done.
class Outstanding {
 public:
  Outstanding(std::shared_ptr<transport::Handle> handle, Memory memory)
      : handle_(std::move(handle)), memory_(std::move(memory)) {
    release_if_done();
  }

  std::uint64_t id() const { return handle_->id(); }

  bool done() const { return handle_->done(); }

  bool release_if_done() {
    if (!done()) return false;
    memory_.release();
    return true;
  }

  bool wait(const std::optional<double>& timeout) {
    wait_without_gil(to_limit(timeout),
                     [this](std::optional<Duration> slice) { return handle_->wait(slice); });
    return release_if_done();
  }

  py::object error() const {
    if (!handle_->done()) return py::none();
    return to_python(handle_->error());
  }

 private:
  std::shared_ptr<transport::Handle> handle_;
  Memory memory_;
};

class Connection {
 public:
  struct Endpoint {
    std::string local;
    std::string remote;
    std::size_t receive_buffer = 0;
    std::size_t receive_buffer_wanted = 0;
  };

  Connection(const JobConfig& job, std::shared_ptr<Driver> driver, Endpoint endpoint,
             bool completion_queue)
      : job_(job),
        driver_(std::move(driver)),
        endpoint_(std::move(endpoint)),
        completion_queue_(completion_queue) {}
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  std::shared_ptr<Outstanding> submit(const Collective& collective, Memory memory) {
    release_finished();
    auto outstanding =
        std::make_shared<Outstanding>(driver_->submit(collective), std::move(memory));
    // Also those that are done already: `next_completed` looks for them here.
    if (outstanding->id() != 0) outstanding_.emplace(outstanding->id(), outstanding);
    return outstanding;
  }

  std::shared_ptr<Outstanding> next_completed(const std::optional<double>& timeout) {
    if (!completion_queue_) {
      throw std::runtime_error(
          "next_completed: the connection was made without completion_queue=True");
    }
    std::shared_ptr<transport::Handle> handle;
    wait_without_gil(to_limit(timeout), [&](std::optional<Duration> slice) {
      handle = driver_->next_completed(slice);
      return handle != nullptr || driver_->closed();
    });
    if (!handle) return nullptr;
    // Submitting enters it here before it lets go of the GIL, so it is there.
    std::shared_ptr<Outstanding> outstanding =
        std::move(outstanding_.extract(handle->id()).mapped());
    outstanding->release_if_done();
    return outstanding;
  }

  void close() {
    {
      const py::gil_scoped_release release;
      driver_->close();
    }
    release_finished();
  }

  bool closed() const { return driver_->closed(); }
  py::object failure() const {
    const auto failure = driver_->failure();
    return failure ? to_python(*failure) : py::none();
  }
  DriverStatistics statistics() {
    release_finished();
    return driver_->statistics();
  }
  const JobConfig& job() const { return job_; }
  const Endpoint& endpoint() const { return endpoint_; }
  const std::shared_ptr<Driver>& driver() const { return driver_; }

 private:
  // Drops what finished collectives held. They finish in order, so this looks at each of them once
  // and at the oldest unfinished one: O(1) for each submission. Dropping may run Python code, and
  // with it other threads: nothing is relied upon across it.
  void release_finished() {
    for (;;) {
      const auto it = outstanding_.upper_bound(released_);
      if (it == outstanding_.end() || !it->second->done()) return;
      const std::shared_ptr<Outstanding> finished = it->second;
      released_ = it->first;
      if (!completion_queue_) outstanding_.erase(it);
      finished->release_if_done();
    }
  }

  JobConfig job_;
  std::shared_ptr<Driver> driver_;
  Endpoint endpoint_;
  bool completion_queue_;
  // Guarded by the GIL. With a completion queue, what nobody has fetched yet stays here.
  std::map<std::uint64_t, std::shared_ptr<Outstanding>> outstanding_;
  std::uint64_t released_ = 0;  // up to this handle memory has been released
};

py::object connect(JobConfig job, const std::string& remote,
                   const std::optional<std::string>& local, std::optional<std::size_t> mtu,
                   const std::optional<double>& connect_timeout, bool completion_queue) {
  if (connect_timeout) job.timers.connect_timeout = to_duration(*connect_timeout);
  if (const Error error = validate(job)) raise(error);
  Connection::Endpoint endpoint;
  std::shared_ptr<Driver> driver;
  try {
    const py::gil_scoped_release release;  // resolving a name may take long
    auto socket =
        std::make_unique<UdpTransport>(UdpConfig{.remote = remote,
                                                 .local = local.value_or(""),
                                                 .max_frame = wire::frame_bytes(job.lanes),
                                                 .window = job.slots,
                                                 .mtu = mtu});
    endpoint = {.local = socket->local_address(),
                .remote = socket->remote_address(),
                .receive_buffer = socket->receive_buffer(),
                .receive_buffer_wanted = socket->receive_buffer_wanted()};
    driver = Driver::start(job, std::move(socket), completion_queue);
  } catch (const transport::TransportError& failure) {
    Error error = transport::to_error(failure);
    error.job = job.job;
    error.rank = job.rank;
    raise(error);
  }
  // The engine's own timer bounds this wait.
  wait_without_gil(std::nullopt, [&](std::optional<Duration> slice) {
    return driver->wait_connected(slice.value_or(std::chrono::hours(1)));
  });
  if (const auto failure = driver->failure()) {
    driver->close();
    raise(*failure);
  }
  py::object connection =
      py::cast(std::make_shared<Connection>(job, driver, std::move(endpoint), completion_queue));
  // At interpreter exit the thread must be gone before the memory it writes to is.
  py::module_::import("weakref").attr("finalize")(connection, py::cpp_function([driver] {
                                                    const py::gil_scoped_release release;
                                                    driver->close();
                                                  }));
  return connection;
}

}  // namespace

void bind_connection(py::module_& module) {
  py::class_<Outstanding, std::shared_ptr<Outstanding>>(module, "Handle")
      .def_property_readonly("id", &Outstanding::id)
      .def("wait", &Outstanding::wait, py::arg("timeout") = py::none())
      .def("done", &Outstanding::release_if_done)
      .def_property_readonly("error", &Outstanding::error);

  const auto endpoint = [](auto Connection::Endpoint::* field) {
    return [field](const Connection& self) { return self.endpoint().*field; };
  };
  py::class_<Connection, std::shared_ptr<Connection>>(module, "Connection")
      .def_static("connect", &connect, py::arg("config"), py::arg("remote"),
                  py::arg("local") = py::none(), py::kw_only(), py::arg("mtu") = py::none(),
                  py::arg("connect_timeout") = py::none(), py::arg("completion_queue") = false)
      .def(
          "all_reduce",
          [](Connection& self, const py::object& input, const py::object& output, DataType type,
             wire::ReduceOp op, const std::optional<double>& deadline, std::uint32_t signature) {
            Memory memory;
            Collective collective =
                make_all_reduce(self.job(), input, output, type, op, deadline, memory);
            collective.signature = signature;
            return self.submit(collective, std::move(memory));
          },
          py::arg("input"), py::arg("output"), py::arg("dtype"),
          py::arg("op") = wire::ReduceOp::kSum, py::kw_only(), py::arg("deadline") = py::none(),
          py::arg("signature") = 0)
      .def(
          "all_reduce_ptr",
          [](Connection& self, std::uintptr_t input, std::uintptr_t output, std::size_t count,
             DataType type, wire::ReduceOp op, py::object keep_alive,
             const std::optional<double>& deadline, std::uint32_t signature) {
            Memory memory;
            memory.keep_alive = std::move(keep_alive);
            Collective collective =
                make_all_reduce_at(self.job(), input, output, count, type, op, deadline);
            collective.signature = signature;
            return self.submit(collective, std::move(memory));
          },
          py::arg("input_address"), py::arg("output_address"), py::arg("count"), py::arg("dtype"),
          py::arg("op") = wire::ReduceOp::kSum, py::arg("keep_alive") = py::none(), py::kw_only(),
          py::arg("deadline") = py::none(), py::arg("signature") = 0)
      .def(
          "broadcast",
          [](Connection& self, const py::object& buffer, DataType type, std::uint16_t root,
             const std::optional<double>& deadline, std::uint32_t signature) {
            Memory memory;
            Collective collective =
                make_broadcast(self.job(), buffer, type, root, deadline, memory);
            collective.signature = signature;
            return self.submit(collective, std::move(memory));
          },
          py::arg("buffer"), py::arg("dtype"), py::arg("root"), py::kw_only(),
          py::arg("deadline") = py::none(), py::arg("signature") = 0)
      .def(
          "broadcast_ptr",
          [](Connection& self, std::uintptr_t address, std::size_t count, DataType type,
             std::uint16_t root, py::object keep_alive, const std::optional<double>& deadline,
             std::uint32_t signature) {
            Memory memory;
            memory.keep_alive = std::move(keep_alive);
            Collective collective =
                make_broadcast_at(self.job(), address, count, type, root, deadline);
            collective.signature = signature;
            return self.submit(collective, std::move(memory));
          },
          py::arg("address"), py::arg("count"), py::arg("dtype"), py::arg("root"),
          py::arg("keep_alive") = py::none(), py::kw_only(), py::arg("deadline") = py::none(),
          py::arg("signature") = 0)
      .def(
          "barrier",
          [](Connection& self, const std::optional<double>& deadline) {
            return self.submit(make_barrier(deadline), Memory{});
          },
          py::kw_only(), py::arg("deadline") = py::none())
      .def("next_completed", &Connection::next_completed, py::arg("timeout") = py::none())
      .def("statistics", &Connection::statistics)
      .def("close", &Connection::close)
      .def_property_readonly("closed", &Connection::closed)
      .def_property_readonly("failure", &Connection::failure)
      .def_property_readonly("config", [](const Connection& self) { return self.job(); })
      .def_property_readonly("local_address", endpoint(&Connection::Endpoint::local))
      .def_property_readonly("remote_address", endpoint(&Connection::Endpoint::remote))
      .def_property_readonly("receive_buffer", endpoint(&Connection::Endpoint::receive_buffer))
      .def_property_readonly("receive_buffer_wanted",
                             endpoint(&Connection::Endpoint::receive_buffer_wanted))
      .def("__enter__", [](const py::object& self) { return self; })
      .def("__exit__", [](Connection& self, const py::args&) { self.close(); });
}

}  // namespace pycollective::bindings
