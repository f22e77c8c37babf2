// Finding the switch before the first collective: probes until one with full lanes is answered.
//
// Every round sends a full-sized probe, whose answer proves that frames with data pass. From the
// second round on a short one goes along: its answer does not connect, but tells a switch that is
// not there from a path that is too narrow and from a program with another number of lanes. The
// number of a probe travels in `sequence`: even for full ones, odd for short ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/config.hpp"
#include "engine/error.hpp"
#include "engine/time.hpp"
#include "wire/frame.hpp"

namespace pycollective {

class Prober {
 public:
  explicit Prober(const JobConfig& config) : config_(config) {}

  // Writes the next probe that is due, or returns 0. The first call starts the connect timeout.
  std::size_t poll_transmit(Time now, const wire::FrameWriter& writer,
                            std::span<std::uint8_t> frame);

  enum class Reply : std::uint8_t {
    kConnected,
    kNoted,   // to a short probe
    kStale,   // to no probe of this engine
    kRefuted  // `failure` says why the engine cannot work with this switch
  };
  Reply on_reply(Time now, const wire::InaHeader& header);

  // Whether the frame answers a probe that was sent.
  [[nodiscard]] bool is_answer(const wire::InaHeader& header) const;
  // The error, if the connect timeout has passed.
  [[nodiscard]] std::optional<Error> on_timer(Time now) const;
  // The next probe or the timeout; nothing before the first call of poll_transmit.
  [[nodiscard]] std::optional<Time> next_deadline() const;
  // After kRefuted.
  [[nodiscard]] const Error& failure() const { return failure_; }
  // How long it has been looking.
  [[nodiscard]] Duration waited(Time now) const { return started_ ? now - *started_ : Duration{}; }

 private:
  [[nodiscard]] Error error(ErrorCode code, Time now) const;

  JobConfig config_;
  std::optional<Time> started_;
  Time next_round_{};
  std::uint32_t next_number_ = 0;
  bool short_answered_ = false;
  Error failure_;
};

}  // namespace pycollective
