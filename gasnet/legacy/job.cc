/* job.cc: starting a job with the calls of GASNet-1, and its objects. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet.h>

#include <algorithm>
#include <vector>

#include "client/client.h"
#include "job/errors.h"
#include "segment/segment.h"

using namespace lintel::gasnet;

namespace {

using Start = int (*)(gex_Client_t*, gex_EP_t*, gex_TM_t*, const char*, int*, char***, gex_Flags_t);

int init(Start start, int* argc, char*** argv) {
  gex_Client_t client;
  gex_EP_t endpoint;
  gex_TM_t team;
  return start(&client, &endpoint, &team, "LEGACY", argc, argv, GEX_FLAG_USES_GASNET1);
}

int register_handlers(gex_EP_t endpoint, gasnet_handlerentry_t* table, int count) {
  std::vector<gex_AM_Entry_t> entries;
  for (int i = 0; i < count; ++i)
    entries.push_back({table[i].index, table[i].fnptr,
                       GEX_FLAG_AM_SHORT | GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQREP,
                       GASNETI_AM_MAX_ARGS, nullptr, nullptr});
  const int code = gex_EP_RegisterHandlers(endpoint, entries.data(), entries.size());
  for (int i = 0; i < count; ++i) table[i].index = entries[static_cast<size_t>(i)].gex_index;
  return code;
}

}  // namespace

int gasnet_init(int* argc, char*** argv) { return init(gex_Client_Init, argc, argv); }

extern "C" {
int gasneti_client_init_everything(gex_Client_t*, gex_EP_t*, gex_TM_t*, const char*, int*, char***,
                                   gex_Flags_t);
/* Declared for programs that define GASNET_SEGMENT_EVERYTHING. */
int gasneti_init_everything(int* argc, char*** argv) {
  return init(gasneti_client_init_everything, argc, argv);
}
}

int gasnet_attach(gasnet_handlerentry_t* table, int numentries, uintptr_t segsize,
                  uintptr_t /*minheapoffset*/) {
  const gasneti_client* client = the_client();
  if (!client) return GASNET_ERR_NOT_INIT;
  if (numentries < 0 || (numentries > 0 && !table))
    return report_error(GASNET_ERR_BAD_ARG, "gasnet_attach: no table");
  if (const int code = register_handlers(client->endpoint(0), table, numentries); code != GASNET_OK)
    return code;
  gex_Segment_t segment;
  return gex_Segment_Attach(&segment, client->team, std::max<uintptr_t>(segsize, GASNET_PAGESIZE));
}

void gasnet_QueryGexObjects(gex_Client_t* client_p, gex_EP_t* endpoint_p, gex_TM_t* tm_p,
                            gex_Segment_t* segment_p) {
  gasneti_client* const client = the_client();
  if (client_p) *client_p = client;
  if (endpoint_p) *endpoint_p = client->endpoint(0);
  if (tm_p) *tm_p = client->team;
  if (segment_p) *segment_p = gex_EP_QuerySegment(client->endpoint(0));
}

char* gasnet_getenv(const char* key) { return gasnett_getenv(key); }

gex_TM_t gasneti_legacy_team() { return the_client()->team; }

size_t gasnet_AMMaxMedium() { return std::min(gex_AM_LUBRequestMedium(), gex_AM_LUBReplyMedium()); }

int gasnet_AMGetMsgSource(gasnet_token_t token, gasnet_node_t* srcindex) {
  gex_Token_Info_t info;
  gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  *srcindex = info.gex_srcrank;
  return GASNET_OK;
}

void gasneti_am_count_mismatch(const char* name, int said, int given) {
  gasnett_fatalerror_nopos("%s: the call says %d arguments and has %d", name, said, given);
}
