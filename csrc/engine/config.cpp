#include "engine/config.hpp"

#include <string>

#include "wire/ina.hpp"

namespace pycollective {

static_assert(kMaxSlotsPerJob == wire::kMaxSlots);

namespace {

std::string out_of_range(const char* field, unsigned found, const char* limits) {
  return std::string(field) + " is " + std::to_string(found) + ", must be " + limits;
}

std::string reason(const JobConfig& config) {
  if (config.world_size < 1 || config.world_size > kMaxWorldSize) {
    return out_of_range("world_size", config.world_size,
                        "1 to 32 (ranks of one job on one switch)");
  }
  if (config.rank >= config.world_size) {
    return out_of_range("rank", config.rank,
                        ("below world_size, " + std::to_string(config.world_size)).c_str());
  }
  if (config.epoch == 0) return out_of_range("epoch", 0, "the one the controller gave, never 0");
  if (config.slots < 1 || config.slots > kMaxSlotsPerJob) {
    return out_of_range("slots", config.slots, "1 to 32768");
  }
  if (config.lanes < 1 || config.lanes > kMaxLanes) {
    return out_of_range("lanes", config.lanes, "1 to 2048 (INA_LANES of the switch's program)");
  }
  const Timers& timers = config.timers;
  for (Duration timer : {timers.rto_initial, timers.rto_min, timers.rto_max, timers.probe_interval,
                         timers.connect_timeout, timers.deadline}) {
    if (timer <= Duration::zero()) return "a timer is not positive";
  }
  if (timers.rto_min > timers.rto_max) return "rto_min is longer than rto_max";
  return "";
}

}  // namespace

Error validate(const JobConfig& config) {
  std::string why = reason(config);
  if (why.empty()) return {};
  return {.code = ErrorCode::kUnsupported,
          .job = config.job,
          .rank = config.rank,
          .detail = std::move(why)};
}

}  // namespace pycollective
