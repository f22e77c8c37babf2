#include "transport/handle.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace pycollective::transport {
namespace {

using Clock = std::chrono::steady_clock;

// The kernel compares the word itself, so the address of the atomic must be that of a plain word.
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) &&
              std::atomic<std::uint32_t>::is_always_lock_free);

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* timeout) {
  // Woken, interrupted, changed before, or timed out: the caller looks again in every case.
  static_cast<void>(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, timeout, nullptr, 0));
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
  static_cast<void>(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0));
}

}  // namespace

bool Handle::wait(std::optional<std::chrono::nanoseconds> timeout) const {
  const Clock::time_point begin = Clock::now();
  while (!done()) {
    std::uint32_t expected = kPending;
    state_.compare_exchange_strong(expected, kAwaited);
    if (expected == kDone) return true;
    if (!timeout) {
      futex_wait(state_, kAwaited, nullptr);
      continue;
    }
    const std::chrono::nanoseconds left = *timeout - (Clock::now() - begin);
    if (left <= std::chrono::nanoseconds::zero()) return false;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec relative{static_cast<time_t>(seconds.count()),
                            static_cast<long>((left - seconds).count())};
    futex_wait(state_, kAwaited, &relative);
  }
  return true;
}

void Handle::complete(Error error) {
  error_ = std::move(error);
  if (state_.exchange(kDone, std::memory_order_acq_rel) == kAwaited) futex_wake_all(state_);
}

}  // namespace pycollective::transport
