#include "transport/driver.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace pycollective::transport {
namespace {

std::chrono::nanoseconds clock_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

// Signals are for the program's own threads; only what a thread brings upon itself stays open.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t mask;
    sigfillset(&mask);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&mask, own);
    pthread_sigmask(SIG_SETMASK, &mask, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

Error make_error(ErrorCode code, std::string detail) {
  Error error;
  error.code = code;
  error.detail = std::move(detail);
  return error;
}

timespec to_timespec(std::chrono::nanoseconds span) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(span);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((span - seconds).count())};
}

}  // namespace

Error to_error(const TransportError& failure) {
  const bool mtu = failure.kind == TransportError::Kind::kMtu;
  Error error = make_error(mtu ? ErrorCode::kMtu : ErrorCode::kTransport, failure.what());
  error.expected = failure.needed;
  error.found = failure.available;
  return error;
}

// In a child of fork() the thread does not exist and a condition variable may count waiters that do
// not exist either: neither can be destroyed, so the child leaves the copy where it is.
struct Driver::Delete {
  void operator()(Driver* driver) const {
    if (!driver->forked()) delete driver;
  }
};

std::shared_ptr<Driver> Driver::start(const JobConfig& job, std::unique_ptr<Transport> transport,
                                      bool completion_queue) {
  std::shared_ptr<Driver> driver(new Driver(job, std::move(transport), completion_queue), Delete{});
  driver->wake_event_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (driver->wake_event_ < 0) {
    throw TransportError(TransportError::Kind::kSystem,
                         std::string("cannot create an eventfd: ") + std::strerror(errno), errno);
  }
  const SignalsBlocked blocked;
  try {
    driver->thread_ = std::thread([self = driver.get()] { self->run(); });
  } catch (const std::system_error& error) {
    throw TransportError(TransportError::Kind::kSystem,
                         std::string("cannot start the I/O thread: ") + error.what(),
                         error.code().value());
  }
  pthread_setname_np(driver->thread_.native_handle(), "pycollective-io");
  return driver;
}

Driver::Driver(const JobConfig& job, std::unique_ptr<Transport> transport, bool completion_queue)
    : owner_(getpid()),
      completion_queue_(completion_queue),
      engine_(job),
      transport_(std::move(transport)) {
  if (transport_->max_frame() < engine_.max_frame_bytes()) {
    throw std::invalid_argument(
        "Driver: the transport's frames are " + std::to_string(transport_->max_frame()) +
        " bytes long, the engine needs " + std::to_string(engine_.max_frame_bytes()));
  }
}

Driver::~Driver() {
  close();
  if (wake_event_ >= 0) ::close(wake_event_);
}

bool Driver::forked() const { return getpid() != owner_; }

Error Driver::own_error(ErrorCode code, std::string detail) const {
  Error error = make_error(code, std::move(detail));
  error.job = engine_.config().job;
  error.rank = engine_.config().rank;
  return error;
}

Error Driver::forked_error() const {
  return own_error(ErrorCode::kCancelled, "this process was forked from process " +
                                              std::to_string(owner_) +
                                              ", which owns the connection; connect after the "
                                              "fork");
}

std::shared_ptr<Handle> Driver::submit(const Collective& collective) {
  if (forked()) {
    // Not even the mutex may be touched: the parent's thread may have held it.
    auto handle = std::make_shared<Handle>(0);
    handle->complete(forked_error());
    return handle;
  }
  std::shared_ptr<Handle> handle;
  bool sleeping = false;
  {
    const std::lock_guard lock(mutex_);
    handle = std::make_shared<Handle>(next_id_++);
    if (failure_) {
      handle->complete(*failure_);
      if (completion_queue_) {
        completed_.push_back(handle);
        changed_.notify_all();
      }
      return handle;
    }
    submitted_.push_back({handle, collective});
    sleeping = std::exchange(sleeping_, false);
  }
  if (sleeping) wake();
  return handle;
}

bool Driver::wait_connected(std::chrono::nanoseconds timeout) {
  if (forked()) return true;
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout,
                           [this] { return published_.state != State::kConnecting || failure_; });
}

std::optional<Error> Driver::failure() const {
  if (forked()) return forked_error();
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::shared_ptr<Handle> Driver::next_completed(std::optional<std::chrono::nanoseconds> timeout) {
  if (forked()) return nullptr;
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return !completed_.empty() || stopped_; };
  if (timeout) {
    changed_.wait_for(lock, *timeout, ready);
  } else {
    changed_.wait(lock, ready);
  }
  if (completed_.empty()) return nullptr;
  std::shared_ptr<Handle> handle = std::move(completed_.front());
  completed_.pop_front();
  return handle;
}

DriverStatistics Driver::statistics() const {
  if (forked()) return {};
  const std::lock_guard lock(mutex_);
  return published_;
}

bool Driver::closed() const {
  if (forked()) return true;
  const std::lock_guard lock(mutex_);
  return stopped_;
}

void Driver::close() {
  if (forked()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  const std::lock_guard lock(join_mutex_);
  if (!thread_.joinable()) return;
  wake();
  thread_.join();
  transport_.reset();
}

void Driver::wake() {
  const std::uint64_t one = 1;
  // It can only fail when the counter is full, and then the thread has a wake to read anyway.
  static_cast<void>(!write(wake_event_, &one, sizeof(one)));
}

// --- the thread ------------------------------------------------------------------------------

void Driver::run() {
  Error reason = own_error(ErrorCode::kCancelled, "the connection was closed");
  try {
    loop();
    engine_.cancel_all(reason);
    finish_completed();
  } catch (const std::exception& error) {
    reason =
        own_error(ErrorCode::kTransport, std::string("the I/O thread failed: ") + error.what());
  }
  shut_down(reason);
}

void Driver::loop() {
  bool busy = true;  // there may be more to do at once
  while (!exchange(busy)) {
    if (!busy && taken_.empty()) sleep();
    begin_taken();
    busy = receive();
    const std::chrono::nanoseconds now = clock_now();
    if (const auto deadline = engine_.next_deadline(); deadline && *deadline <= now) {
      engine_.on_timer(now);
    }
    busy |= transmit();
    if (const auto failure = transport_->failure(); failure && engine_.state() != State::kFailed) {
      Error error = to_error(*failure);
      error.job = engine_.config().job;
      error.rank = engine_.config().rank;
      engine_.cancel_all(std::move(error));
    }
    finish_completed();
  }
}

// The one place where the thread and its users meet: publishes what the last turn did, takes what
// was submitted, and says whether to stop.
bool Driver::exchange(bool busy) {
  const std::lock_guard lock(mutex_);
  const State state = engine_.state();
  const bool news = state != published_.state || !finished_.empty();
  published_ = {state, engine_.statistics(), transport_->statistics(), wakeups_};
  if (state == State::kFailed && !failure_) failure_ = with_peer_condition(engine_.failure());
  std::move(finished_.begin(), finished_.end(), std::back_inserter(completed_));
  finished_.clear();
  taken_.swap(submitted_);
  sleeping_ = !busy && taken_.empty();
  if (news) changed_.notify_all();
  return stopping_;
}

void Driver::sleep() {
  // A transport that has failed has nothing to say, and its descriptor may be ready for ever.
  const bool failed = transport_->failure().has_value();
  const short events = static_cast<short>(blocked_ ? POLLIN | POLLOUT : POLLIN);
  std::array<pollfd, 2> descriptors{{
      {failed ? -1 : transport_->descriptor(), events, 0},
      {wake_event_, POLLIN, 0},
  }};
  timespec timeout{};
  const auto deadline = engine_.next_deadline();
  if (deadline) {
    timeout = to_timespec(std::max(*deadline - clock_now(), std::chrono::nanoseconds::zero()));
  }
  ppoll(descriptors.data(), descriptors.size(), deadline ? &timeout : nullptr, nullptr);
  ++wakeups_;
  if (descriptors[1].revents != 0) {
    std::uint64_t count = 0;
    static_cast<void>(!read(wake_event_, &count, sizeof(count)));
  }
}

void Driver::begin_taken() {
  for (Submission& submission : taken_) {
    try {
      running_.emplace(engine_.submit(submission.collective), submission.handle);
    } catch (const EngineError& error) {
      finish(submission.handle, error.error());
    }
  }
  taken_.clear();
}

// True when there may be more to receive.
bool Driver::receive() {
  const auto frames = transport_->receive();
  if (frames.empty()) return false;
  const std::chrono::nanoseconds now = clock_now();
  for (const auto frame : frames) engine_.on_datagram(now, frame);
  return frames.size() >= kBatch;
}

// Sends one batch, so that receiving gets its turn; true when there may be more to send.
bool Driver::transmit() {
  bool more = true;
  if (!blocked_) {
    const std::chrono::nanoseconds now = clock_now();
    for (auto buffer = transport_->next_buffer(); !buffer.empty();
         buffer = transport_->next_buffer()) {
      const std::size_t length = engine_.poll_transmit(now, buffer);
      if (length == 0) {
        more = false;
        break;
      }
      transport_->commit(length);
    }
  }
  const SendState state = transport_->flush();
  blocked_ = state == SendState::kBlocked;
  return more && state == SendState::kSent;
}

void Driver::finish_completed() {
  Completion completion;
  bool published = false;
  while (engine_.poll_completion(completion)) {
    if (!std::exchange(published, true)) {
      // Whoever waits for the collective finds it in the statistics when the wait is over.
      const std::lock_guard lock(mutex_);
      // The state is left to `exchange`, which tells those who wait for it.
      published_.engine = engine_.statistics();
      published_.transport = transport_->statistics();
    }
    const auto it = running_.find(completion.id);
    if (it == running_.end()) continue;
    finish(it->second, with_peer_condition(std::move(completion.error)));
    running_.erase(it);
  }
}

void Driver::finish(const std::shared_ptr<Handle>& handle, Error error) {
  handle->complete(std::move(error));
  if (completion_queue_) finished_.push_back(handle);
}

// What the network has said about the far end is worth knowing when nothing came from there.
Error Driver::with_peer_condition(Error error) const {
  if ((error.code == ErrorCode::kSwitchUnreachable || error.code == ErrorCode::kDeadlineExceeded) &&
      error.detail.empty()) {
    error.detail = transport_->peer_condition();
  }
  return error;
}

void Driver::shut_down(const Error& reason) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = reason;
  for (const Submission& submission : taken_) finish(submission.handle, *failure_);
  for (const Submission& submission : submitted_) finish(submission.handle, *failure_);
  for (const auto& [id, handle] : running_) finish(handle, *failure_);
  taken_.clear();
  submitted_.clear();
  running_.clear();
  published_ = {State::kFailed, engine_.statistics(), transport_->statistics(), wakeups_};
  std::move(finished_.begin(), finished_.end(), std::back_inserter(completed_));
  finished_.clear();
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace pycollective::transport
