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
#include "switch/udp_port.hpp"

namespace p4emu {

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
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::forward<Function>(change)(pipeline());
  }

  // Opens a port and returns the address it is bound to. Throws SwitchError: kAlreadyExists,
  // kInvalidArgument (number above 510), kUnavailable.
  std::string add_udp_port(std::uint16_t number, const std::string& host, std::uint16_t port);
  void capture(std::uint16_t number, const std::string& path, std::uint64_t limit);
  [[nodiscard]] std::map<std::uint16_t, std::pair<std::string, PortCounts>> ports() const;
  // Frames that were to leave at a port that does not exist.
  [[nodiscard]] std::uint64_t no_such_port() const;

  // Starts or stops the packet thread. Both do nothing when it is so already.
  void start();
  void stop();
  [[nodiscard]] bool running() const { return thread_.joinable(); }

 private:
  Pipeline& pipeline();
  [[nodiscard]] std::uint64_t microseconds() const;
  void run();
  UdpPort& port(std::uint16_t number);

  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;  // guards everything below but the thread and the file descriptors
  std::shared_ptr<void> keep_;
  std::unique_ptr<Pipeline> pipeline_;
  std::map<std::uint16_t, std::unique_ptr<UdpPort>> ports_;
  std::uint64_t no_such_port_ = 0;

  int epoll_ = -1;
  int wake_ = -1;  // eventfd: readable when the thread has to end
  std::mutex thread_mutex_;
  std::thread thread_;
};

}  // namespace p4emu
