/* segment.cc: segments of the client's memory, binding, queries. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "segment/segment.h"

#include "client/client.h"
#include "endpoint/endpoint.h"
#include "job/errors.h"
#include "job/job.h"
#include "job/neighbourhood.h"
#include "job/thread.h"
#include "network/network.h"
#include "network/poll.h"
#include "segment/memory_kind.h"
#include "team/team.h"

namespace lintel::gasnet {

SegmentTable& segment_table() {
  static SegmentTable& instance = *new SegmentTable;
  return instance;
}

void SegmentTable::set(gex_Rank_t rank, gex_EP_Index_t index, Entry entry) {
  const LockGuard lock(mutex_);
  if (!entries_[index]) entries_[index] = std::make_unique<Entry[]>(job().size());
  entries_[index][rank] = entry;
}

void bind_segment(gasneti_endpoint& endpoint, gasneti_segment& segment) {
  // One entry for all puts and gets, without events at this side.
  ptl_me_t entry{};
  entry.start = segment.address;
  entry.length = segment.bytes;
  entry.ct_handle = PTL_CT_NONE;
  entry.uid = PTL_UID_ANY;
  entry.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                  PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_NO_TRUNCATE;
  entry.match_id.rank = PTL_RANK_ANY;
  entry.match_bits = endpoint.index;
  Binding binding{&endpoint, {network().append(PortalIndex::kSegment, entry, nullptr)}};
  if (endpoint.index == 0) {
    // Active messages go to this endpoint only.
    entry.options &= ~static_cast<unsigned int>(PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE);
    binding.entries.push_back(network().append(PortalIndex::kLongData, entry, nullptr));
  }
  segment.bindings.push_back(binding);
  endpoint.segment = &segment;
  segment_table().set_on_device(endpoint.index, is_device(segment.kind));
  segment_table().set(job().rank(), endpoint.index,
                      {reinterpret_cast<uintptr_t>(segment.address), segment.bytes});
}

namespace {

/** To be called when no other process can reach the segment. */
void unbind_segment(gasneti_endpoint& endpoint) {
  const gex_Rank_t own = job().rank();
  gasneti_team& team = *endpoint.client->team;
  const LockGuard lock(endpoint.client->mutex);
  endpoint.segment = GEX_SEGMENT_INVALID;
  segment_table().set_on_device(endpoint.index, false);
  segment_table().set(own, endpoint.index, {});
  if (endpoint.index == 0 && team.mapped_offset_of(own)) team.set_mapped_offset(own, std::nullopt);
  map_all_teams(&team);
}

}  // namespace

SegmentLimits& segment_limits() {
  static SegmentLimits instance;
  return instance;
}

}  // namespace lintel::gasnet

using namespace lintel::gasnet;

uintptr_t gasnet_getMaxLocalSegmentSize() { return segment_limits().local; }
uintptr_t gasnet_getMaxGlobalSegmentSize() { return segment_limits().global; }

int gasnet_getSegmentInfo(gasnet_seginfo_t* table, int count) {
  if (!table || count < 0)
    return report_error(GASNET_ERR_BAD_ARG, "gasnet_getSegmentInfo: no table");
  for (gex_Rank_t rank = 0; rank < job().size() && rank < static_cast<gex_Rank_t>(count); ++rank) {
    const SegmentTable::Entry entry = segment_table().of(rank, 0);
    table[rank].addr = reinterpret_cast<void*>(entry.address);
    table[rank].size = entry.bytes;
  }
  return GASNET_OK;
}

int gasnet_getNodeInfo(gasnet_nodeinfo_t* table, int count) {
  if (!table || count < 0) return report_error(GASNET_ERR_BAD_ARG, "gasnet_getNodeInfo: no table");
  const gasneti_client* client = the_client();
  if (!client) return GASNET_ERR_NOT_INIT;
  for (gex_Rank_t rank = 0; rank < job().size() && rank < static_cast<gex_Rank_t>(count); ++rank) {
    const std::optional<intptr_t> offset = client->team->mapped_offset_of(rank);
    table[rank].host = job().host_of(rank);
    table[rank].supernode = neighbourhood().number_of(rank);
    table[rank].gasneti_is_mapped = offset.has_value();
    table[rank].offset = static_cast<uintptr_t>(offset.value_or(0));
  }
  return GASNET_OK;
}

int gex_Segment_Create(gex_Segment_t* segment_p, gex_Client_t client, gex_Addr_t address,
                       uintptr_t length, gex_MK_t kind, gex_Flags_t flags) {
  check_may_communicate("gex_Segment_Create");
  if (!segment_p || !client || length == 0 || flags != 0)
    return report_error(GASNET_ERR_BAD_ARG, "gex_Segment_Create: length 0, or flags");
  if (kind == GEX_MK_INVALID)
    return report_error(GASNET_ERR_BAD_ARG, "gex_Segment_Create: give a kind of memory");
  if (address && is_device(kind) && !kind->owns(address, length))
    return report_error(
        GASNET_ERR_BAD_ARG,
        "gex_Segment_Create: %llu bytes at %p are not memory of the device of their kind",
        static_cast<unsigned long long>(length), address);
  if (address && kind == GEX_MK_HOST && !is_memory_of_host(address, length))
    return report_error(GASNET_ERR_BAD_ARG,
                        "gex_Segment_Create: %llu bytes at %p are memory of a device, not of the "
                        "host: give its kind",
                        static_cast<unsigned long long>(length), address);
  auto* segment = new gasneti_segment;
  if (!address && is_device(kind)) {
    address = kind->allocate(length);
    if (!address) {
      delete segment;
      return report_error(GASNET_ERR_RESOURCE,
                          "gex_Segment_Create: the device has no memory for %llu bytes",
                          static_cast<unsigned long long>(length));
    }
    segment->is_owned = true;
  } else if (!address) {
    // The library allocates the memory, so that other processes can map it.
    if (!segment->memory.create("gasnet-segment", length)) {
      delete segment;
      return report_error(GASNET_ERR_RESOURCE, "gex_Segment_Create: no memory for %llu bytes",
                          static_cast<unsigned long long>(length));
    }
    address = segment->memory.address();
    segment->is_owned = true;
  }
  segment->client = client;
  segment->address = address;
  segment->bytes = length;
  segment->kind = kind;
  use_kind(kind);
  *segment_p = segment;
  return GASNET_OK;
}

void gex_Segment_Destroy(gex_Segment_t segment, gex_Flags_t flags) {
  check_may_communicate("gex_Segment_Destroy");
  if (flags != 0) gasnett_fatalerror_nopos("gex_Segment_Destroy: flags 0x%x, must be 0", flags);
  for (const Binding& binding : segment->bindings) {
    for (const ptl_handle_me_t entry : binding.entries) {
      int code = PTL_OK;
      while ((code = PtlMEUnlink(entry)) == PTL_IN_USE) wait_hint(poll());
      check(code, "PtlMEUnlink");
    }
    unbind_segment(*binding.endpoint);
  }
  segment->memory.unmap();
  if (segment->is_owned && is_device(segment->kind)) segment->kind->release(segment->address);
  leave_kind(segment->kind);
  delete segment;
}

int gex_EP_BindSegment(gex_EP_t ep, gex_Segment_t segment, gex_Flags_t flags) {
  check_may_communicate("gex_EP_BindSegment");
  if (!ep || !segment || flags != 0 || ep->client != segment->client)
    return report_error(GASNET_ERR_BAD_ARG,
                        "gex_EP_BindSegment: give an endpoint and a segment of one client, and no "
                        "flags");
  // Active messages and collectives use the memory of this endpoint.
  if (ep->index == 0 && is_device(segment->kind))
    return report_error(
        GASNET_ERR_BAD_ARG,
        "gex_EP_BindSegment: the primordial endpoint takes memory of the host only");
  const LockGuard lock(ep->client->mutex);
  if (ep->segment != GEX_SEGMENT_INVALID || (ep->index == 0 && segment_table().is_everything()))
    return report_error(GASNET_ERR_BAD_ARG, "gex_EP_BindSegment: endpoint %u has a segment",
                        ep->index);
  bind_segment(*ep, *segment);
  return GASNET_OK;
}

gex_Client_t gex_Segment_QueryClient(gex_Segment_t seg) { return seg->client; }
gex_Flags_t gex_Segment_QueryFlags(gex_Segment_t seg) { return seg->flags; }
void* gex_Segment_QueryAddr(gex_Segment_t seg) { return seg->address; }
uintptr_t gex_Segment_QuerySize(gex_Segment_t seg) { return seg->bytes; }
void gex_Segment_SetCData(gex_Segment_t seg, const void* val) { seg->client_data = val; }
void* gex_Segment_QueryCData(gex_Segment_t seg) {
  return const_cast<void*>(seg->client_data.load());
}

gex_Event_t gex_EP_QueryBoundSegmentNB(gex_TM_t tm, gex_Rank_t rank, void** owneraddr_p,
                                       void** localaddr_p, uintptr_t* size_p, gex_Flags_t flags) {
  if (!(flags & GEX_FLAG_IMMEDIATE)) check_may_communicate("gex_EP_QueryBoundSegmentNB");
  const EndpointName name = endpoint_of(tm, rank);
  const SegmentTable::Entry entry = segment_table().of(name.jobrank, name.index);
  void* local = nullptr;
  if (name.jobrank == job().rank())
    local =
        segment_table().is_on_device(name.index) ? nullptr : reinterpret_cast<void*>(entry.address);
  else if (name.index == 0 && entry.bytes != 0)
    local = gasneti_mapped_address(the_client()->team, name.jobrank,
                                   reinterpret_cast<void*>(entry.address));
  if (owneraddr_p) *owneraddr_p = reinterpret_cast<void*>(entry.address);
  if (localaddr_p) *localaddr_p = local;
  if (size_p) *size_p = entry.bytes;
  return GEX_EVENT_INVALID;
}

int gex_Segment_QueryBound(gex_TM_t tm, gex_Rank_t rank, void** owneraddr_p, void** localaddr_p,
                           uintptr_t* size_p) {
  void* owner = nullptr;
  void* local = nullptr;
  uintptr_t bytes = 0;
  check_may_communicate("gex_Segment_QueryBound");
  gex_EP_QueryBoundSegmentNB(tm, rank, &owner, &local, &bytes, GEX_FLAG_IMMEDIATE);
  if (bytes == 0) return 1;
  if (owneraddr_p) *owneraddr_p = owner;
  if (localaddr_p) *localaddr_p = local;
  if (size_p) *size_p = bytes;
  return 0;
}
