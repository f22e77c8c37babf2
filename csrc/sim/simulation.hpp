// A job's whole network in one thread and virtual time: hosts that run the real engine, links that
// misbehave as configured, and one switch.
//
// One seed decides everything, so a failing run can be run again. Nothing here sleeps, reads a
// clock or opens a socket; a second of virtual time costs what its frames cost. The simulation
// judges nothing: it reports how each collective ended. Main types: SimulationConfig, Simulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "sim/faults.hpp"
#include "sim/link.hpp"
#include "sim/switch_node.hpp"
#include "switch/pcap.hpp"

namespace pycollective::sim {

struct SimulationConfig {
  std::uint64_t seed = 1;
  LinkConfig to_switch{};  // of every host, until `configure_link` changes one
  LinkConfig to_host{};
  Time switch_delay{1'000};  // 1 us from a frame's arrival at the switch to its departure
};

// How one collective of one host ended.
struct Ended {
  std::uint16_t host;
  CollectiveId id;
  Error error;
  Time at;
};

class Simulation : private FrameSink {
 public:
  // Host h (an index into `hosts`) is on switch port h + 1. The switch must outlive this.
  Simulation(const SimulationConfig& config, const std::vector<JobConfig>& hosts,
             std::unique_ptr<SwitchNode> node);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Starts a collective at the present virtual time. Its memory must stay alive until it has ended.
  CollectiveId submit(std::uint16_t host, const Collective& collective);

  void configure_link(std::uint16_t host, Direction direction, const LinkConfig& config);
  std::size_t add_fault(const FaultRule& rule) { return faults_.add(rule); }

  // From now on the host neither sends nor receives, like a machine without power.
  void silence(std::uint16_t host);

  // Records what passes the host's switch port, both ways, into a capture file. The file is
  // complete after each `run` and `drain`. Throws std::system_error.
  void capture(std::uint16_t host, const std::string& path);

  // Runs until every collective of every host that is not silent has ended; false when `limit`
  // (virtual time from now) comes first.
  bool run(Time limit);

  // Runs until no frame is on its way or held back; false when `limit` comes first.
  bool drain(Time limit);

  Time now() const { return now_; }
  const std::vector<Ended>& ended() const { return ended_; }
  const Engine& engine(std::uint16_t host) const { return *hosts_.at(host).engine; }
  const LinkStatistics& link(std::uint16_t host, Direction direction) const;
  const FaultStatistics& fault(std::size_t rule) const { return faults_.statistics(rule); }
  std::size_t host_count() const { return hosts_.size(); }

 private:
  enum class EventKind : std::uint8_t { kArrival, kExpiry, kWake };
  struct Event {
    Time at;
    std::uint64_t order;  // of scheduling: events of the same time keep it
    EventKind kind;
    Direction direction;  // of the link, for kArrival and kExpiry
    std::uint16_t host;
    Frame frame;
  };
  static bool later(const Event& a, const Event& b);

  struct Host {
    std::unique_ptr<Engine> engine;
    std::unique_ptr<Link> to_switch;
    std::unique_ptr<Link> to_host;
    std::unique_ptr<p4emu::PcapWriter> capture;
    std::optional<Time> wake_at;  // earliest wake event in the queue
    std::size_t outstanding = 0;
    bool silent = false;
  };

  // A frame from the switch (FrameSink).
  void frame(std::uint16_t port, std::span<const std::uint8_t> bytes) override;

  void push(Event event);
  bool step(Time limit);  // processes the next event, false when there is none up to `limit`
  void put_on_wire(Time at, std::uint16_t host, Direction direction, const Frame& frame);
  void deliver(std::uint16_t host, Direction direction, const Frame& frame);
  void release(std::vector<Released> frames);
  void service(std::uint16_t host);
  Link& link_of(std::uint16_t host, Direction direction);
  bool finished() const;
  void flush_captures();

  SimulationConfig config_;
  std::unique_ptr<SwitchNode> node_;
  std::vector<Host> hosts_;
  Faults faults_;
  std::vector<Event> queue_;  // a heap ordered by `later`
  std::uint64_t next_order_ = 0;
  std::size_t on_wire_ = 0;  // arrivals and expiries in the queue
  Time now_{0};
  std::vector<Ended> ended_;
  std::vector<std::uint8_t> buffer_;
};

}  // namespace pycollective::sim
