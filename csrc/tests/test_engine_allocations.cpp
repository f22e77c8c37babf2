// The engine takes no memory per packet: once a collective has started, frames go in and out
// without one allocation. A binary of its own, because it counts every `new` of the process.
#include <cstdlib>
#include <new>
#include <vector>

#include "engine/engine.hpp"
#include "tests/check.hpp"
#include "wire/frame.hpp"

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

namespace {

using namespace pycollective;
using namespace std::chrono_literals;

// Turns a frame to the switch into the answer to it, for a job of one rank.
void answer(Engine& engine, Time now, std::vector<std::uint8_t>& bytes, std::size_t length) {
  wire::Frame frame;
  REQUIRE_EQ(wire::parse_frame({bytes.data(), length}, frame), wire::FrameError::kNone);
  wire::InaHeader header = frame.header;
  const bool probe = header.opcode == wire::Opcode::kProbe;
  header.opcode = probe ? wire::Opcode::kProbeReply : wire::Opcode::kResult;
  if (probe) {
    header.lane_count = engine.config().lanes;
    header.flags = 0;
  }
  const wire::FrameWriter writer(frame.addresses, engine.config().lanes);
  engine.on_datagram(now, std::span(bytes).first(writer.finish(header, bytes)));
}

template <typename T>
void run(DataType type) {
  JobConfig job;
  job.epoch = 1;
  job.slots = 16;
  Engine engine(job);
  std::vector<T> values(256 * 1000, T{1});
  engine.submit({.kind = CollectiveKind::kAllReduce,
                 .type = type,
                 .input = values.data(),
                 .output = values.data(),
                 .count = values.size()});
  std::vector<std::uint8_t> frame(engine.max_frame_bytes());
  Completion completion;
  Time now = 0s;
  std::size_t frames = 0;
  std::size_t before = 0;
  while (!engine.poll_completion(completion)) {
    // After the probe and the start of the collective.
    if (frames == 2) before = allocations;
    if (engine.statistics().results == 900) CHECK_EQ(allocations - before, 0);
    const std::size_t length = engine.poll_transmit(now, frame);
    if (length == 0) {
      now = *engine.next_deadline();
      engine.on_timer(now);
    } else if (++frames % 20 != 0) {  // others are lost, so that timers and repeats run too
      answer(engine, now, frame, length);
    }
  }
  CHECK(!completion.error);
  CHECK(engine.statistics().retransmissions > 10);
  CHECK(before > 0);
}

}  // namespace

TEST(int32_packets_take_no_memory) { run<std::int32_t>(DataType::kInt32); }
TEST(fp32_packets_take_no_memory) { run<float>(DataType::kFloat32); }
