// The engine's notion of time: nanoseconds since an origin that only the caller knows. The engine
// never reads a clock; every call that depends on time is told what time it is.
#pragma once

#include <chrono>

namespace pycollective {

// A point in time, and a span of it. `now` given to the engine must not go backwards.
using Time = std::chrono::nanoseconds;
using Duration = std::chrono::nanoseconds;

}  // namespace pycollective
