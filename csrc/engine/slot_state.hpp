// The life of one use of a slot: every transition a host makes for a chunk, in one table.
//
// Theory of operation. A slot carries one chunk after another, one use each. It is Idle when the
// last use has its result, or before the first. A use is *released* into it when three things hold:
// the slot is Idle and the use is the next one for it (so use u - W has its result, which is what
// makes overwriting the switch's older version safe); the collective has that chunk; and the
// chunk's contents are known (an fp32 block needs its agreed exponent first). Released, it is
// Ready: it waits to be sent. Sending starts a timer and makes it Sent. If the timer goes off, the
// use is Due and waits to be sent again; the timer then starts with twice the time. A RESULT with
// the use's tag ends it from either state, whichever copy it answers, because the tag (epoch,
// sequence, chunk) and not the time says what it belongs to. A STATUS says that the switch has our
// contribution and whose it has not; repeats go on, since only the result can be missing, and the
// bitmap is kept for the message of a deadline.
//
// Nothing is kept of a frame that was sent: a repeat is made again from the input, which cannot
// have changed, since only the result overwrites it.
//
//          Release         Transmit            Timeout        Status            Result
//   Idle   Ready, enqueue  -                   -              drop: stale       drop: duplicate
//   Ready  -               Sent, start timer   -              drop: unexpected  drop: unexpected
//   Sent   -               -                   Due, enqueue   Sent, record      Idle, deliver
//   Due    -               Sent, start timer   -              Due, record       Idle, deliver
//
// Frames whose tag is not the use's never get here: exchange.cpp drops them as stale or unexpected.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pycollective {

enum class SlotState : std::uint8_t { kIdle, kReady, kSent, kDue };
inline constexpr std::size_t kSlotStates = 4;

enum class SlotEvent : std::uint8_t { kRelease, kTransmit, kTimeout, kStatus, kResult };
inline constexpr std::size_t kSlotEvents = 5;

enum class SlotAction : std::uint8_t {
  kImpossible,      // a defect of the engine
  kEnqueue,         // wait for poll_transmit
  kStartTimer,      // for the time of this many repeats
  kRecord,          // keep the bitmap of ranks
  kDeliver,         // stop the timer, hand the result to the algorithm
  kDropStale,       // about something that is over
  kDropDuplicate,   // of a result that was delivered
  kDropUnexpected,  // answers something that was not sent
};

struct SlotTransition {
  SlotState next;
  SlotAction action;
};

namespace detail {
using enum SlotState;
using enum SlotAction;

inline constexpr SlotTransition kNever{kIdle, kImpossible};

inline constexpr std::array<std::array<SlotTransition, kSlotEvents>, kSlotStates> kTransitions{{
    // The events in order: Release, Transmit, Timeout, Status, Result.
    // Idle
    {{{kReady, kEnqueue}, kNever, kNever, {kIdle, kDropStale}, {kIdle, kDropDuplicate}}},
    // Ready
    {{kNever, {kSent, kStartTimer}, kNever, {kReady, kDropUnexpected}, {kReady, kDropUnexpected}}},
    // Sent
    {{kNever, kNever, {kDue, kEnqueue}, {kSent, kRecord}, {kIdle, kDeliver}}},
    // Due
    {{kNever, {kSent, kStartTimer}, kNever, {kDue, kRecord}, {kIdle, kDeliver}}},
}};
}  // namespace detail

[[nodiscard]] constexpr SlotTransition transition(SlotState state, SlotEvent event) {
  return detail::kTransitions[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
}

}  // namespace pycollective
