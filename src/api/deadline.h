// Timeouts of PtlEQPoll and PtlCTPoll: milliseconds as given (spec 3.13.9, 3.14.7).
#pragma once

#include <cstdint>

#include "portals4.h"
#include "util/clock.h"

namespace lintel::api {

inline constexpr uint64_t no_deadline = UINT64_MAX;

[[nodiscard]] inline uint64_t deadline_after(ptl_time_t timeout_ms) noexcept {
  return timeout_ms == PTL_TIME_FOREVER ? no_deadline : now_ns() + uint64_t{timeout_ms} * 1'000'000;
}

}  // namespace lintel::api
