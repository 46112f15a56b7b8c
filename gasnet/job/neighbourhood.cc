/* neighbourhood.cc: dividing hosts, sharing the control block. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "job/neighbourhood.h"

#include <sched.h>

#include <algorithm>

#include "job/job.h"

namespace lintel::gasnet {

Neighbourhood& neighbourhood() {
  static Neighbourhood& instance = *new Neighbourhood;
  return instance;
}

void Neighbourhood::divide(gex_Rank_t largest) {
  const gex_Rank_t size = job().size();
  if (largest == 0) largest = size;
  struct Group {
    gex_Rank_t number = 0;
    gex_Rank_t members = 0;
  };
  std::vector<Group> current(job().host_count());
  numbers_.resize(size);
  for (gex_Rank_t rank = 0; rank < size; ++rank) {
    Group& group = current[job().host_of(rank)];
    if (group.members % largest == 0) {
      group.number = static_cast<gex_Rank_t>(firsts_.size());
      firsts_.push_back(rank);
    }
    ++group.members;
    numbers_[rank] = group.number;
  }
  for (const gex_Rank_t rank : job().ranks_of_host())
    if (numbers_[rank] == numbers_[job().rank()]) ranks_.push_back(rank);
  index_ = static_cast<gex_Rank_t>(std::lower_bound(ranks_.begin(), ranks_.end(), job().rank()) -
                                   ranks_.begin());
}

void Neighbourhood::map_control(const std::vector<int>& process_ids,
                                const std::vector<int>& descriptors, const SharedMemory& own) {
  process_ids_ = process_ids;
  if (ranks_.size() > sizeof control_->finished)
    gasnett_fatalerror(
        "%zu processes are on this host, %zu can be neighbours: set "
        "GASNET_SUPERNODE_MAXSIZE=%zu",
        ranks_.size(), sizeof control_->finished, sizeof control_->finished);
  void* const address =
      is_first() ? own.address()
                 : map_memory_of(process_ids[0], descriptors[0], control_bytes(ranks_.size()));
  if (!address)
    gasnett_fatalerror(
        "the memory of process %d, rank %u, cannot be opened through /proc: if "
        "processes of this host are in different containers or belong to different "
        "users, set GASNET_SUPERNODE_MAXSIZE=1",
        process_ids_[0], ranks_[0]);
  control_ = static_cast<ControlBlock*>(address);
}

char* Neighbourhood::environment_text() const {
  return reinterpret_cast<char*>(control_) + kEnvironmentOffset;
}

void* Neighbourhood::near_memory(gex_Rank_t member) const {
  return reinterpret_cast<char*>(control_) + kControlBytes + member * kNearBytes;
}

void* Neighbourhood::collective_memory(gex_Rank_t member) const {
  return static_cast<char*>(near_memory(count())) + member * collective_bytes(count());
}

void Neighbourhood::barrier() {
  const uint32_t generation = control_->generation.load(std::memory_order_acquire);
  if (control_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == count()) {
    control_->arrived.store(0, std::memory_order_relaxed);
    control_->generation.store(generation + 1, std::memory_order_release);
    return;
  }
  while (control_->generation.load(std::memory_order_acquire) == generation) sched_yield();
}

}  // namespace lintel::gasnet
