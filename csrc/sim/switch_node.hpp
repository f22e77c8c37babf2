// The switch as the simulation sees it: frames go in at a port and come out at ports, at once.
//
// SwitchNode is implemented over the run time of compiled P4 (p4_switch_node.hpp) and by test
// doubles; the simulation decides nothing that a switch decides. Main types: SwitchNode, FrameSink.
#pragma once

#include <cstdint>
#include <span>

#include "switch/frame_sink.hpp"

namespace pycollective::sim {

using FrameSink = p4emu::FrameSink;

class SwitchNode {
 public:
  virtual ~SwitchNode() = default;

  // Processes one frame that came in at `port` and hands `sink` each frame that goes out.
  virtual void process(std::uint16_t port, std::span<const std::uint8_t> frame,
                       FrameSink& sink) = 0;
};

}  // namespace pycollective::sim
