// Failures of ptl_perf: exit codes, and the exception that carries one. The `require` checks are in
// timed loops; the functions that they call on a failure are not inline.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <portals4.h>

#include <functional>
#include <stdexcept>
#include <string>

namespace lintel::perf {

enum class ExitCode : int {
  success = 0,
  failed = 1,      // a Portals call failed, or the machine lacks what the measurement needs
  usage = 2,       // an option is wrong
  wrong_data = 3,  // --verify found a byte that is not as it was sent
  peer_lost = 4,   // another process of the measurement ended early
  deadline = 5     // no progress for --deadline seconds
};

class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& what) : std::runtime_error(what), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/** Adds an explanation when an operation failed because its target cannot be reached, until the
 *  object is destroyed. One object at a time. */
class LostPeerExplanation {
 public:
  explicit LostPeerExplanation(std::function<std::string()> explain);
  ~LostPeerExplanation();
  LostPeerExplanation(const LostPeerExplanation&) = delete;
  LostPeerExplanation& operator=(const LostPeerExplanation&) = delete;
};

/** Throws: the Portals function `call` returned `code`. */
[[noreturn, gnu::cold]] void throw_call_failed(const char* call, int code);

/** Throws: an event reported a failure, or an unexpected code came with it. */
[[noreturn, gnu::cold]] void throw_event_failed(const char* call, int code,
                                                const ptl_event_t& event);

/** Throws: a counting event counted failures. */
[[noreturn, gnu::cold]] void throw_count_failed(const char* call, int code,
                                                const ptl_ct_event_t& count);

inline void require(int code, const char* call) {
  if (code != PTL_OK) [[unlikely]]
    throw_call_failed(call, code);
}

}  // namespace lintel::perf
