// Capture files, read back by the definition of the format.
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "switch/pcap.hpp"
#include "tests/check.hpp"

namespace {

using namespace p4emu;
using namespace std::chrono_literals;
using Bytes = std::vector<std::uint8_t>;

// A file of its own name that goes with its owner.
struct TemporaryFile {
  explicit TemporaryFile(const std::string& name)
      : path(std::filesystem::temp_directory_path() /
             (name + "." +
              std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()))) {}
  ~TemporaryFile() { std::filesystem::remove(path); }
  [[nodiscard]] Bytes bytes() const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::filesystem::path path;
};

template <typename T>
T at(const Bytes& bytes, std::size_t offset) {
  T value{};
  REQUIRE(offset + sizeof(T) <= bytes.size());
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

constexpr std::size_t kHeader = 24;
constexpr std::size_t kRecord = 16;

}  // namespace

TEST(a_capture_has_the_headers_of_the_nanosecond_format) {
  const TemporaryFile file("p4emu-pcap");
  PcapWriter writer(file.path);
  const Bytes frame = {1, 2, 3, 4, 5};
  writer.write(1'700'000'000s + 123'456'789ns, frame);
  writer.write(1'700'000'001s, {});
  writer.flush();
  const Bytes bytes = file.bytes();
  CHECK_EQ(at<std::uint32_t>(bytes, 0), 0xa1b23c4dU);  // nanoseconds, this machine's byte order
  CHECK_EQ(at<std::uint16_t>(bytes, 4), 2);
  CHECK_EQ(at<std::uint16_t>(bytes, 6), 4);
  CHECK_EQ(at<std::uint32_t>(bytes, 16), 65535U);
  CHECK_EQ(at<std::uint32_t>(bytes, 20), 1U);  // LINKTYPE_ETHERNET
  CHECK_EQ(at<std::uint32_t>(bytes, kHeader), 1'700'000'000U);
  CHECK_EQ(at<std::uint32_t>(bytes, kHeader + 4), 123'456'789U);
  CHECK_EQ(at<std::uint32_t>(bytes, kHeader + 8), 5U);
  CHECK_EQ(at<std::uint32_t>(bytes, kHeader + 12), 5U);
  CHECK_EQ(std::memcmp(&bytes[kHeader + kRecord], frame.data(), frame.size()), 0);
  CHECK_EQ(bytes.size(), kHeader + kRecord + 5 + kRecord);
}

TEST(a_capture_without_frames_is_a_whole_file) {
  const TemporaryFile file("p4emu-pcap");
  const PcapWriter writer(file.path);
  CHECK_EQ(file.bytes().size(), kHeader);
}

TEST(a_capture_is_in_its_file_when_its_limit_is_reached_and_grows_no_further) {
  const TemporaryFile file("p4emu-pcap");
  PcapWriter writer(file.path, 2);
  for (int i = 0; i < 5; ++i) writer.write(1s, Bytes(10, static_cast<std::uint8_t>(i)));
  const Bytes bytes = file.bytes();
  CHECK_EQ(bytes.size(), kHeader + 2 * (kRecord + 10));
  CHECK_EQ(bytes.back(), 1);
}

TEST(what_cannot_be_written_is_an_error_that_names_the_file) {
  try {
    const PcapWriter writer("/nowhere/x.pcap");
    CHECK(false);
  } catch (const std::system_error& error) {
    CHECK(std::string(error.what()).find("/nowhere/x.pcap") != std::string::npos);
  }
  CHECK_THROWS(PcapWriter("/dev/full"), std::system_error);
}
