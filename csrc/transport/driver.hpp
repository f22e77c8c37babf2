// One engine, one transport, one thread: carries frames between the two, tells the engine the time,
// and completes handles.
//
// The thread sleeps in ppoll until a frame, a submission or the engine's next deadline comes; it
// never spins. It touches no Python object. All public functions may be called from any thread, and
// none of them waits for the network except `wait_connected` and `next_completed`. After fork() the
// child has the object but not the thread: every function says so instead of hanging. Main types:
// Driver, DriverStatistics.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/engine.hpp"
#include "transport/handle.hpp"
#include "transport/transport.hpp"

namespace pycollective::transport {

// One consistent copy of what engine and transport have counted, at most one turn of the loop old.
struct DriverStatistics {
  State state = State::kConnecting;
  Statistics engine;
  TransportStatistics transport;
  std::uint64_t wakeups = 0;  // times the thread has slept and been woken
};

// A transport's failure as the engine's kind of error: kMtu or kTransport, with its text.
Error to_error(const TransportError& failure);

class Driver {
 public:
  // Starts the thread, and with it the engine's attempts to reach the switch. With
  // `completion_queue` every finished handle is also kept for `next_completed`. Throws EngineError
  // for a bad configuration and TransportError when the system refuses a thread.
  static std::shared_ptr<Driver> start(const JobConfig& job, std::unique_ptr<Transport> transport,
                                       bool completion_queue);
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Queues a collective in O(1). The memory it names must stay alive until the handle is done. A
  // driver that has failed or is closed gives a handle that is done already, with the reason; a
  // collective that the engine refuses ends with kUnsupported.
  std::shared_ptr<Handle> submit(const Collective& collective);

  // Sleeps until the engine has left its connecting state or the timeout has passed. True when it
  // has; `failure` tells whether the switch answered.
  bool wait_connected(std::chrono::nanoseconds timeout);

  // Why no further collective can be carried, if so.
  std::optional<Error> failure() const;

  // The next handle of the completion queue, in order of completion; null after the timeout (none:
  // for ever), and at once when the driver is closed and the queue empty.
  std::shared_ptr<Handle> next_completed(std::optional<std::chrono::nanoseconds> timeout);

  DriverStatistics statistics() const;

  // Fails what is outstanding with ErrorCode::kCancelled, ends the thread and closes the transport.
  // May be called often and from several threads; takes as long as one turn of the loop.
  void close();
  bool closed() const;

 private:
  struct Submission {
    std::shared_ptr<Handle> handle;
    Collective collective;
  };
  struct Delete;

  Driver(const JobConfig& job, std::unique_ptr<Transport> transport, bool completion_queue);
  ~Driver();

  bool forked() const;
  // An error that names this rank and job.
  Error own_error(ErrorCode code, std::string detail) const;
  Error forked_error() const;
  void wake();

  // The thread's own functions.
  void run();
  void loop();
  bool exchange(bool busy);
  void sleep();
  void begin_taken();
  bool receive();
  bool transmit();
  void finish_completed();
  void finish(const std::shared_ptr<Handle>& handle, Error error);
  void shut_down(const Error& reason);
  Error with_peer_condition(Error error) const;

  const pid_t owner_;  // the process that has the thread
  const bool completion_queue_;
  int wake_event_ = -1;

  // Of the thread alone.
  Engine engine_;
  std::unique_ptr<Transport> transport_;
  std::unordered_map<CollectiveId, std::shared_ptr<Handle>> running_;
  std::vector<Submission> taken_;
  std::vector<std::shared_ptr<Handle>> finished_;  // on their way to `completed_`
  bool blocked_ = false;  // the transport kept frames that it could not send
  std::uint64_t wakeups_ = 0;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<Submission> submitted_;
  std::deque<std::shared_ptr<Handle>> completed_;
  DriverStatistics published_;
  std::optional<Error> failure_;
  std::uint64_t next_id_ = 1;
  bool sleeping_ = false;
  bool stopping_ = false;
  bool stopped_ = false;

  std::mutex join_mutex_;
  std::thread thread_;
};

}  // namespace pycollective::transport
