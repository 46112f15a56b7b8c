/* neighbourhood.cc: dividing hosts, sharing the control block. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "job/neighbourhood.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "job/job.h"
#include "job/node_barrier.h"

namespace lintel::gasnet {
namespace {

/* Number of the last gather; those before it are exchanges. */
constexpr unsigned int kGatherOfDescriptors = kGathers - 1;

}  // namespace

Neighbourhood& neighbourhood() {
  static Neighbourhood& instance = *new Neighbourhood;
  return instance;
}

bool Neighbourhood::use_memory_of_launcher() {
  const char* const path = std::getenv("GASNETRUN_MEMORY");
  const gex_Rank_t size = job().size();
  if (!path || size > kMostNeighbours) return false;
  if (!memory_of_launcher_.open(path, control_bytes(size)))
    gasnett_fatalerror_nopos("%s, memory of gasnetrun_portals4, cannot be mapped (%s)", path,
                             std::strerror(errno));
  memory_of_launcher_.close_descriptor();
  control_ = static_cast<ControlBlock*>(memory_of_launcher_.address());
  check_version();
  // A script may run several programs. All processes of the first one come before those of others.
  if (control_->uses.fetch_add(1, std::memory_order_relaxed) >= size) {
    memory_of_launcher_.unmap();
    control_ = nullptr;
    return false;
  }
  ranks_.resize(size);
  std::iota(ranks_.begin(), ranks_.end(), gex_Rank_t{0});
  firsts_ = {0};
  index_ = job().rank();
  return true;
}

void Neighbourhood::divide(gex_Rank_t largest) {
  const gex_Rank_t size = job().size();
  if (largest == 0) largest = size;
  struct Group {
    gex_Rank_t number = 0;
    gex_Rank_t members = 0;
  };
  std::vector<Group> current(job().host_count());
  firsts_.clear();
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
  if (memory_of_launcher_.address() && firsts_.size() > 1) leave_memory_of_launcher();
  ranks_.clear();
  for (const gex_Rank_t rank : job().ranks_of_host())
    if (numbers_[rank] == numbers_[job().rank()]) ranks_.push_back(rank);
  index_ = static_cast<gex_Rank_t>(std::lower_bound(ranks_.begin(), ranks_.end(), job().rank()) -
                                   ranks_.begin());
}

/** The control block becomes one of the first member of each group. */
void Neighbourhood::leave_memory_of_launcher() {
  const int descriptor = provide_control(job().ranks_of_host().size());
  descriptors_.resize(job().size());
  gather(kGatherOfDescriptors, &descriptor, sizeof descriptor,
         reinterpret_cast<char*>(descriptors_.data()));
  memory_of_launcher_.unmap();
  control_ = nullptr;
}

int Neighbourhood::provide_control(size_t members) {
  if (!memory_.create("gasnet", control_bytes(std::min<size_t>(members, kMostNeighbours))))
    gasnett_fatalerror_nopos("no memory that can be shared: memfd_create failed (%s)",
                             std::strerror(errno));
  return memory_.descriptor();
}

void Neighbourhood::map_control(const std::vector<int>& process_ids, int descriptor) {
  process_ids_ = process_ids;
  if (memory_of_launcher_.address()) return;
  if (!descriptors_.empty()) descriptor = descriptors_[ranks_[0]];
  if (count() > kMostNeighbours)
    gasnett_fatalerror(
        "%u processes are on this host, %u can be neighbours: set GASNET_SUPERNODE_MAXSIZE=%u",
        count(), kMostNeighbours, kMostNeighbours);
  void* address = memory_.address();
  if (!is_first()) {
    memory_.unmap();
    address = map_memory_of(process_ids_[0], descriptor, control_bytes(count()));
  }
  if (!address)
    gasnett_fatalerror(
        "the memory of process %d, rank %u, cannot be opened through /proc: if "
        "processes of this host are in different containers or belong to different "
        "users, set GASNET_SUPERNODE_MAXSIZE=1",
        process_ids_[0], ranks_[0]);
  control_ = static_cast<ControlBlock*>(address);
  check_version();
}

void Neighbourhood::check_version() {
  uint32_t version = 0;
  if (control_->version.compare_exchange_strong(version, kControlVersion,
                                                std::memory_order_relaxed) ||
      version == kControlVersion)
    return;
  gasnett_fatalerror_nopos(
      "the memory that the processes of this host share has layout %u, this library has %u: run "
      "all processes of a job with the same library",
      version, kControlVersion);
}

bool Neighbourhood::map_segments(uintptr_t bytes, std::vector<char*>& addresses) {
  // Each segment begins at the boundary of a huge page.
  constexpr size_t kAlignment = size_t{2} << 20;
  const auto aligned = [](size_t value) { return (value + kAlignment - 1) & ~(kAlignment - 1); };
  control_->segment_bytes[index_].store(bytes, std::memory_order_relaxed);
  if (is_first()) {
    segments_.make("gasnet-segments");
    control_->segments_descriptor.store(segments_.descriptor(), std::memory_order_relaxed);
  }
  barrier();
  std::vector<size_t> offsets;
  size_t total = 0;
  for (gex_Rank_t member = 0; member < count(); ++member) {
    offsets.push_back(total);
    total += aligned(control_->segment_bytes[member].load(std::memory_order_relaxed));
  }
  if (is_first() && !segments_.grow(total)) return false;
  const int descriptor = control_->segments_descriptor.load(std::memory_order_relaxed);
  auto* const start = static_cast<char*>(map_memory_of(process_ids_[0], descriptor, total));
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

void Neighbourhood::barrier() { await_members(control_->arrived, control_->generation, count()); }

void Neighbourhood::gather(unsigned int number, const void* mine, size_t bytes, char* records) {
  show(number, mine, bytes);
  barrier();
  collect(number, bytes, records);
}

void Neighbourhood::show(unsigned int number, const void* mine, size_t bytes) {
  std::memcpy(control_->records[number][index_], mine, bytes);
}

void Neighbourhood::collect(unsigned int number, size_t bytes, char* records) const {
  for (gex_Rank_t member = 0; member < count(); ++member)
    std::memcpy(records + member * bytes, control_->records[number][member], bytes);
}

}  // namespace lintel::gasnet
