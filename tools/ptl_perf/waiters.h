// The four ways to wait for the completion of operations. Message path: only Portals calls and the
// test of what they return.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <portals4.h>

#include <cstdint>

#include "ptl_perf/errors.h"
#include "ptl_perf/settings.h"

namespace lintel::perf {

/** hdr_data of the put that tells a target that the initiator has finished, plus the number of the
 *  pass from 1 on. */
inline constexpr ptl_hdr_data_t end_marker = 0x656e642d6d61726b;

/** One full event for each operation. */
template <Wait wait>
class EventWaiter {
 public:
  explicit EventWaiter(ptl_handle_eq_t queue) : queue_(queue) {}

  /** One more operation. */
  void next() {
    const int code = take();
    if (code != PTL_OK || event_.ni_fail_type != PTL_NI_OK) [[unlikely]] {
      throw_event_failed(name(), code, event_);
    }
  }

  /** The acknowledgment of a successful operation from a Source of this process: no event. */
  void acknowledged() {}

  /** `count` more operations. */
  void advance(std::uint64_t count) {
    for (; count != 0; --count) next();
  }

  /** Takes events until the end marker of this pass or of a later one comes. An initiator that is
   *  bounded by acknowledgments can be faster than this process takes events (an acknowledgment is
   *  sent on delivery), so events may be lost here, the end marker among them if another pass
   *  follows at once; returns how often that happened. */
  std::uint64_t absorb(std::uint64_t) {
    ++passes_absorbed_;
    std::uint64_t losses = 0;
    while (passes_ended_ < passes_absorbed_) {
      const int code = take();
      if (code != PTL_OK || event_.ni_fail_type != PTL_NI_OK) [[unlikely]] {
        if (code != PTL_EQ_DROPPED || event_.ni_fail_type != PTL_NI_OK) {
          throw_event_failed(name(), code, event_);
        }
        ++losses;
      }
      if (event_.type == PTL_EVENT_PUT && event_.hdr_data > end_marker) {
        passes_ended_ = event_.hdr_data - end_marker;
      }
    }
    return losses;
  }

 private:
  static const char* name() { return wait == Wait::blocking ? "PtlEQWait" : "PtlEQGet"; }

  int take() {
    if constexpr (wait == Wait::blocking) {
      return PtlEQWait(queue_, &event_);
    } else {
      int code = PtlEQGet(queue_, &event_);
      while (code == PTL_EQ_EMPTY) code = PtlEQGet(queue_, &event_);
      return code;
    }
  }

  ptl_handle_eq_t queue_;
  ptl_event_t event_{};
  std::uint64_t passes_absorbed_ = 0;
  std::uint64_t passes_ended_ = 0;  // the last end marker seen
};

/** A counting event that counts each operation. */
template <Wait wait>
class CountWaiter {
 public:
  explicit CountWaiter(ptl_handle_ct_t counter) : counter_(counter) {}

  void next() { advance(1); }

  /** Counts an acknowledgment among the arrivals. */
  void acknowledged() { advance(1); }

  void advance(std::uint64_t count) {
    expected_ += count;
    ptl_ct_event_t value;
    int code;
    if constexpr (wait == Wait::blocking) {
      code = PtlCTWait(counter_, expected_, &value);
    } else {
      do {
        code = PtlCTGet(counter_, &value);
      } while (code == PTL_OK && value.success < expected_ && value.failure == 0);
    }
    if (code != PTL_OK || value.failure != 0) [[unlikely]] {
      throw_count_failed(wait == Wait::blocking ? "PtlCTWait" : "PtlCTGet", code, value);
    }
  }

  /** `count` operations and the end marker. A count loses nothing: returns 0. */
  std::uint64_t absorb(std::uint64_t count) {
    advance(count + 1);
    return 0;
  }

 private:
  ptl_handle_ct_t counter_;
  ptl_size_t expected_ = 0;
};

}  // namespace lintel::perf
