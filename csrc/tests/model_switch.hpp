// A stand-in for a switch on a loopback UDP port, for tests of what carries frames: it answers
// probes, and as the job has one rank, every contribution is its own result. It knows no slots and
// adds nothing; what a switch does is tested with the real P4 program.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/config.hpp"
#include "tests/check.hpp"
#include "wire/frame.hpp"

namespace pycollective::test {

inline constexpr std::uint16_t kModelLanes = 16;

// The only rank of a job on the model switch.
inline JobConfig model_job() {
  JobConfig job;
  job.job = 1;
  job.epoch = 1;
  job.slots = 8;
  job.lanes = kModelLanes;
  job.mac = {0x02, 0x50, 0x43, 0x00, 0x01, 0x00};
  job.switch_mac = {0x02, 0x50, 0x43, 0xff, 0xff, 0xfe};
  job.ipv4 = 0x0a000101;
  job.switch_ipv4 = 0x0afffffe;
  return job;
}

class ModelSwitch {
 public:
  ModelSwitch() {
    REQUIRE(socket_ >= 0 && stop_ >= 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    socklen_t size = sizeof(address);
    REQUIRE_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { run(); });
  }
  ~ModelSwitch() {
    const std::uint64_t one = 1;
    static_cast<void>(!write(stop_, &one, sizeof(one)));
    thread_.join();
    close(socket_);
    close(stop_);
  }
  ModelSwitch(const ModelSwitch&) = delete;
  ModelSwitch& operator=(const ModelSwitch&) = delete;

  const std::string& address() const { return address_; }

  // Whether contributions get results; without, collectives wait for ever.
  std::atomic<bool> answers{true};
  std::atomic<std::uint64_t> contributions{0};

 private:
  void run() {
    std::vector<std::uint8_t> bytes(2048);
    for (;;) {
      std::array<pollfd, 2> ready{{{socket_, POLLIN, 0}, {stop_, POLLIN, 0}}};
      if (poll(ready.data(), ready.size(), -1) < 0) continue;
      if (ready[1].revents != 0) return;
      sockaddr_in from{};
      socklen_t size = sizeof(from);
      const ssize_t length = recvfrom(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT,
                                      reinterpret_cast<sockaddr*>(&from), &size);
      if (length < 0) continue;
      wire::Frame frame;
      if (wire::parse_frame({bytes.data(), static_cast<std::size_t>(length)}, frame) !=
          wire::FrameError::kNone) {
        continue;
      }
      if (frame.header.opcode == wire::Opcode::kProbe) {
        frame.header.opcode = wire::Opcode::kProbeReply;
        frame.header.flags = 0;
        frame.header.lane_count = kModelLanes;
      } else {
        ++contributions;
        if (!answers) continue;
        frame.header.opcode = wire::Opcode::kResult;
      }
      std::swap(frame.addresses.source_mac, frame.addresses.destination_mac);
      std::swap(frame.addresses.source_ipv4, frame.addresses.destination_ipv4);
      const wire::FrameWriter writer(frame.addresses, kModelLanes);
      const std::size_t out = writer.finish(frame.header, bytes);
      static_cast<void>(
          sendto(socket_, bytes.data(), out, 0, reinterpret_cast<sockaddr*>(&from), size));
    }
  }

  int socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  int stop_ = eventfd(0, EFD_CLOEXEC);
  std::string address_;
  std::thread thread_;
};

}  // namespace pycollective::test
