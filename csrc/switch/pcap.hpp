// Writes a classic pcap file of Ethernet frames with nanosecond times, which Wireshark, tcpdump and
// Scapy open. Writes only. Main type: PcapWriter.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>

namespace p4emu {

class PcapWriter {
 public:
  // Creates or overwrites the file. After `limit` frames (0: no limit) further ones are ignored, so
  // that a capture left on stays short. Throws std::system_error.
  explicit PcapWriter(const std::string& path, std::uint64_t limit = 0);

  // Appends one frame, from its Ethernet header on. Throws std::system_error.
  void write(std::chrono::nanoseconds at, std::span<const std::uint8_t> frame);

  // Brings everything written so far into the file.
  void flush();

 private:
  void put(const void* bytes, std::size_t size);

  std::string path_;
  std::ofstream file_;
  std::uint64_t limit_;
  std::uint64_t written_ = 0;
};

}  // namespace p4emu
