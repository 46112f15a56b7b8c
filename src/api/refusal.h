// Refused calls: with PTL_LOG_LEVEL=debug each writes one line that names the call, the argument,
// its value and the rule. At the level warn the first one of a process says that. Fault path, out
// of line: calls that succeed execute nothing of it.
//
// Each function returns the code that it is given or finds, for the call to return in turn.
#pragma once

#include <cstdint>

#include "api/resolve.h"
#include "core/operations/physical_interface.h"
#include "portals4.h"

namespace lintel::api {

struct Call {
  const char* name;
  const char* rules;  // section of the rules: "spec 3.15.2"
  // Programs make this call to find something out, or it reports itself why it fails: its refusal
  // causes no hint at PTL_LOG_LEVEL.
  bool is_question = false;
};

// `rule` says what the argument had to be, as a predicate: "must be ...".
[[nodiscard, gnu::cold, gnu::noinline]] int refuse(int code, const Call& call, const char* argument,
                                                   uint64_t value, const char* rule) noexcept;
// The same; the value consists of bits.
[[nodiscard, gnu::cold, gnu::noinline]] int refuse_bits(int code, const Call& call,
                                                        const char* argument, uint64_t value,
                                                        const char* rule) noexcept;
// The same for a code that correct programs get, too.
[[nodiscard, gnu::cold, gnu::noinline]] int refuse_expected(int code, const Call& call,
                                                            const char* argument, uint64_t value,
                                                            const char* rule) noexcept;
// PTL_ARG_INVALID: a pointer that must not be NULL.
[[nodiscard, gnu::cold, gnu::noinline]] int refuse_null(const Call& call,
                                                        const char* argument) noexcept;
// PTL_ARG_INVALID: the size of an array that must not be empty.
[[nodiscard]] inline int refuse_size(const Call& call, uint64_t size) noexcept {
  return refuse(code_of_bad_handle(), call, "size", size, "must not be 0");
}
// PTL_NO_INIT: the call needs an initialized library.
[[nodiscard, gnu::cold, gnu::noinline]] int refuse_before_init(const Call& call) noexcept;
// PTL_NO_INIT or PTL_ARG_INVALID: a handle that names no object of that type, or one of another
// interface than the call is about.
[[nodiscard, gnu::cold, gnu::noinline]] int refuse_handle(const Call& call, const char* argument,
                                                          ptl_handle_any_t handle,
                                                          HandleType type) noexcept;
// The same for the argument `ni_handle`.
[[nodiscard]] inline int refuse_interface_handle(const Call& call,
                                                 ptl_handle_ni_t handle) noexcept {
  return refuse_handle(call, "ni_handle", handle, HandleType::interface);
}

// PTL_NO_SPACE: there is no room for another triggered operation.
[[nodiscard]] inline int refuse_triggered(const Call& call, int max_triggered_ops) noexcept {
  return refuse(PTL_NO_SPACE, call, "max_triggered_ops", static_cast<uint64_t>(max_triggered_ops),
                "that many triggered operations wait, or there is no memory");
}

// Rules of calls about the map of ranks.
inline constexpr const char* logical_only = "must be of an interface with PTL_NI_LOGICAL";
inline constexpr const char* map_needed = "PtlSetMap must have been called for the interface";
// Rule of PtlCTInc and PtlTriggeredCTInc.
inline constexpr const char* one_field = "must be 0 where increment.success is not";

// An object that is in use because of a message stays so until a thread polls. Calls that would
// refuse for that reason first poll in passing, so that a program may repeat them in a loop.
// Returns the code that `attempt` returns; if that is `refusal`, the code of another attempt after
// a poll.
template <typename Attempt>
[[nodiscard]] int poll_before_refusal(PhysicalInterface& physical, int refusal,
                                      Attempt&& attempt) noexcept {
  const int code = attempt();
  return code == refusal && physical.passing_polls().poll() ? attempt() : code;
}

}  // namespace lintel::api
