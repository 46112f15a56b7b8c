/* neighbourhood.cc: dividing hosts, sharing the control block. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "job/neighbourhood.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "job/futex.h"
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

int Neighbourhood::provide_control(size_t members) {
  if (!memory_.create("gasnet", control_bytes(std::min<size_t>(members, kMostNeighbours))))
    gasnett_fatalerror_nopos("no memory that can be shared: memfd_create failed (%s)",
                             std::strerror(errno));
  return memory_.descriptor();
}

void Neighbourhood::map_control(const std::vector<int>& process_ids, int descriptor) {
  process_ids_ = process_ids;
  descriptor_ = descriptor;
  if (count() > kMostNeighbours)
    gasnett_fatalerror(
        "%u processes are on this host, %u can be neighbours: set GASNET_SUPERNODE_MAXSIZE=%u",
        count(), kMostNeighbours, kMostNeighbours);
  void* address = memory_.address();
  if (!is_first()) {
    memory_.unmap();
    address = map_memory_of(process_ids_[0], descriptor_, 0, control_bytes(count()));
  }
  if (!address)
    gasnett_fatalerror(
        "the memory of process %d, rank %u, cannot be opened through /proc: if "
        "processes of this host are in different containers or belong to different "
        "users, set GASNET_SUPERNODE_MAXSIZE=1",
        process_ids_[0], ranks_[0]);
  control_ = static_cast<ControlBlock*>(address);
}

bool Neighbourhood::map_segments(uintptr_t bytes, std::vector<char*>& addresses) {
  // Each segment begins at the boundary of a huge page.
  constexpr size_t kAlignment = size_t{2} << 20;
  const auto aligned = [](size_t value) { return (value + kAlignment - 1) & ~(kAlignment - 1); };
  control_->segment_bytes[index_].store(bytes, std::memory_order_relaxed);
  barrier();
  std::vector<size_t> offsets;
  size_t total = 0;
  for (gex_Rank_t member = 0; member < count(); ++member) {
    offsets.push_back(total);
    total += aligned(control_->segment_bytes[member].load(std::memory_order_relaxed));
  }
  const size_t behind = aligned(control_bytes(count()));
  if (is_first() && !memory_.grow(behind + total)) return false;
  auto* const start =
      static_cast<char*>(map_memory_of(process_ids_[0], descriptor_, behind, total));
  if (!start) return false;
  for (const size_t offset : offsets) addresses.push_back(start + offset);
  return true;
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
    futex_wake_all(control_->generation);
    return;
  }
  // Many ranks may share few processors: those that wait sleep.
  while (control_->generation.load(std::memory_order_acquire) == generation)
    futex_wait(control_->generation, generation, 1000);
}

void Neighbourhood::gather(unsigned int number, const void* mine, size_t bytes, char* records) {
  auto& gathered = control_->records[number];
  std::memcpy(gathered[index_], mine, bytes);
  barrier();
  for (gex_Rank_t member = 0; member < count(); ++member)
    std::memcpy(records + member * bytes, gathered[member], bytes);
}

}  // namespace lintel::gasnet
