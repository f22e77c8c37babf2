// A lock that serves in the order of asking. The packet thread takes its lock again right after it
// let go of it; with a plain mutex a control call, which has to wake up first, would lose that race
// for as long as packets keep coming. Main type: Turnstile.
#pragma once

#include <atomic>
#include <cstdint>

namespace p4emu {

// A BasicLockable: a ticket lock whose waiters sleep.
class Turnstile {
 public:
  void lock() {
    const std::uint32_t ticket = next_.fetch_add(1, std::memory_order_relaxed);
    for (;;) {
      const std::uint32_t serving = serving_.load(std::memory_order_acquire);
      if (serving == ticket) return;
      serving_.wait(serving, std::memory_order_acquire);
    }
  }

  void unlock() {
    serving_.fetch_add(1, std::memory_order_release);
    serving_.notify_all();
  }

 private:
  std::atomic<std::uint32_t> next_{0};
  std::atomic<std::uint32_t> serving_{0};
};

}  // namespace p4emu
