/* credits.cc: collecting the credits of other processes. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "am/credits.h"

namespace lintel::gasnet {

bool CreditsToReturn::add(gex_Rank_t rank) {
  const uint32_t before = counts_[rank].fetch_add(1, std::memory_order_relaxed);
  if (before == 0) list(rank);
  return before + 1 >= at_once_;
}

void CreditsToReturn::list(gex_Rank_t rank) {
  const LockGuard lock(mutex_);
  gasneti_assert(waiting_.load(std::memory_order_relaxed) == ranks_.size());
  ranks_.push_back(rank);
  waiting_.store(ranks_.size(), std::memory_order_relaxed);
}

uint32_t CreditsToReturn::take(gex_Rank_t rank, uint32_t most) {
  if (counts_[rank].load(std::memory_order_relaxed) == 0) return 0;
  const uint32_t count = counts_[rank].exchange(0, std::memory_order_relaxed);
  if (count <= most) return count;
  if (counts_[rank].fetch_add(count - most, std::memory_order_relaxed) == 0) list(rank);
  return most;
}

bool CreditsToReturn::next(gex_Rank_t* rank) {
  const LockGuard lock(mutex_);
  gasneti_assert(waiting_.load(std::memory_order_relaxed) == ranks_.size());
  while (!ranks_.empty()) {
    *rank = ranks_.back();
    ranks_.pop_back();
    waiting_.store(ranks_.size(), std::memory_order_relaxed);
    if (counts_[*rank].load(std::memory_order_relaxed) != 0) return true;
  }
  return false;
}

}  // namespace lintel::gasnet
