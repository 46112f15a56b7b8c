/* credits.h: how many requests may be under way, and the return of credits. Message path.
 *
 * A request takes a credit of its sender. For each credit the sender has room for a reply: in the
 * queue and in the blocks for replies. The reply returns the credit. Credits of requests without a
 * reply are collected and returned by a separate message.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_AM_CREDITS_H
#define LINTEL_GASNET_AM_CREDITS_H

#include <atomic>
#include <memory>
#include <vector>

#include "job/mutex.h"
#include "job/thread.h"
#include "tools/headers.h"

namespace lintel::gasnet {

/** The credits of this process. */
class Credits {
 public:
  explicit Credits(uint32_t count) : count_(count), free_(count) {}
  bool try_take() {
    int64_t free = free_.load(std::memory_order_relaxed);
    gasneti_assert(free >= 0 && free <= count_);
    if constexpr (!kCallsAreConcurrent) {
      if (free > 0) free_.store(free - 1, std::memory_order_relaxed);
      return free > 0;
    }
    while (free > 0)
      if (free_.compare_exchange_weak(free, free - 1, std::memory_order_acquire)) return true;
    return false;
  }
  void give_back(uint32_t count) {
    if constexpr (kCallsAreConcurrent)
      free_.fetch_add(count, std::memory_order_release);
    else
      free_.store(free_.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
    gasneti_assert(free_.load(std::memory_order_relaxed) <= count_);
  }

 private:
  [[maybe_unused]] const int64_t count_; /* in all */
  std::atomic<int64_t> free_;
};

/** Credits of other processes whose requests no longer need them. */
class CreditsToReturn {
 public:
  CreditsToReturn(gex_Rank_t ranks, uint32_t at_once)
      : counts_(new std::atomic<uint32_t>[ranks]()), at_once_(at_once) {}

  /** A request of `rank` had no reply. @return whether to return credits to the rank now. */
  bool add(gex_Rank_t rank);
  /** Takes the credits collected for a rank, at most `most`, to be sent. */
  uint32_t take(gex_Rank_t rank, uint32_t most);
  /** Any rank for which credits were collected; false if there is none. */
  bool next(gex_Rank_t* rank);
  bool is_empty() const { return waiting_.load(std::memory_order_relaxed) == 0; }

 private:
  void list(gex_Rank_t rank);

  std::unique_ptr<std::atomic<uint32_t>[]> counts_;
  uint32_t at_once_;
  std::atomic<size_t> waiting_{0}; /* size of ranks_, to be read without the lock */
  Mutex mutex_;
  /* Each time that a count rises from 0. The count may have been taken since then. */
  std::vector<gex_Rank_t> ranks_ LINTEL_GASNET_GUARDED_BY(mutex_);
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_AM_CREDITS_H
