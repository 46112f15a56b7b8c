/* remote.cc: finding the memory of the peer. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "rma/remote.h"

#include "segment/segment.h"
#include "trace/trace.h"

namespace lintel::gasnet {

Place place_in_segment(const char* call, const EndpointName& name, const void* address,
                       size_t bytes) {
  ptl_size_t offset = 0;
  if (!segment_table().offset_of(name.jobrank, name.index, address, bytes, &offset))
    gasnett_fatalerror_nopos(
        "%s: %zu bytes at %p are not in a segment of endpoint %u of rank %u that this process "
        "can reach",
        call, bytes, address, name.index, name.jobrank);
  return {name.jobrank, name.index, offset};
}

bool has_device_memory(gex_TM_t tm) {
  return GASNETI_IS_PAIR(tm) && segment_table().is_on_device(local_index_of(tm));
}

void* mapped_range(gex_TM_t tm, gex_Rank_t rank, void* address, size_t bytes) {
  if (!GASNETI_IS_PAIR(tm)) return gasneti_mapped_address(tm, rank, address);
  if (has_device_memory(tm)) return nullptr;
  void* owner = nullptr;
  void* local = nullptr;
  uintptr_t size = 0;
  gex_EP_QueryBoundSegmentNB(tm, rank, &owner, &local, &size, GEX_FLAG_IMMEDIATE);
  const uintptr_t distance =
      reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(owner);
  if (!local || distance > size || bytes > size - distance) return nullptr;
  return static_cast<char*>(local) + distance;
}

}  // namespace lintel::gasnet

using namespace lintel::gasnet;

void gasneti_trace_near(char category, gex_TM_t tm, gex_Rank_t rank, const void* address,
                        size_t nbytes) {
  LINTEL_GASNET_TRACE_TRANSFER(category, endpoint_of(tm, rank).jobrank,
                               "%zu bytes at %p, rank %u, a neighbour", nbytes, address, rank);
}
