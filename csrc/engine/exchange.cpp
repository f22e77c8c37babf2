#include "engine/exchange.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

namespace pycollective {
namespace {

// What a drop in the transition table is to the statistics.
Reception dropped(SlotAction action) {
  switch (action) {
    case SlotAction::kDropDuplicate:
      return Reception::kDuplicate;
    case SlotAction::kDropStale:
      return Reception::kStale;
    default:
      return Reception::kUnexpected;
  }
}

// Whether a result has the shape that the chunk's result must have.
bool has_format(const wire::Frame& result, const ChunkFormat& format, std::size_t lanes) {
  return result.header.reduce_op == format.reduce_op &&
         result.header.element_type == format.element_type &&
         result.header.lane_count == format.lane_count &&
         result.lanes.size() == (format.result_has_lanes ? wire::kLaneBytes * lanes : 0);
}

}  // namespace

Exchange::Exchange(const JobConfig& config, const wire::FrameWriter& writer, Statistics& statistics)
    : config_(config),
      writer_(writer),
      statistics_(statistics),
      stream_(config.slots),
      slots_(config.slots),
      fresh_(config.slots),
      repeats_(config.slots),
      timers_(config.slots),
      rtt_(config.timers),
      window_(config.slots) {
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].next = i;
  statistics_.rto = rtt_.rto();
}

void Exchange::begin(Algorithm& algorithm, std::uint32_t sequence, std::uint32_t fingerprint) {
  algorithm_ = &algorithm;
  sequence_ = sequence;
  fingerprint_ = fingerprint;
  done_ = 0;
  overflow_.reset();
  const std::uint32_t first = std::min<std::uint32_t>(algorithm.chunk_count(), stream_.slots());
  for (std::uint32_t chunk = 0; chunk < first; ++chunk) release(chunk);
}

bool Exchange::finished() const {
  return algorithm_ != nullptr && done_ == algorithm_->chunk_count();
}

void Exchange::end() {
  assert(finished());
  stream_.advance(algorithm_->chunk_count());
  algorithm_ = nullptr;
}

void Exchange::abandon() {
  for (std::uint16_t slot = 0; slot < stream_.slots(); ++slot) {
    timers_.stop(slot);
    slots_[slot].state = SlotState::kIdle;
  }
  while (fresh_.pop() || repeats_.pop()) {
  }
  algorithm_ = nullptr;
}

void Exchange::release(std::uint32_t chunk) {
  if (chunk >= algorithm_->chunk_count()) return;
  const Use use = stream_.use(chunk);
  const std::uint16_t index = stream_.place(use).slot;
  Slot& slot = slots_[index];
  if (slot.state != SlotState::kIdle || slot.next != use || !algorithm_->available(chunk)) return;

  slot.state = transition(slot.state, SlotEvent::kRelease).next;
  slot.used = true;
  slot.repeats = 0;
  slot.sequence = sequence_;
  slot.chunk = chunk;
  slot.use = use;
  slot.next = stream_.successor(use);
  slot.contributed.reset();
  slot.answered = false;
  fresh_.push(index);
}

// The chunk's result frees its slot for the next use of it, and may have made others' contents
// known.
void Exchange::release_followers(std::uint32_t chunk, const Unlocked& unlocked) {
  release(chunk + stream_.slots());
  for (ChunkRange range : unlocked.ranges) {
    // Chunks further on than this need a slot that one of these has yet to use.
    const std::uint32_t last = std::min(range.last, range.first + stream_.slots());
    for (std::uint32_t next = range.first; next < last; ++next) release(next);
  }
}

Exchange::TagMatch Exchange::match(const wire::InaHeader& header) const {
  if (header.slot >= stream_.slots() || !slots_[header.slot].used) return TagMatch::kOther;
  const Slot& slot = slots_[header.slot];
  if (header.sequence != slot.sequence) {
    return wire::serial_before(header.sequence, slot.sequence) ? TagMatch::kOlder
                                                               : TagMatch::kOther;
  }
  if (header.chunk != slot.chunk) {
    return header.chunk < slot.chunk ? TagMatch::kOlder : TagMatch::kOther;
  }
  return header.slot_version == stream_.place(slot.use).version ? TagMatch::kCurrent
                                                                : TagMatch::kOther;
}

bool Exchange::is_outstanding(const wire::InaHeader& header) const {
  if (match(header) != TagMatch::kCurrent) return false;
  const SlotState state = slots_[header.slot].state;
  return state == SlotState::kSent || state == SlotState::kDue;
}

Reception Exchange::on_result(Time now, const wire::Frame& frame) {
  const wire::InaHeader& header = frame.header;
  const TagMatch tag = match(header);
  if (tag != TagMatch::kCurrent) {
    return tag == TagMatch::kOlder ? Reception::kStale : Reception::kUnexpected;
  }
  const SlotTransition step = transition(slots_[header.slot].state, SlotEvent::kResult);
  if (step.action != SlotAction::kDeliver) return dropped(step.action);

  // Before the format, which is the one of the rank that contributed last.
  if ((header.flags & wire::flag::kMismatch) != 0) return Reception::kMismatch;
  if (header.fingerprint != fingerprint_ ||
      !has_format(frame, algorithm_->format(header.chunk), config_.lanes)) {
    return Reception::kUnexpected;
  }
  Unlocked unlocked;
  if (!algorithm_->deliver(header.chunk, header, frame.lanes, unlocked)) {
    return Reception::kUnexpected;
  }
  slots_[header.slot].state = step.next;
  deliver(header.slot, now, header);
  release_followers(header.chunk, unlocked);
  return Reception::kTaken;
}

// What a delivery means for everything but the contents.
void Exchange::deliver(std::uint16_t index, Time now, const wire::InaHeader& header) {
  Slot& slot = slots_[index];
  timers_.stop(index);
  --in_flight_;
  ++done_;
  if (slot.repeats == 0) {
    rtt_.on_sample(now - slot.sent);
  } else {
    rtt_.on_repeated(now - slot.sent);
  }
  statistics_.smoothed_rtt = rtt_.smoothed();
  statistics_.rto = rtt_.rto();
  if ((header.flags & wire::flag::kEcnEcho) != 0) ++statistics_.ecn_echoes;
  // The lowest chunk, so that all ranks report the same whatever order results come in.
  if ((header.flags & wire::flag::kOverflow) != 0 &&
      (!overflow_ || slot.chunk < overflow_->chunk)) {
    overflow_ = place_of(slot);
  }
}

Reception Exchange::on_status(const wire::InaHeader& header) {
  const TagMatch tag = match(header);
  if (tag != TagMatch::kCurrent) {
    return tag == TagMatch::kOlder ? Reception::kStale : Reception::kUnexpected;
  }
  Slot& slot = slots_[header.slot];
  const SlotTransition step = transition(slot.state, SlotEvent::kStatus);
  slot.state = step.next;
  if (step.action != SlotAction::kRecord) return dropped(step.action);
  // Bits are only ever added for a tag, and answers may overtake each other.
  slot.contributed = slot.contributed.value_or(0) | header.fingerprint;
  slot.answered = true;
  return Reception::kTaken;
}

void Exchange::on_timer(Time now) {
  while (!timers_.empty() && timers_.first_due() <= now) {
    const std::uint16_t index = timers_.first();
    timers_.stop(index);
    const SlotTransition step = transition(slots_[index].state, SlotEvent::kTimeout);
    assert(step.action == SlotAction::kEnqueue);
    slots_[index].state = step.next;
    repeats_.push(index);
  }
}

std::size_t Exchange::poll_transmit(Time now, std::span<std::uint8_t> frame) {
  while (const auto index = repeats_.pop()) {
    if (slots_[*index].state == SlotState::kDue) return transmit(*index, now, frame);
  }
  if (!fresh_.empty() && window_.admits(in_flight_)) {
    // Nothing but sending takes a slot out of Ready, so a fresh entry is never out of date.
    return transmit(*fresh_.pop(), now, frame);
  }
  return 0;
}

std::size_t Exchange::transmit(std::uint16_t index, Time now, std::span<std::uint8_t> frame) {
  Slot& slot = slots_[index];
  const bool repeat = slot.state == SlotState::kDue;
  const Place place = stream_.place(slot.use);
  const ChunkFormat format = algorithm_->format(slot.chunk);
  wire::InaHeader header{
      .opcode = wire::Opcode::kContribute,
      .reduce_op = format.reduce_op,
      .element_type = format.element_type,
      .job = config_.job,
      .rank = config_.rank,
      .epoch = config_.epoch,
      .slot = place.slot,
      .slot_version = place.version,
      .sequence = slot.sequence,
      .chunk = slot.chunk,
      .lane_count = format.lane_count,
      .flags = format.contributes_lanes ? wire::flag::kData : std::uint8_t{0},
      .fingerprint = fingerprint_,
  };
  algorithm_->contribute(slot.chunk, header, frame.subspan(wire::kLanesOffset));
  if (repeat) {
    header.flags |= wire::flag::kRetransmit;
    if (slot.repeats < std::numeric_limits<std::uint16_t>::max()) ++slot.repeats;
    ++statistics_.retransmissions;
    // The last copy has drawn no answer, so what an earlier STATUS said may be out of date: blaming
    // a rank for it could blame one that has contributed since.
    if (!slot.answered) slot.contributed.reset();
    slot.answered = false;
  } else {
    slot.sent = now;
    ++in_flight_;
  }
  const SlotTransition step = transition(slot.state, SlotEvent::kTransmit);
  assert(step.action == SlotAction::kStartTimer);
  slot.state = step.next;
  timers_.start(index, now + rtt_.backed_off(slot.repeats));
  return writer_.finish(header, frame);
}

std::optional<Time> Exchange::next_deadline() const {
  if (timers_.empty()) return std::nullopt;
  return timers_.first_due();
}

ChunkPlace Exchange::place_of(const Slot& slot) const {
  const Place place = stream_.place(slot.use);
  return {slot.chunk, place.slot, place.version};
}

std::optional<Exchange::Oldest> Exchange::oldest_unfinished() const {
  const Slot* oldest = nullptr;
  for (const Slot& slot : slots_) {
    if (slot.state == SlotState::kIdle) continue;
    if (oldest == nullptr || slot.use < oldest->use) oldest = &slot;
  }
  if (oldest == nullptr) return std::nullopt;
  return Oldest{place_of(*oldest), oldest->contributed};
}

}  // namespace pycollective
