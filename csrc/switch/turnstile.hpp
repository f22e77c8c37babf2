// A mutex that cannot be hogged. The packet thread takes its lock again right after it let go of
// it; with a plain mutex a control call that has to wake up first would lose that race for as long
// as packets keep coming. Main type: Turnstile.
#pragma once

#include <mutex>

namespace p4emu {

// A BasicLockable. Whoever waits for the inner mutex keeps the gate shut, so that the one who just
// let go queues behind it.
class Turnstile {
 public:
  void lock() {
    const std::lock_guard<std::mutex> gate(gate_);
    mutex_.lock();
  }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex gate_;
  std::mutex mutex_;
};

}  // namespace p4emu
