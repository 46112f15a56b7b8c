/* attach.cc: gex_Segment_Attach. Set-up path.
 *
 * The segments of a neighbourhood are in memory that all its members map at once. Each member
 * exposes its own segment to all processes by one match list entry. No page is touched or pinned.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "segment/attach.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "client/client.h"
#include "endpoint/endpoint.h"
#include "job/errors.h"
#include "job/job.h"
#include "job/neighbourhood.h"
#include "job/thread.h"
#include "network/network.h"
#include "segment/segment.h"
#include "team/team.h"

namespace lintel::gasnet {
namespace {

/** The segment of a process. Crosses the wire. */
struct AttachRecord {
  uint64_t address;
  uint64_t bytes;
};
static_assert(sizeof(AttachRecord) == 16);

}  // namespace

void open_everything() {
  gasneti_client* const client = the_client();
  // This segment has no handle: gex_EP_QuerySegment does not return it.
  auto* segment = new gasneti_segment;
  segment->client = client;
  segment->bytes = UINTPTR_MAX;
  gasneti_endpoint& endpoint = *client->endpoint(0);
  {
    const LockGuard lock(endpoint.client->mutex);
    bind_segment(endpoint, *segment);
    endpoint.segment = GEX_SEGMENT_INVALID;
  }
  client->team->set_mapped_offset(job().rank(), 0);
  segment_table().set_everything();
  segment_limits() = {UINTPTR_MAX, UINTPTR_MAX};
}

size_t attach_record_bytes() { return sizeof(AttachRecord); }

}  // namespace lintel::gasnet

using namespace lintel::gasnet;

int gex_Segment_Attach(gex_Segment_t* segment_p, gex_TM_t tm, uintptr_t size) {
  check_may_communicate("gex_Segment_Attach");
  gasneti_client* const client = the_client();
  if (!client) return GASNET_ERR_NOT_INIT;
  if (!segment_p || tm != client->team)
    return report_error(GASNET_ERR_BAD_ARG, "gex_Segment_Attach: give the team of gex_Client_Init");
  if (segment_table().is_everything()) {
    // All memory is the segment already. The call is only a barrier, and optional.
    const AttachRecord nothing{};
    if (client->is_attached) return GASNET_OK;
    client->attach_exchange->run(&nothing);
    client->is_attached = true;
    *segment_p = GEX_SEGMENT_INVALID;
    return GASNET_OK;
  }
  if (client->is_attached)
    return report_error(GASNET_ERR_RESOURCE, "gex_Segment_Attach: called a second time");
  if (gex_EP_QuerySegment(client->endpoint(0)) != GEX_SEGMENT_INVALID)
    return report_error(GASNET_ERR_RESOURCE, "gex_Segment_Attach: the endpoint has a segment");
  if (size == 0 || size % GASNET_PAGESIZE != 0 || size > segment_limits().local)
    return report_error(
        GASNET_ERR_BAD_ARG,
        "gex_Segment_Attach: size %llu; give a multiple of %d up to %llu, the limit "
        "that follows from GASNET_MAX_SEGSIZE",
        static_cast<unsigned long long>(size), GASNET_PAGESIZE,
        static_cast<unsigned long long>(segment_limits().local));

  auto* segment = new gasneti_segment;
  segment->client = client;
  segment->bytes = size;
  segment->is_owned = true;
  std::vector<char*> addresses;
  if (!neighbourhood().map_segments(size, addresses))
    gasnett_fatalerror_nopos(
        "no address space for the segments of %u neighbours, %llu bytes here (%s): lower the "
        "size, raise ulimit -v, or set GASNET_SUPERNODE_MAXSIZE=1",
        neighbourhood().count(), static_cast<unsigned long long>(size), std::strerror(errno));
  segment->address = addresses[neighbourhood().index()];
  gasneti_endpoint& endpoint = *client->endpoint(0);
  {
    const LockGuard lock(endpoint.client->mutex);
    bind_segment(endpoint, *segment);
  }

  const AttachRecord mine{reinterpret_cast<uintptr_t>(segment->address), size};
  Exchange& exchange = *client->attach_exchange;
  exchange.run(&mine);
  neighbourhood().close_segments();

  SegmentTable& table = segment_table();
  for (gex_Rank_t rank = 0; rank < job().size(); ++rank) {
    const auto* record = static_cast<const AttachRecord*>(exchange.record(rank));
    table.set(rank, 0, {record->address, record->bytes});
  }
  for (gex_Rank_t i = 0; i < neighbourhood().count(); ++i) {
    const gex_Rank_t rank = neighbourhood().ranks()[i];
    client->team->set_mapped_offset(
        rank, static_cast<intptr_t>(reinterpret_cast<uintptr_t>(addresses[i]) -
                                    table.of(rank, 0).address));
  }
  map_all_teams(client->team);
  exchange.release();

  client->is_attached = true;
  *segment_p = segment;
  return GASNET_OK;
}
