// Writes a capture of Ethernet frames with nanosecond virtual times, readable by Wireshark and
// Scapy. Writes only; the file is complete whenever no call is in progress. Main type: PcapFile.
#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>

#include "engine/time.hpp"

namespace pycollective::sim {

class PcapFile {
 public:
  // Creates or overwrites the file. Throws std::system_error.
  explicit PcapFile(const std::string& path);

  // Appends one frame, from its Ethernet header on. Throws std::system_error.
  void write(Time at, std::span<const std::uint8_t> frame);

 private:
  void put(const void* bytes, std::size_t size);

  std::string path_;
  std::ofstream file_;
};

}  // namespace pycollective::sim
