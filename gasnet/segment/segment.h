/* segment.h: the object behind a gex_Segment_t, and the bound segments of all ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_SEGMENT_SEGMENT_H
#define LINTEL_GASNET_SEGMENT_SEGMENT_H

#include <portals4.h>

#include <atomic>
#include <vector>

#include "job/shared_memory.h"
#include "tools/headers.h"

struct gasneti_segment {
  gex_Client_t client = GEX_CLIENT_INVALID;
  gex_Flags_t flags = 0;
  gex_MK_t kind = GEX_MK_HOST;
  void* address = nullptr;
  uintptr_t bytes = 0;
  bool is_owned = false;               /* by gex_Segment_Attach, not by the client */
  lintel::gasnet::SharedMemory memory; /* if it is owned */
  std::atomic<const void*> client_data{nullptr};
};

namespace lintel::gasnet {

/** The bound segments of primordial endpoints, by rank. Filled by gex_Segment_Attach, constant
 * then: read on the message path. */
class SegmentTable {
 public:
  struct Entry {
    uintptr_t address = 0; /* at the owner; 0 without a segment */
    uintptr_t bytes = 0;
  };

  void fill(gex_Rank_t size) { entries_.resize(size); }
  void set(gex_Rank_t rank, Entry entry) { entries_[rank] = entry; }
  bool is_filled() const { return !entries_.empty(); }
  const Entry& of(gex_Rank_t rank) const { return entries_[rank]; }
  /** The remote offset of an address for PortalIndex::kSegment.
   * @return false if the range is not in the segment of the rank. */
  bool offset_of(gex_Rank_t rank, const void* address, size_t length, ptl_size_t* offset) const {
    const Entry& entry = entries_[rank];
    const uintptr_t distance = reinterpret_cast<uintptr_t>(address) - entry.address;
    *offset = distance;
    return distance <= entry.bytes && length <= entry.bytes - distance;
  }

 private:
  std::vector<Entry> entries_;
};

SegmentTable& segment_table();

/** What gex_Client_Init finds out: the largest segments. */
struct SegmentLimits {
  uintptr_t local = 0;
  uintptr_t global = 0;
};
SegmentLimits& segment_limits();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_SEGMENT_SEGMENT_H
