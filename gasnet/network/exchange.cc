/* exchange.cc: an all-gather through shared memory if all processes share it, else by puts along a
 * tree. Set-up path.
 *
 * Write the ranks in base 8. The parent of a rank has a 0 in place of its last digit that is not 0.
 * So a process and the processes below it in the tree have consecutive ranks. One put carries their
 * records.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "network/exchange.h"

#include <algorithm>
#include <cstring>

#include "job/job.h"
#include "job/neighbourhood.h"
#include "network/network.h"

namespace lintel::gasnet {
namespace {

constexpr uint64_t kBase = 8;

/** @return how many ranks, including this one, send their records through this one. */
uint64_t ranks_below(gex_Rank_t rank, gex_Rank_t size) {
  uint64_t below = 1;
  while (below < size && rank % (below * kBase) == 0) below *= kBase;
  return std::min<uint64_t>(below, size - rank);
}

std::vector<gex_Rank_t> children_of(gex_Rank_t rank, gex_Rank_t size) {
  std::vector<gex_Rank_t> children;
  const uint64_t below = ranks_below(rank, size);
  for (uint64_t step = 1; step < below; step *= kBase)
    for (uint64_t digit = 1; digit < kBase && digit * step < below; ++digit)
      children.push_back(static_cast<gex_Rank_t>(rank + digit * step));
  return children;
}

gex_Rank_t parent_of(gex_Rank_t rank) {
  uint64_t step = kBase;
  while (rank % step == 0) step *= kBase;
  return static_cast<gex_Rank_t>(rank - rank % step);
}

ptl_match_bits_t match_bits_of(unsigned int number, unsigned int direction) {
  return ptl_match_bits_t{number} << 8 | direction;
}

}  // namespace

Exchange::Exchange(unsigned int number, size_t record_bytes)
    : number_(number), record_bytes_(record_bytes) {}

void Exchange::prepare() {
  gasneti_assert(records_.empty());
  records_.resize(job().size() * record_bytes_);
  for (const Direction direction : {kUp, kDown}) {
    arrived_[direction] = network().new_counter();
    ptl_me_t entry{};
    entry.start = records_.data();
    entry.length = records_.size();
    entry.ct_handle = arrived_[direction];
    entry.uid = PTL_UID_ANY;
    entry.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM;
    entry.match_id.rank = PTL_RANK_ANY;
    entry.match_bits = match_bits_of(number_, direction);
    entries_[direction] = network().append(PortalIndex::kExchange, entry, nullptr);
  }
}

void Exchange::await(Direction direction, ptl_size_t messages) const {
  ptl_ct_event_t count{};
  check(PtlCTWait(arrived_[direction], messages, &count), "PtlCTWait");
  if (count.failure != 0) gasnett_fatalerror("a process of the job cannot be reached");
  // Each process sends once in each direction.
  gasneti_assert(count.success == messages);
}

void Exchange::run(const void* mine) {
  gasneti_assert(records_.size() == job().size() * record_bytes_);
  if (neighbourhood().is_whole_job())
    neighbourhood().gather(number_, mine, record_bytes_, records_.data());
  else
    run_along_tree(mine);
  unlink_entries();
}

void Exchange::show(const void* mine) const { neighbourhood().show(number_, mine, record_bytes_); }

void Exchange::collect() {
  gasneti_assert(records_.size() == job().size() * record_bytes_);
  neighbourhood().collect(number_, record_bytes_, records_.data());
  unlink_entries();
}

// The few counters are not freed: that would interrupt all processors (membarrier).
void Exchange::unlink_entries() const {
  for (const Direction direction : {kUp, kDown}) PtlMEUnlink(entries_[direction]);
}

void Exchange::run_along_tree(const void* mine) {
  const gex_Rank_t rank = job().rank();
  const gex_Rank_t size = job().size();
  std::memcpy(records_.data() + rank * record_bytes_, mine, record_bytes_);

  ptl_md_t md{};
  md.start = records_.data();
  md.length = records_.size();
  md.options = PTL_MD_EVENT_CT_SEND;
  md.eq_handle = PTL_EQ_NONE;
  md.ct_handle = network().new_counter();
  const ptl_handle_md_t source = network().bind(md);
  ptl_size_t sent = 0;
  const auto send = [&](gex_Rank_t target, Direction direction, gex_Rank_t first, uint64_t ranks) {
    check(PtlPut(source, first * record_bytes_, ranks * record_bytes_, PTL_NO_ACK_REQ,
                 process_of(target), number_of(PortalIndex::kExchange),
                 match_bits_of(number_, direction), first * record_bytes_, nullptr, 0),
          "PtlPut");
    ++sent;
  };

  const std::vector<gex_Rank_t> children = children_of(rank, size);
  await(kUp, children.size());
  if (rank != 0) {
    send(parent_of(rank), kUp, rank, ranks_below(rank, size));
    await(kDown, 1);
  }
  for (const gex_Rank_t child : children) send(child, kDown, 0, size);

  ptl_ct_event_t count{};
  check(PtlCTWait(md.ct_handle, sent, &count), "PtlCTWait");
  if (count.failure != 0) gasnett_fatalerror("a process of the job cannot be reached");
  check(PtlMDRelease(source), "PtlMDRelease");
}

void Exchange::release() { std::vector<char>().swap(records_); }

}  // namespace lintel::gasnet
