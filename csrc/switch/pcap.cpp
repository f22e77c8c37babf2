#include "switch/pcap.hpp"

#include <array>
#include <cerrno>
#include <system_error>

namespace p4emu {
namespace {

// In the machine's own byte order, which the magic number tells the reader.
constexpr std::uint32_t kMagicNanoseconds = 0xa1b23c4d;
constexpr std::uint32_t kVersion24 = 2U | (4U << 16U);  // two 16-bit fields, major first
constexpr std::uint32_t kSnapLength = 65535;
constexpr std::uint32_t kLinkTypeEthernet = 1;
constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

}  // namespace

PcapWriter::PcapWriter(const std::string& path, std::uint64_t limit)
    : path_(path), file_(path, std::ios::binary), limit_(limit) {
  const std::array<std::uint32_t, 6> header{kMagicNanoseconds, kVersion24,       0, 0,
                                            kSnapLength,       kLinkTypeEthernet};
  put(header.data(), sizeof(header));
  flush();
}

void PcapWriter::write(std::chrono::nanoseconds at, std::span<const std::uint8_t> frame) {
  if (limit_ != 0 && written_ == limit_) return;
  const auto length = static_cast<std::uint32_t>(frame.size());
  const std::array<std::uint32_t, 4> record{
      static_cast<std::uint32_t>(at.count() / kNanosecondsPerSecond),
      static_cast<std::uint32_t>(at.count() % kNanosecondsPerSecond), length, length};
  put(record.data(), sizeof(record));
  put(frame.data(), frame.size());
  ++written_;
  if (written_ == limit_) flush();
}

void PcapWriter::flush() {
  file_.flush();
  if (!file_) throw std::system_error(errno, std::generic_category(), "cannot write " + path_);
}

void PcapWriter::put(const void* bytes, std::size_t size) {
  file_.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  if (!file_) throw std::system_error(errno, std::generic_category(), "cannot write " + path_);
}

}  // namespace p4emu
