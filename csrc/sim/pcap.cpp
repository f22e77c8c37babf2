#include "sim/pcap.hpp"

#include <array>
#include <cerrno>
#include <system_error>

namespace pycollective::sim {
namespace {

constexpr std::uint32_t kMagicNanoseconds = 0xa1b23c4d;
constexpr std::uint32_t kVersion24 = 2U | (4U << 16U);  // two 16-bit fields, major first
constexpr std::uint32_t kSnapLength = 65535;
constexpr std::uint32_t kLinkTypeEthernet = 1;
constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

}  // namespace

PcapFile::PcapFile(const std::string& path) : path_(path), file_(path, std::ios::binary) {
  // In the machine's own byte order, which the magic number tells the reader.
  const std::array<std::uint32_t, 6> header{kMagicNanoseconds, kVersion24,       0, 0,
                                            kSnapLength,       kLinkTypeEthernet};
  put(header.data(), sizeof(header));
}

void PcapFile::write(Time at, std::span<const std::uint8_t> frame) {
  const auto length = static_cast<std::uint32_t>(frame.size());
  const std::array<std::uint32_t, 4> record{
      static_cast<std::uint32_t>(at.count() / kNanosecondsPerSecond),
      static_cast<std::uint32_t>(at.count() % kNanosecondsPerSecond), length, length};
  put(record.data(), sizeof(record));
  put(frame.data(), frame.size());
  file_.flush();
}

void PcapFile::put(const void* bytes, std::size_t size) {
  file_.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  if (!file_) throw std::system_error(errno, std::generic_category(), "cannot write " + path_);
}

}  // namespace pycollective::sim
