// The switch takes no memory per packet. A binary of its own, because it counts every `new` of the
// process.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <span>
#include <vector>

#include "switch/pipeline.hpp"
#include "tests/check.hpp"
#include "tests/fake_program.hpp"

namespace {

std::size_t allocations = 0;

void* count_and_allocate(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return count_and_allocate(size); }
void* operator new[](std::size_t size) { return count_and_allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

using namespace p4emu;
using Bytes = std::vector<std::uint8_t>;

TEST(a_packet_costs_no_allocation) {
  struct Null final : FrameSink {
    void frame(std::uint16_t /*port*/, std::span<const std::uint8_t> bytes) override {
      seen += bytes.size();
    }
    std::size_t seen = 0;
  } sink;
  Pipeline pipeline(fake::image());
  pipeline.set_group(9, {{1, 1}, {2, 2}, {3, 3}});
  const Bytes unicast = fake::frame({.spec = 7});
  const Bytes multicast = fake::frame({.group = 9});
  const std::uint64_t before = allocations;
  for (int i = 0; i < 100; ++i) {
    pipeline.process(1, unicast, 0, sink);
    pipeline.process(1, multicast, 0, sink);
  }
  CHECK_EQ(allocations, before);
  CHECK(sink.seen > 0);
}
