#include "engine/engine.hpp"

#include <algorithm>
#include <cassert>
#include <deque>
#include <stdexcept>
#include <utility>

#include "engine/algorithm.hpp"
#include "engine/exchange.hpp"
#include "engine/probe.hpp"
#include "wire/frame.hpp"

namespace pycollective {

// The state of the engine, and its transitions (docs/protocol.md, "Host states").
struct Engine::Parts {
  struct Pending {
    CollectiveId id;
    std::uint32_t sequence;
    Collective collective;
  };

  explicit Parts(const JobConfig& job)
      : config(job),
        writer({.source_mac = job.mac,
                .destination_mac = job.switch_mac,
                .source_ipv4 = job.ipv4,
                .destination_ipv4 = job.switch_ipv4},
               job.lanes),
        prober(job),
        exchange(job, writer, statistics) {}

  void start_next(Time now);
  void finish(Time now);
  void fail(const Error& error);

  void on_probe_reply(Time now, const wire::InaHeader& header);
  void on_result(Time now, const wire::Frame& frame);
  void on_nack(Time now, const wire::InaHeader& header);
  bool is_foreign(const wire::Frame& frame);
  void count(Reception reception, std::uint64_t& taken);

  [[nodiscard]] Error error(ErrorCode code, Time now) const;
  [[nodiscard]] Error deadline_error(Time now) const;
  [[nodiscard]] Time deadline() const {
    return started + queue.front().collective.deadline.value_or(config.timers.deadline);
  }

  JobConfig config;
  wire::FrameWriter writer;
  Statistics statistics;
  Prober prober;
  Exchange exchange;

  State state = State::kConnecting;
  Error failure;
  CollectiveId submitted = 0;
  std::deque<Pending> queue;             // the first one runs when state is kRunning
  std::unique_ptr<Algorithm> algorithm;  // of the one that runs
  Time started{};                        // when it became first in the queue
  std::optional<Time> heard;             // last frame from the switch that was for this engine
  std::deque<Completion> completions;
};

namespace {

JobConfig validated(const JobConfig& config) {
  if (Error error = validate(config)) throw EngineError(std::move(error));
  return config;
}

ChunkPlace place_of(const wire::InaHeader& header) {
  return {header.chunk, header.slot, header.slot_version};
}

}  // namespace

const char* name(State state) {
  switch (state) {
    case State::kConnecting:
      return "connecting";
    case State::kIdle:
      return "idle";
    case State::kRunning:
      return "running";
    case State::kFailed:
      return "failed";
  }
  return "unknown";
}

// --- Transitions ---------------------------------------------------------------------------------

void Engine::Parts::start_next(Time now) {
  if (state != State::kIdle || queue.empty()) return;
  const Pending& next = queue.front();
  algorithm = make_algorithm(next.collective, config);
  exchange.begin(*algorithm, next.sequence, fingerprint(next.collective));
  started = now;
  state = State::kRunning;
}

void Engine::Parts::finish(Time now) {
  Completion completion{queue.front().id, {}};
  if (const auto& overflow = exchange.overflow()) {
    completion.error = error(ErrorCode::kReductionOverflow, now);
    completion.error.place = *overflow;
    ++statistics.collectives_failed;
  } else {
    ++statistics.collectives_completed;
  }
  exchange.end();
  algorithm.reset();
  queue.pop_front();
  completions.push_back(std::move(completion));
  state = State::kIdle;
}

void Engine::Parts::fail(const Error& error) {
  exchange.abandon();
  algorithm.reset();
  for (const Pending& pending : queue) completions.push_back({pending.id, error});
  statistics.collectives_failed += queue.size();
  queue.clear();
  failure = error;
  state = State::kFailed;
}

Error Engine::Parts::error(ErrorCode code, Time now) const {
  Error error{.code = code, .job = config.job, .rank = config.rank};
  if (state == State::kRunning) {
    error.operation = name(queue.front().collective.kind);
    error.sequence = queue.front().sequence;
    error.waited = now - started;
  } else {
    error.waited = prober.waited(now);
  }
  if (heard) error.silent = now - *heard;
  return error;
}

Error Engine::Parts::deadline_error(Time now) const {
  Error late = error(ErrorCode::kDeadlineExceeded, now);
  if (const auto oldest = exchange.oldest_unfinished()) {
    late.place = oldest->place;
    if (oldest->contributed) {
      const std::uint64_t members = (std::uint64_t{1} << config.world_size) - 1;
      late.missing_ranks =
          static_cast<std::uint32_t>(members & ~std::uint64_t{*oldest->contributed});
    }
  }
  return late;
}

// --- Reception -----------------------------------------------------------------------------------

// Whether the frame is for somebody else; counts why.
bool Engine::Parts::is_foreign(const wire::Frame& frame) {
  const wire::InaHeader& header = frame.header;
  if (header.opcode == wire::Opcode::kContribute || header.opcode == wire::Opcode::kProbe) {
    ++statistics.foreign_opcode;
  } else if (header.job != config.job) {
    ++statistics.foreign_job;
  } else if (header.rank != config.rank) {
    ++statistics.foreign_rank;
  } else if (header.epoch != config.epoch && header.opcode != wire::Opcode::kNack) {
    // A NACK carries the switch's epoch, so that the error can name it.
    ++statistics.foreign_epoch;
  } else if (header.opcode != wire::Opcode::kResult && !frame.lanes.empty()) {
    ++statistics.unexpected;
  } else {
    return false;
  }
  return true;
}

void Engine::Parts::count(Reception reception, std::uint64_t& taken) {
  switch (reception) {
    case Reception::kTaken:
    case Reception::kMismatch:
      ++taken;
      break;
    case Reception::kDuplicate:
      ++statistics.duplicates;
      break;
    case Reception::kStale:
      ++statistics.stale;
      break;
    case Reception::kUnexpected:
      ++statistics.unexpected;
      break;
  }
}

void Engine::Parts::on_probe_reply(Time now, const wire::InaHeader& header) {
  if (state != State::kConnecting) {
    ++statistics.stale;
    return;
  }
  const Prober::Reply reply = prober.on_reply(now, header);
  if (reply == Prober::Reply::kStale) {
    ++statistics.stale;
    return;
  }
  ++statistics.probe_replies;
  if (reply == Prober::Reply::kRefuted) {
    fail(prober.failure());
  } else if (reply == Prober::Reply::kConnected) {
    state = State::kIdle;
    start_next(now);
  }
}

void Engine::Parts::on_result(Time now, const wire::Frame& frame) {
  const Reception reception = exchange.on_result(now, frame);
  count(reception, statistics.results);
  if (reception == Reception::kMismatch) {
    Error mismatch = error(ErrorCode::kMismatch, now);
    mismatch.place = place_of(frame.header);
    fail(mismatch);
  } else if (reception == Reception::kTaken && exchange.finished()) {
    finish(now);
    start_next(now);
  }
}

void Engine::Parts::on_nack(Time now, const wire::InaHeader& header) {
  const bool answers =
      state == State::kConnecting ? prober.is_answer(header) : exchange.is_outstanding(header);
  if (!answers) {
    ++statistics.stale;
    return;
  }
  const auto reason = static_cast<wire::NackReason>(header.fingerprint);
  if (reason == wire::NackReason::kEpoch && header.epoch != config.epoch) {
    Error changed = error(ErrorCode::kEpochChanged, now);
    changed.expected = config.epoch;
    changed.found = header.epoch;
    ++statistics.nacks;
    fail(changed);
  } else if (reason == wire::NackReason::kSlot && header.epoch == config.epoch) {
    Error refused = error(ErrorCode::kBadSlot, now);
    refused.place = place_of(header);
    refused.expected = config.slots;
    refused.found = header.slot;
    ++statistics.nacks;
    fail(refused);
  } else {
    ++statistics.unexpected;
  }
}

// --- Interface -----------------------------------------------------------------------------------

Engine::Engine(const JobConfig& config) : parts_(std::make_unique<Parts>(validated(config))) {}
Engine::~Engine() = default;

CollectiveId Engine::submit(const Collective& collective) {
  Parts& p = *parts_;
  if (Error error = check(collective, p.config)) throw EngineError(std::move(error));
  const CollectiveId id = ++p.submitted;
  if (p.state == State::kFailed) {
    p.completions.push_back({id, p.failure});
    ++p.statistics.collectives_failed;
  } else {
    const auto sequence = static_cast<std::uint32_t>(p.config.first_sequence + (id - 1));
    p.queue.push_back({id, sequence, collective});
  }
  return id;
}

void Engine::on_datagram(Time now, std::span<const std::uint8_t> bytes) {
  Parts& p = *parts_;
  ++p.statistics.frames_received;
  p.statistics.bytes_received += bytes.size();
  wire::Frame frame;
  const wire::FrameError fault = wire::parse_frame(bytes, frame);
  if (fault != wire::FrameError::kNone) {
    ++p.statistics.malformed[static_cast<std::size_t>(fault)];
    return;
  }
  if (p.is_foreign(frame)) return;
  if (p.state == State::kFailed) {
    ++p.statistics.stale;
    return;
  }
  p.heard = now;
  switch (frame.header.opcode) {
    case wire::Opcode::kResult:
      p.on_result(now, frame);
      break;
    case wire::Opcode::kStatus:
      p.count(p.exchange.on_status(frame.header), p.statistics.statuses);
      break;
    case wire::Opcode::kProbeReply:
      p.on_probe_reply(now, frame.header);
      break;
    case wire::Opcode::kNack:
      p.on_nack(now, frame.header);
      break;
    case wire::Opcode::kContribute:
    case wire::Opcode::kProbe:
      break;  // is_foreign
  }
}

void Engine::on_timer(Time now) {
  Parts& p = *parts_;
  if (p.state == State::kConnecting) {
    if (const auto error = p.prober.on_timer(now)) p.fail(*error);
  } else if (p.state == State::kRunning) {
    if (now >= p.deadline()) {
      p.fail(p.deadline_error(now));
    } else {
      p.exchange.on_timer(now);
    }
  }
}

std::size_t Engine::poll_transmit(Time now, std::span<std::uint8_t> frame) {
  Parts& p = *parts_;
  if (frame.size() < max_frame_bytes()) {
    throw std::length_error("Engine::poll_transmit: the buffer is shorter than max_frame_bytes()");
  }
  std::size_t length = 0;
  p.start_next(now);
  if (p.state == State::kConnecting) {
    length = p.prober.poll_transmit(now, p.writer, frame);
    if (length > 0) ++p.statistics.probes_sent;
  } else if (p.state == State::kRunning) {
    length = p.exchange.poll_transmit(now, frame);
  }
  if (length > 0) {
    ++p.statistics.frames_sent;
    p.statistics.bytes_sent += length;
  }
  return length;
}

std::optional<Time> Engine::next_deadline() const {
  const Parts& p = *parts_;
  if (p.state == State::kConnecting) return p.prober.next_deadline();
  if (p.state != State::kRunning) return std::nullopt;
  const auto timer = p.exchange.next_deadline();
  return timer ? std::min(*timer, p.deadline()) : p.deadline();
}

bool Engine::poll_completion(Completion& completion) {
  auto& completions = parts_->completions;
  if (completions.empty()) return false;
  completion = std::move(completions.front());
  completions.pop_front();
  return true;
}

void Engine::cancel_all(Error error) {
  Parts& p = *parts_;
  if (p.state == State::kFailed) return;
  if (error.code == ErrorCode::kNone) error.code = ErrorCode::kCancelled;
  error.job = p.config.job;
  error.rank = p.config.rank;
  if (p.state == State::kRunning) {
    error.operation = name(p.queue.front().collective.kind);
    error.sequence = p.queue.front().sequence;
  }
  p.fail(error);
}

const Statistics& Engine::statistics() const { return parts_->statistics; }
State Engine::state() const { return parts_->state; }
const Error& Engine::failure() const { return parts_->failure; }
const JobConfig& Engine::config() const { return parts_->config; }

std::size_t Engine::max_frame_bytes() const { return wire::frame_bytes(parts_->config.lanes); }

}  // namespace pycollective
