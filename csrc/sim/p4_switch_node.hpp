// The simulation's switch over the run time that runs JIT-compiled P4 (switch/switch.hpp).
#pragma once

#include "sim/switch_node.hpp"
#include "switch/switch.hpp"

namespace pycollective::sim {

// The switch must outlive the simulation.
class P4SwitchNode final : public SwitchNode {
 public:
  explicit P4SwitchNode(p4emu::Switch& target) : target_(target) {}

  void process(std::uint16_t port, std::span<const std::uint8_t> frame, FrameSink& sink) override {
    target_.process(port, frame, sink);
  }

 private:
  p4emu::Switch& target_;
};

}  // namespace pycollective::sim
