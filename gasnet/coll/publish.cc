/* publish.cc: gex_EP_PublishBoundSegment. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <algorithm>
#include <cstring>

#include "coll/gather.h"
#include "endpoint/endpoint.h"
#include "job/errors.h"
#include "job/thread.h"
#include "segment/segment.h"
#include "team/team.h"

using namespace lintel::gasnet;

namespace {

/** An endpoint and its segment. Crosses the wire. */
struct Published {
  uint64_t address;
  uint64_t bytes; /* 0: no segment, the record is padding */
  uint32_t rank;  /* rank in the job */
  uint32_t endpoint;
};
static_assert(sizeof(Published) == 24);

}  // namespace

int gex_EP_PublishBoundSegment(gex_TM_t tm, gex_EP_t* eps, size_t num_eps, gex_Flags_t flags) {
  check_may_communicate("gex_EP_PublishBoundSegment");
  if (!tm || GASNETI_IS_PAIR(tm) || (num_eps != 0 && !eps) || num_eps > GASNET_MAXEPS || flags != 0)
    return report_error(GASNET_ERR_BAD_ARG,
                        "gex_EP_PublishBoundSegment: give a team, at most %d endpoints, no flags",
                        GASNET_MAXEPS);
  std::vector<Published> mine;
  for (size_t i = 0; i < num_eps; ++i)
    if (const gex_Segment_t segment = gex_EP_QuerySegment(eps[i]))
      mine.push_back({reinterpret_cast<uintptr_t>(segment->address), segment->bytes,
                      gex_System_QueryJobRank(), eps[i]->index});
  const std::vector<uint32_t> counts = gather(tm, static_cast<uint32_t>(mine.size()));
  const uint32_t most = *std::max_element(counts.begin(), counts.end());
  if (most == 0) return GASNET_OK;
  mine.resize(most);
  const std::vector<char> bytes = gather_bytes(tm, mine.data(), most * sizeof(Published));
  std::vector<Published> all(bytes.size() / sizeof(Published));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  for (const Published& published : all)
    if (published.bytes != 0)
      segment_table().set(published.rank, static_cast<gex_EP_Index_t>(published.endpoint),
                          {published.address, published.bytes});
  return GASNET_OK;
}
