#include "sim/simulation.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace pycollective::sim {

Simulation::Simulation(const SimulationConfig& config, const std::vector<JobConfig>& hosts,
                       std::unique_ptr<SwitchNode> node)
    : config_(config), node_(std::move(node)) {
  std::size_t longest = 0;
  for (const JobConfig& job : hosts) {
    const std::uint64_t stream = 2 * hosts_.size();
    hosts_.push_back({.engine = std::make_unique<Engine>(job),
                      .to_switch = std::make_unique<Link>(config.to_switch, config.seed, stream),
                      .to_host = std::make_unique<Link>(config.to_host, config.seed, stream + 1),
                      .capture = nullptr,
                      .wake_at = std::nullopt});
    longest = std::max(longest, hosts_.back().engine->max_frame_bytes());
  }
  buffer_.resize(longest);
}

bool Simulation::later(const Event& a, const Event& b) {
  return a.at != b.at ? a.at > b.at : a.order > b.order;
}

CollectiveId Simulation::submit(std::uint16_t host, const Collective& collective) {
  Host& target = hosts_.at(host);
  const CollectiveId id = target.engine->submit(collective);
  ++target.outstanding;
  return id;
}

void Simulation::configure_link(std::uint16_t host, Direction direction, const LinkConfig& config) {
  link_of(host, direction).configure(config);
}

void Simulation::silence(std::uint16_t host) { hosts_.at(host).silent = true; }

void Simulation::capture(std::uint16_t host, const std::string& path) {
  hosts_.at(host).capture = std::make_unique<p4emu::PcapWriter>(path);
}

const LinkStatistics& Simulation::link(std::uint16_t host, Direction direction) const {
  const Host& at = hosts_.at(host);
  return (direction == Direction::kToSwitch ? at.to_switch : at.to_host)->statistics;
}

Link& Simulation::link_of(std::uint16_t host, Direction direction) {
  Host& at = hosts_.at(host);
  return direction == Direction::kToSwitch ? *at.to_switch : *at.to_host;
}

bool Simulation::finished() const {
  return std::all_of(hosts_.begin(), hosts_.end(),
                     [](const Host& host) { return host.silent || host.outstanding == 0; });
}

bool Simulation::run(Time limit) {
  const Time end = now_ + limit;
  for (std::uint16_t host = 0; host < hosts_.size(); ++host) service(host);
  bool done = finished();
  while (!done && step(end)) done = finished();
  flush_captures();
  return done;
}

bool Simulation::drain(Time limit) {
  const Time end = now_ + limit;
  while (on_wire_ > 0 && step(end)) {
  }
  flush_captures();
  return on_wire_ == 0;
}

void Simulation::flush_captures() {
  for (Host& host : hosts_) {
    if (host.capture) host.capture->flush();
  }
}

void Simulation::push(Event event) {
  event.order = next_order_++;
  if (event.kind != EventKind::kWake) ++on_wire_;
  queue_.push_back(std::move(event));
  std::push_heap(queue_.begin(), queue_.end(), later);
}

bool Simulation::step(Time limit) {
  const std::optional<Time> moment = faults_.next_deadline();
  const std::optional<Time> event =
      queue_.empty() ? std::nullopt : std::optional<Time>(queue_.front().at);
  const bool moment_first = moment && (!event || *moment <= *event);
  const std::optional<Time> next = moment_first ? moment : event;
  if (!next || *next > limit) {
    now_ = std::max(now_, limit);
    return false;
  }
  now_ = std::max(now_, *next);
  if (moment_first) {
    std::vector<Released> released;
    faults_.elapsed(now_, released);
    release(std::move(released));
    return true;
  }
  std::pop_heap(queue_.begin(), queue_.end(), later);
  Event taken = std::move(queue_.back());
  queue_.pop_back();
  switch (taken.kind) {
    case EventKind::kArrival:
      --on_wire_;
      deliver(taken.host, taken.direction, taken.frame);
      break;
    case EventKind::kExpiry:
      --on_wire_;
      for (const Frame& frame : link_of(taken.host, taken.direction).expire(now_)) {
        deliver(taken.host, taken.direction, frame);
      }
      break;
    case EventKind::kWake:
      // Later wakes may be in the queue as well; they find nothing to do.
      if (hosts_[taken.host].wake_at == taken.at) hosts_[taken.host].wake_at.reset();
      service(taken.host);
      break;
  }
  return true;
}

void Simulation::put_on_wire(Time at, std::uint16_t host, Direction direction, const Frame& frame) {
  if (!faults_.admit(at, host, direction, frame)) return;
  Outcome outcome;
  link_of(host, direction).send(at, frame, outcome);
  for (Delivery& delivery : outcome.deliveries) {
    push({.at = delivery.at,
          .order = 0,
          .kind = EventKind::kArrival,
          .direction = direction,
          .host = host,
          .frame = std::move(delivery.frame)});
  }
  for (const Time expiry : outcome.expiries) {
    push({.at = expiry,
          .order = 0,
          .kind = EventKind::kExpiry,
          .direction = direction,
          .host = host,
          .frame = {}});
  }
}

void Simulation::deliver(std::uint16_t host, Direction direction, const Frame& frame) {
  Host& at = hosts_[host];
  if (direction == Direction::kToSwitch) {
    if (at.capture) at.capture->write(now_, frame);
    node_->process(static_cast<std::uint16_t>(host + 1), frame, *this);
  } else if (!at.silent) {
    at.engine->on_datagram(now_, frame);
    service(host);
  }
  std::vector<Released> released;
  faults_.delivered(now_, host, direction, frame, released);
  release(std::move(released));
}

void Simulation::release(std::vector<Released> frames) {
  // Each may bring the moment of another rule; those follow it directly.
  for (const Released& late : frames) deliver(late.host, late.direction, late.frame);
}

void Simulation::frame(std::uint16_t port, std::span<const std::uint8_t> bytes) {
  // A port nobody is on: the program sends there, the frame goes nowhere.
  if (port == 0 || port > hosts_.size()) return;
  const auto host = static_cast<std::uint16_t>(port - 1);
  const Time departure = now_ + config_.switch_delay;
  if (hosts_[host].capture) hosts_[host].capture->write(departure, bytes);
  put_on_wire(departure, host, Direction::kToHost, Frame(bytes.begin(), bytes.end()));
}

void Simulation::service(std::uint16_t index) {
  Host& host = hosts_[index];
  if (host.silent) return;
  Engine& engine = *host.engine;
  if (const auto deadline = engine.next_deadline(); deadline && *deadline <= now_) {
    engine.on_timer(now_);
  }
  while (const std::size_t length = engine.poll_transmit(now_, buffer_)) {
    put_on_wire(now_, index, Direction::kToSwitch,
                Frame(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(length)));
  }
  Completion completion;
  while (engine.poll_completion(completion)) {
    --host.outstanding;
    ended_.push_back({index, completion.id, completion.error, now_});
  }
  if (const auto deadline = engine.next_deadline()) {
    // Time must pass between two wakes, or an engine that asks again at once would stop the world.
    const Time at = std::max(*deadline, now_ + Time(1));
    if (!host.wake_at || at < *host.wake_at) {
      host.wake_at = at;
      push({.at = at,
            .order = 0,
            .kind = EventKind::kWake,
            .direction = Direction::kToHost,
            .host = index,
            .frame = {}});
    }
  }
}

}  // namespace pycollective::sim
