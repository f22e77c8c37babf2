// What a call of the control plane or of port management can fail with. The codes are gRPC's
// canonical ones, because that is how P4Runtime reports them. Main type: SwitchError.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace p4emu {

enum class Code : std::uint8_t {
  kInvalidArgument = 3,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kOutOfRange = 11,
  kUnavailable = 14,
};

class SwitchError : public std::runtime_error {
 public:
  SwitchError(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] Code code() const { return code_; }

 private:
  Code code_;
};

}  // namespace p4emu
