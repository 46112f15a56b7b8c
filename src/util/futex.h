// Sleeping on and waking a 32-bit word, within one process or across processes.
// Not on the message path: only threads that are about to sleep, or wake another, call it.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace lintel {

inline constexpr int64_t futex_no_timeout = -1;

// Sleeps while `word` holds `expected`, at most `timeout_ns`. Returns on a wake, a timeout, a
// signal or a changed value alike: the caller checks again. Async-signal-safe. `word` may be shared
// between processes.
inline void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected,
                       int64_t timeout_ns) noexcept {
  timespec limit{};
  if (timeout_ns >= 0) {
    limit.tv_sec = timeout_ns / 1'000'000'000;
    limit.tv_nsec = timeout_ns % 1'000'000'000;
  }
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, timeout_ns >= 0 ? &limit : nullptr, nullptr, 0);
}

inline void futex_wake(const std::atomic<uint32_t>& word, int count = INT_MAX) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0);
}

}  // namespace lintel
