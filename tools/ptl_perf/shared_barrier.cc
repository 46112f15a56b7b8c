// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/shared_barrier.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>

namespace lintel::perf {
namespace {

// The others arrive this early in the middle of a measurement.
constexpr std::chrono::microseconds longest_poll{50};
constexpr int polls_between_clocks = 256;

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  static_assert(sizeof word == sizeof value);
  syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

}  // namespace

void SharedBarrier::wait() {
  const std::uint32_t round = round_.load();
  if (arrived_.fetch_add(1) + 1 == process_count_) {
    arrived_.store(0);
    round_.store(round + 1);
    if (sleepers_.load() != 0) futex(round_, FUTEX_WAKE, INT_MAX);
    return;
  }
  if (poll_until_after(round)) return;
  sleepers_.fetch_add(1);
  while (round_.load() == round) futex(round_, FUTEX_WAIT, round);
  sleepers_.fetch_sub(1);
}

// Polls without yields: another program that runs meanwhile would take the cache.
bool SharedBarrier::poll_until_after(std::uint32_t round) const {
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int polls = 0; polls < polls_between_clocks; ++polls)
      if (round_.load(std::memory_order_acquire) != round) return true;
  } while (std::chrono::steady_clock::now() - start < longest_poll);
  return false;
}

}  // namespace lintel::perf
