// Where frames go that leave the pipeline. Main type: FrameSink.
#pragma once

#include <cstdint>
#include <span>

namespace p4emu {

struct FrameSink {
  virtual ~FrameSink() = default;
  // A frame that leaves at `port`, from its Ethernet header on; valid during the call only.
  virtual void frame(std::uint16_t port, std::span<const std::uint8_t> bytes) = 0;
};

}  // namespace p4emu
