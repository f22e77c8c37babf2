// A port of the switch: a kind of I/O, behind it a cable that may be bad in either direction, and a
// capture of what the switch sees: frames that came through the cable, and frames before they go
// into it. Not thread-safe: the switch serialises. Main types: Port, PortCounts.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "switch/impairment.hpp"
#include "switch/pcap.hpp"
#include "switch/port_io.hpp"

namespace p4emu {

enum class Direction : std::uint8_t { kReceive, kTransmit };

struct PortCounts {
  PortIoCounts io;
  ImpairmentCounts receive;
  ImpairmentCounts transmit;
  std::uint64_t capture_errors = 0;  // 1 when the capture ended because its file took no more
};

class Port {
 public:
  using Time = Impairment::Time;

  explicit Port(std::unique_ptr<PortIo> io, std::unique_ptr<PcapWriter> capture = nullptr)
      : io_(std::move(io)), capture_(std::move(capture)) {}

  [[nodiscard]] int fd() const { return io_->fd(); }
  [[nodiscard]] std::string address() const { return io_->address(); }
  [[nodiscard]] PortCounts counts() const;

  // From now on that direction is as `config` says. Frames already held back stay so.
  void impair(Direction direction, const ImpairmentConfig& config, std::uint64_t seed);

  // Takes a batch of waiting frames and calls `in` for each that comes through.
  template <std::invocable<std::span<const std::uint8_t>> In>
  void receive(Time now, In&& in) {
    for (const std::span<const std::uint8_t> frame : io_->receive()) {
      if (impaired_[0]) {
        side(Direction::kReceive).pass(now, frame, [&](auto through) { deliver(through, in); });
      } else {
        deliver(frame, in);
      }
    }
  }

  // Sends a frame; it leaves with the next flush at the latest, if the cable lets it.
  void send(Time now, std::span<const std::uint8_t> frame);
  // Sends what is queued, and brings the capture into its file.
  void flush();

  // Lets go of frames whose hold limit has come: sends them, or calls `in` for them.
  template <std::invocable<std::span<const std::uint8_t>> In>
  void expire(Time now, In&& in) {
    side(Direction::kReceive).expire(now, [&](auto frame) { deliver(frame, in); });
    side(Direction::kTransmit).expire(now, [&](auto frame) { io_->queue(frame); });
  }
  // When `expire` has something to do, if it ever will.
  [[nodiscard]] std::optional<Time> next_deadline() const;

 private:
  template <typename In>
  void deliver(std::span<const std::uint8_t> frame, In&& in) {
    if (capture_ != nullptr) record(frame);
    in(frame);
  }
  void record(std::span<const std::uint8_t> frame);
  // A capture that cannot be written ends; the switch goes on.
  void end_capture();
  Impairment& side(Direction direction) { return sides_[static_cast<std::size_t>(direction)]; }

  std::unique_ptr<PortIo> io_;
  std::unique_ptr<PcapWriter> capture_;
  std::uint64_t capture_errors_ = 0;
  std::array<Impairment, 2> sides_{};
  std::array<bool, 2> impaired_{};  // whether frames take the way through their side's impairment
};

}  // namespace p4emu
