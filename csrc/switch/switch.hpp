// A software switch: at most one program with its state, ports, and one thread that moves frames
// from ports through the program to ports. Control calls may come from any thread at any time; they
// take the lock that the packet thread holds for one batch. Main type: Switch.
//
// The thread sleeps in epoll while nothing comes in.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "switch/frame_sink.hpp"
#include "switch/pipeline.hpp"
#include "switch/port.hpp"
#include "switch/turnstile.hpp"

namespace p4emu {

// Where a port's frames are also written; no file when `path` is empty.
struct CaptureConfig {
  std::string path;
  std::uint64_t limit = 0;  // frames after which it ends; 0: never
};

struct SwitchCounts {
  PipelineCounts pipeline;         // since the program was loaded
  std::uint64_t no_program = 0;    // frames that came in while there was none
  std::uint64_t no_such_port = 0;  // frames that were to leave at a port that does not exist
};

class Switch {
 public:
  Switch();
  ~Switch();
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  // Replaces the program. Ports stay; tables, registers, counters and groups begin anew. `keep`
  // is held as long as the program is in use: the owner of its machine code. A null image pointer
  // leaves the switch without a program: every frame is dropped.
  void load(const ProgramImage* image, std::shared_ptr<void> keep);

  // Runs one frame through the program, as if it had come in at `port`. Thread-safe.
  void process(std::uint16_t port, std::span<const std::uint8_t> frame, FrameSink& sink);

  // Runs the frames in order, `rounds` times, as fast as it can; what comes out is counted and
  // thrown away. Returns seconds. For benchmarks.
  double measure(const std::vector<std::pair<std::uint16_t, std::vector<std::uint8_t>>>& frames,
                 std::uint64_t rounds);

  // Calls `change` with the pipeline under the lock. Throws SwitchError (kFailedPrecondition) when
  // no program is loaded.
  template <typename Function>
  auto with_pipeline(Function&& change) {
    const std::lock_guard lock(mutex_);
    return std::forward<Function>(change)(pipeline());
  }

  // Opens a port and returns the address it is bound to. Throws SwitchError: kAlreadyExists,
  // kInvalidArgument (number above 510, a capture that cannot be written), kUnavailable.
  std::string add_udp_port(std::uint16_t number, const std::string& host, std::uint16_t port,
                           const CaptureConfig& capture = {});
  // Makes one direction of a port's cable as bad as `config` says. Throws SwitchError (kNotFound,
  // kInvalidArgument).
  void impair(std::uint16_t number, Direction direction, const ImpairmentConfig& config,
              std::uint64_t seed);
  [[nodiscard]] std::map<std::uint16_t, std::pair<std::string, PortCounts>> ports() const;
  [[nodiscard]] SwitchCounts counts() const;

  // Starts or stops the packet thread. Both do nothing when it is so already.
  void start();
  void stop();
  [[nodiscard]] bool running() const;

 private:
  Pipeline& pipeline();
  [[nodiscard]] Port::Time since_start() const;
  void run();
  // One batch of the port, and everything that was to be sent on its account. Under the lock.
  void serve(std::uint16_t number, FrameSink& sink);
  // Frames held back for long enough go on; returns how long epoll may sleep, in milliseconds.
  int expire(FrameSink& sink);
  void take(std::uint16_t number, std::span<const std::uint8_t> frame, FrameSink& sink);

  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  mutable Turnstile mutex_;  // guards everything below but the thread and the file descriptors
  std::shared_ptr<void> keep_;
  std::unique_ptr<Pipeline> pipeline_;
  std::map<std::uint16_t, Port> ports_;
  Port::Time now_{0};  // of the batch that the packet thread works on
  std::uint64_t no_program_ = 0;
  std::uint64_t no_such_port_ = 0;

  int epoll_ = -1;
  int wake_ = -1;  // eventfd: readable when the thread has to end
  mutable std::mutex thread_mutex_;
  std::thread thread_;
};

}  // namespace p4emu
