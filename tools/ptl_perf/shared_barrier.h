// Barrier of processes in memory that they share. A process polls before it sleeps: a sleep of some
// microseconds would leave the processor and its caches to other programs in the middle of a
// measurement.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

namespace lintel::perf {

class SharedBarrier {
 public:
  explicit SharedBarrier(std::uint32_t process_count) : process_count_(process_count) {}
  SharedBarrier(const SharedBarrier&) = delete;
  SharedBarrier& operator=(const SharedBarrier&) = delete;

  /** No process returns before all processes have called. */
  void wait();

 private:
  bool poll_until_after(std::uint32_t round) const;

  const std::uint32_t process_count_;
  std::atomic<std::uint32_t> arrived_{0};  // number of arrivals in this round
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint32_t> round_{0};  // futex
};

}  // namespace lintel::perf
