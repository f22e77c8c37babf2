#include "engine/error.hpp"

#include <cstdio>

namespace pycollective {
namespace {

std::string seconds(Duration duration) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f s", std::chrono::duration<double>(duration).count());
  return text;
}

std::string who(const Error& error) {
  std::string text;
  if (error.operation != nullptr) {
    text += error.operation;
    if (error.sequence != 0) text += " #" + std::to_string(error.sequence);
    text += " ";
  }
  return text + "on rank " + std::to_string(error.rank) + " of job " + std::to_string(error.job);
}

std::string where(const Error& error) {
  if (!error.place) return "";
  return "chunk " + std::to_string(error.place->chunk) + " (slot " +
         std::to_string(error.place->slot) + ", version " +
         std::to_string(error.place->slot_version) + ")";
}

std::string ranks(std::uint32_t bitmap) {
  std::string list;
  unsigned count = 0;
  for (unsigned rank = 0; rank < 32; ++rank) {
    if (((bitmap >> rank) & 1) == 0) continue;
    if (count++ > 0) list += ", ";
    list += std::to_string(rank);
  }
  return (count == 1 ? "rank " : "ranks ") + list;
}

std::string silence(const Error& error) {
  if (!error.silent) return "the switch has never been heard";
  return "the switch has been silent for " + seconds(*error.silent);
}

// What the transport knows besides.
std::string besides(const Error& error) {
  return error.detail.empty() ? "" : " (" + error.detail + ")";
}

std::string deadline_text(const Error& error) {
  std::string text = who(error) + " did not finish within " + seconds(error.waited) + ": ";
  const std::string chunk = error.place ? where(error) : "the collective";
  if (!error.missing_ranks) {
    return text + chunk + " has no answer, " + silence(error) + besides(error) +
           "; check that the switch runs and that frames of this job pass in both directions";
  }
  if (*error.missing_ranks == 0) {
    return text + "all ranks have contributed to " + chunk + " but its result does not arrive, " +
           silence(error) + "; check the path from the switch to this rank";
  }
  return text + chunk + " waits for " + ranks(*error.missing_ranks) +
         "; check that they are alive and call the same collectives in the same order";
}

}  // namespace

const char* name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNone:
      return "none";
    case ErrorCode::kDeadlineExceeded:
      return "deadline_exceeded";
    case ErrorCode::kSwitchUnreachable:
      return "switch_unreachable";
    case ErrorCode::kMismatch:
      return "mismatch";
    case ErrorCode::kReductionOverflow:
      return "reduction_overflow";
    case ErrorCode::kEpochChanged:
      return "epoch_changed";
    case ErrorCode::kBadSlot:
      return "bad_slot";
    case ErrorCode::kMtu:
      return "mtu";
    case ErrorCode::kTransport:
      return "transport";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kUnsupported:
      return "unsupported";
  }
  return "unknown";
}

std::string Error::text() const {
  switch (code) {
    case ErrorCode::kNone:
      return "no error";
    case ErrorCode::kDeadlineExceeded:
      return deadline_text(*this);
    case ErrorCode::kSwitchUnreachable:
      return who(*this) + ": no answer to probes for " + seconds(waited) + besides(*this) +
             "; check the switch's address, that it runs, and that this rank is admitted to the "
             "job";
    case ErrorCode::kMismatch:
      return who(*this) + ": ranks disagree at " + where(*this) +
             "; all ranks must call the same collective with the same size, type, op and root";
    case ErrorCode::kReductionOverflow:
      return who(*this) + ": a sum left the signed 32-bit range in " + where(*this) +
             "; the output is not usable, use a wider type or smaller values";
    case ErrorCode::kEpochChanged:
      return who(*this) + ": the switch has epoch " + std::to_string(found) +
             " of this job, this rank has " + std::to_string(expected) +
             "; the job was started anew or the switch was reset, join it again";
    case ErrorCode::kBadSlot:
      return who(*this) + ": the switch refuses slot " + std::to_string(found) +
             ", this rank was configured for " + std::to_string(expected) +
             " slots; take the number of slots from the controller";
    case ErrorCode::kMtu:
      if (!detail.empty()) return who(*this) + ": " + detail;
      return who(*this) + ": full frames of " + std::to_string(expected) +
             " bytes get no answer, frames of " + std::to_string(found) +
             " bytes do; raise the MTU of the path or use a program with fewer lanes";
    case ErrorCode::kCancelled:
      return who(*this) + " was cancelled" + (detail.empty() ? "" : ": " + detail);
    case ErrorCode::kTransport:
    case ErrorCode::kUnsupported:
      return who(*this) + ": " + detail;
  }
  return "unknown error";
}

}  // namespace pycollective
