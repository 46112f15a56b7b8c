/* segment.h: the object behind a gex_Segment_t, and the bound segments of all ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_SEGMENT_SEGMENT_H
#define LINTEL_GASNET_SEGMENT_SEGMENT_H

#include <portals4.h>

#include <atomic>
#include <memory>
#include <vector>

#include "endpoint/endpoint.h"
#include "job/shared_memory.h"
#include "tools/headers.h"
#include "tools/lock.h"

namespace lintel::gasnet {

/** An endpoint with the segment, and the entries through which other processes reach it. */
struct Binding {
  gex_EP_t endpoint;
  std::vector<ptl_handle_me_t> entries;
};

}  // namespace lintel::gasnet

struct gasneti_segment {
  gex_Client_t client = GEX_CLIENT_INVALID;
  gex_Flags_t flags = 0;
  gex_MK_t kind = GEX_MK_HOST;
  void* address = nullptr;
  uintptr_t bytes = 0;
  bool is_owned = false;               /* the library owns the memory, not the client */
  lintel::gasnet::SharedMemory memory; /* used if it is owned */
  std::atomic<const void*> client_data{nullptr};
  std::vector<lintel::gasnet::Binding> bindings;
};

namespace lintel::gasnet {

/** The bound segments of all endpoints that this process may reach, by endpoint index and rank.
 * Only attaching, binding and publishing change it. It is read on the message path. */
class SegmentTable {
 public:
  struct Entry {
    uintptr_t address = 0; /* address in the owner; 0 without a segment */
    uintptr_t bytes = 0;
  };

  void set(gex_Rank_t rank, gex_EP_Index_t index, Entry entry);
  /** Whether the segment of an endpoint of this process is memory of a device, which only Portals
   * may access. */
  void set_on_device(gex_EP_Index_t index, bool on_device) {
    device_binding_[index] = on_device ? ++bindings_ : 0;
  }
  bool is_on_device(gex_EP_Index_t index) const {
    return index < GASNET_MAXEPS && device_binding(index) != 0;
  }
  /** A number that no other binding of such a segment has; 0 without one. */
  unsigned int device_binding(gex_EP_Index_t index) const {
    return device_binding_[index].load(std::memory_order_relaxed);
  }
  /** All memory of all processes is the segment of their primordial endpoints. */
  void set_everything() { is_everything_ = true; }
  bool is_everything() const { return is_everything_; }
  /** Unchecked: an entry is set before the client uses the segment. Memory is never freed. */
  Entry of(gex_Rank_t rank, gex_EP_Index_t index) const LINTEL_GASNET_UNCHECKED_LOCKS {
    if (is_everything_ && index == 0) return {0, UINTPTR_MAX};
    if (index >= GASNET_MAXEPS || !entries_[index]) return {};
    return entries_[index][rank];
  }
  /** The remote offset of an address for PortalIndex::kSegment.
   * @return false if the range is not in the segment. */
  bool offset_of(gex_Rank_t rank, gex_EP_Index_t index, const void* address, size_t length,
                 ptl_size_t* offset) const {
    const Entry entry = of(rank, index);
    const uintptr_t distance = reinterpret_cast<uintptr_t>(address) - entry.address;
    *offset = distance;
    return distance <= entry.bytes && length <= entry.bytes - distance;
  }

 private:
  bool is_everything_ = false;
  std::atomic<unsigned int> bindings_{0};
  std::atomic<unsigned int> device_binding_[GASNET_MAXEPS] = {};
  ProcessMutex mutex_;
  std::unique_ptr<Entry[]> entries_[GASNET_MAXEPS] LINTEL_GASNET_GUARDED_BY(mutex_);
};

SegmentTable& segment_table();

/** Binds a segment to an endpoint. Other processes can reach it from now on. */
void bind_segment(gasneti_endpoint& endpoint, gasneti_segment& segment)
    LINTEL_GASNET_REQUIRES(endpoint.client->mutex);

/** The largest segments, as gex_Client_Init has computed them. */
struct SegmentLimits {
  uintptr_t local = 0;
  uintptr_t global = 0;
};
SegmentLimits& segment_limits();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_SEGMENT_SEGMENT_H
