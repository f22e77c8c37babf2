#include "engine/probe.hpp"

#include <algorithm>
#include <string>

#include "numeric/lanes.hpp"

namespace pycollective {

Error Prober::error(ErrorCode code, Time now) const {
  return {.code = code, .job = config_.job, .rank = config_.rank, .waited = waited(now)};
}

std::size_t Prober::poll_transmit(Time now, const wire::FrameWriter& writer,
                                  std::span<std::uint8_t> frame) {
  if (!started_) {
    started_ = now;
    next_round_ = now;
  }
  const bool short_due = next_number_ % 2 == 1 && next_number_ > 1;
  if (!short_due) {
    if (now < next_round_) return 0;
    next_round_ = now + config_.timers.probe_interval;
    // The first round has no short probe.
    if (next_number_ == 1) next_number_ = 2;
  }
  wire::InaHeader header;
  header.opcode = wire::Opcode::kProbe;
  header.job = config_.job;
  header.rank = config_.rank;
  header.epoch = config_.epoch;
  header.sequence = next_number_++;
  if (!short_due) {
    header.flags = wire::flag::kData;
    numeric::clear_lanes(frame.data() + wire::kLanesOffset, 0, config_.lanes);
  }
  return writer.finish(header, frame);
}

bool Prober::is_answer(const wire::InaHeader& header) const {
  return header.sequence < next_number_ && header.chunk == 0 && header.slot == 0;
}

Prober::Reply Prober::on_reply(Time now, const wire::InaHeader& header) {
  if (!is_answer(header)) return Reply::kStale;
  if (header.lane_count != config_.lanes) {
    failure_ = error(ErrorCode::kUnsupported, now);
    failure_.detail = "the switch's program has " + std::to_string(header.lane_count) +
                      " lanes, this rank was configured for " + std::to_string(config_.lanes) +
                      "; take the number of lanes from the controller";
    return Reply::kRefuted;
  }
  if (header.sequence % 2 == 0) return Reply::kConnected;
  short_answered_ = true;
  return Reply::kNoted;
}

std::optional<Error> Prober::on_timer(Time now) const {
  if (!started_ || now < *started_ + config_.timers.connect_timeout) return std::nullopt;
  if (!short_answered_) return error(ErrorCode::kSwitchUnreachable, now);
  Error narrow = error(ErrorCode::kMtu, now);
  narrow.expected = wire::frame_bytes(config_.lanes);
  narrow.found = wire::frame_bytes(0);
  return narrow;
}

std::optional<Time> Prober::next_deadline() const {
  if (!started_) return std::nullopt;
  return std::min(next_round_, *started_ + config_.timers.connect_timeout);
}

}  // namespace pycollective
