// How many chunks may be in flight. The slots bound it from above: a chunk needs a slot that has
// given its last result. This window lets all of them go; a window that reacts to congestion marks
// and loss takes its place here and nowhere else.
#pragma once

#include <cstddef>

namespace pycollective {

class Window {
 public:
  explicit Window(std::size_t slots) : limit_(slots) {}

  // Whether a new chunk may be sent while `in_flight` others have no result yet. Repeats need no
  // permission: what they repeat is already counted.
  [[nodiscard]] bool admits(std::size_t in_flight) const { return in_flight < limit_; }

 private:
  std::size_t limit_;
};

}  // namespace pycollective
