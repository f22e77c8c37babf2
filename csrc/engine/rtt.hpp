// Round-trip time estimate and retransmission timeout (RFC 6298), with Karn's rule.
//
// The estimator is fed by chunks that were sent once: from sending the contribution to having the
// result, which includes waiting for the slowest rank. A chunk that was repeated gives no sample,
// because its result may answer either copy. If the path becomes slower than the timeout, no chunk
// is sent only once any more. So a repeated chunk holds the timeout up for those that follow, until
// one of them gives a sample again, as RFC 6298 (5.5 to 5.7) does with the backed-off timeout; what
// is held here is the time since the chunk was first sent, the longest that a round trip can be.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/config.hpp"
#include "engine/time.hpp"

namespace pycollective {

class RttEstimator {
 public:
  explicit RttEstimator(const Timers& timers) : timers_(timers) {}

  // Time from sending to result of a chunk that was sent once.
  void on_sample(Duration rtt) {
    if (!sampled_) {
      sampled_ = true;
      smoothed_ = rtt;
      variation_ = rtt / 2;
    } else {
      // alpha = 1/8, beta = 1/4; the variation is taken from the old average.
      const Duration difference = rtt > smoothed_ ? rtt - smoothed_ : smoothed_ - rtt;
      variation_ += (difference - variation_) / 4;
      smoothed_ += (rtt - smoothed_) / 8;
    }
    held_ = Duration::zero();
  }

  // Time from first sending to result of a chunk that was repeated. A quarter more leaves room for
  // the next one to take a little longer.
  void on_repeated(Duration elapsed) { held_ = std::max(held_, elapsed + elapsed / 4); }

  // Timeout for a chunk that has been repeated this often.
  [[nodiscard]] Duration backed_off(unsigned repeats) const {
    Duration timeout = rto();
    for (unsigned i = 0; i < repeats && timeout < timers_.rto_max; ++i) timeout *= 2;
    return std::min(timeout, timers_.rto_max);
  }

  [[nodiscard]] Duration rto() const {
    const Duration computed =
        sampled_ ? smoothed_ + std::max(kGranularity, 4 * variation_) : timers_.rto_initial;
    return std::clamp(std::max(computed, held_), timers_.rto_min, timers_.rto_max);
  }

  // Zero before the first sample.
  [[nodiscard]] Duration smoothed() const { return smoothed_; }

 private:
  // RFC 6298 (2.3): on a path whose round trip does not vary, the timeout must not come down to the
  // round trip itself.
  static constexpr Duration kGranularity = std::chrono::milliseconds(1);

  Timers timers_;
  bool sampled_ = false;
  Duration smoothed_{};
  Duration variation_{};
  Duration held_{};
};

}  // namespace pycollective
