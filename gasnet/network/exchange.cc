/* exchange.cc: Bruck's all-gather over puts. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "network/exchange.h"

#include <algorithm>
#include <cstring>

#include "job/job.h"
#include "network/network.h"

namespace lintel::gasnet {

Exchange::Exchange(unsigned int number, size_t record_bytes)
    : number_(number), record_bytes_(record_bytes) {}

void Exchange::prepare() {
  const gex_Rank_t size = job().size();
  blocks_.resize(size * record_bytes_);
  for (size_t have = 1, step = 0; have < size; have *= 2, ++step) {
    arrived_.push_back(network().new_counter());
    ptl_me_t entry{};
    entry.start = blocks_.data() + have * record_bytes_;
    entry.length = std::min(have, size - have) * record_bytes_;
    entry.ct_handle = arrived_.back();
    entry.uid = PTL_UID_ANY;
    entry.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM;
    entry.match_id.rank = PTL_RANK_ANY;
    entry.match_bits = (uint64_t{number_} << 8) | step;
    entries_.push_back(network().append(PortalIndex::kExchange, entry, nullptr));
  }
}

void Exchange::run(const void* mine) {
  const gex_Rank_t rank = job().rank();
  const gex_Rank_t size = job().size();
  std::memcpy(blocks_.data(), mine, record_bytes_);
  if (size == 1) return;

  ptl_md_t md{};
  md.start = blocks_.data();
  md.length = blocks_.size();
  md.options = PTL_MD_EVENT_CT_SEND;
  md.eq_handle = PTL_EQ_NONE;
  md.ct_handle = network().new_counter();
  const ptl_handle_md_t source = network().bind(md);

  ptl_ct_event_t count{};
  ptl_size_t sent = 0;
  for (size_t have = 1, step = 0; have < size; have *= 2, ++step) {
    const auto below = static_cast<gex_Rank_t>((rank + size - have % size) % size);
    const size_t bytes = std::min(have, size - have) * record_bytes_;
    check(PtlPut(source, 0, bytes, PTL_NO_ACK_REQ, process_of(below),
                 number_of(PortalIndex::kExchange), (uint64_t{number_} << 8) | step, 0, nullptr, 0),
          "PtlPut");
    ++sent;
    check(PtlCTWait(arrived_[step], 1, &count), "PtlCTWait");
    if (count.failure != 0) gasnett_fatalerror("a process of the job cannot be reached");
  }
  check(PtlCTWait(md.ct_handle, sent, &count), "PtlCTWait");
  if (count.failure != 0) gasnett_fatalerror("a process of the job cannot be reached");
  check(PtlMDRelease(source), "PtlMDRelease");
  PtlCTFree(md.ct_handle);
  for (const ptl_handle_me_t entry : entries_) PtlMEUnlink(entry);
  for (const ptl_handle_ct_t counter : arrived_) PtlCTFree(counter);
  entries_.clear();
  arrived_.clear();
}

const void* Exchange::record(gex_Rank_t rank) const {
  const gex_Rank_t size = job().size();
  return blocks_.data() + (rank + size - job().rank()) % size * record_bytes_;
}

void Exchange::release() { std::vector<char>().swap(blocks_); }

}  // namespace lintel::gasnet
