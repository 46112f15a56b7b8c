/* endpoint.cc: making endpoints, registering handlers, queries. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "endpoint/endpoint.h"

#include "client/client.h"
#include "job/errors.h"
#include "job/thread.h"

using namespace lintel::gasnet;

namespace {

/** Handles a message for an index without a handler. */
void no_handler() { gasnett_fatalerror_nopos("a message names a handler that is not registered"); }

gasneti_endpoint* new_endpoint(gasneti_client* client, gex_EP_Index_t index,
                               gex_EP_Capabilities_t capabilities, gex_Flags_t flags)
    LINTEL_GASNET_REQUIRES(client->mutex) {
  auto* endpoint = new gasneti_endpoint;
  endpoint->client = client;
  endpoint->index = index;
  endpoint->capabilities = capabilities;
  endpoint->flags = flags;
  client->endpoints[index] = endpoint;
  return endpoint;
}

}  // namespace

gasneti_endpoint::gasneti_endpoint() {
  for (gex_AM_Entry_t& entry : handlers) entry.gex_fnptr = no_handler;
}

int gasneti_endpoint::register_handlers(gex_AM_Entry_t* table, size_t count) {
  const LockGuard lock(registration);
  for (size_t i = 0; i < count; ++i) {
    const gex_AM_Entry_t& entry = table[i];
    const bool has_kind =
        entry.gex_flags & GEX_FLAG_AM_MEDLONG || entry.gex_flags & GEX_FLAG_AM_SHORT;
    if (!has_kind || !(entry.gex_flags & GEX_FLAG_AM_REQREP))
      return report_error(
          GASNET_ERR_BAD_ARG,
          "handler %zu of the table: gex_flags lack a category (SHORT, MEDIUM, LONG) "
          "or a direction (REQUEST, REPLY)",
          i);
    if (entry.gex_nargs > GASNETI_AM_MAX_ARGS)
      return report_error(GASNET_ERR_BAD_ARG,
                          "handler %zu of the table: gex_nargs is %u, at most %d", i,
                          entry.gex_nargs, GASNETI_AM_MAX_ARGS);
    if (entry.gex_index == 0) continue;
    if (entry.gex_index < GEX_AM_INDEX_BASE)
      return report_error(GASNET_ERR_BAD_ARG,
                          "handler %zu of the table: gex_index is %u, at least %d", i,
                          entry.gex_index, GEX_AM_INDEX_BASE);
    if (handlers[entry.gex_index].gex_fnptr != no_handler)
      return report_error(GASNET_ERR_BAD_ARG, "handler index %u is registered already",
                          entry.gex_index);
    handlers[entry.gex_index] = entry;
  }
  int highest = 255;
  for (size_t i = 0; i < count; ++i) {
    if (table[i].gex_index != 0) continue;
    while (highest >= GEX_AM_INDEX_BASE && handlers[highest].gex_fnptr != no_handler) --highest;
    if (highest < GEX_AM_INDEX_BASE)
      return report_error(GASNET_ERR_RESOURCE, "all %d handler indexes are registered",
                          256 - GEX_AM_INDEX_BASE);
    table[i].gex_index = static_cast<gex_AM_Index_t>(highest);
    handlers[highest] = table[i];
  }
  return GASNET_OK;
}

void gasneti_endpoint::set_internal_handler(gex_AM_Index_t handler, gex_AM_Fn_t function,
                                            const char* name) {
  const LockGuard lock(registration);
  handlers[handler] = {
      handler, function, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP,
      0,       nullptr,  name};
}

int gex_EP_RegisterHandlers(gex_EP_t ep, gex_AM_Entry_t* table, size_t numentries) {
  check_may_communicate("gex_EP_RegisterHandlers");
  return ep->register_handlers(table, numentries);
}

int gex_EP_Create(gex_EP_t* ep_p, gex_Client_t client, gex_EP_Capabilities_t capabilities,
                  gex_Flags_t flags) {
  check_may_communicate("gex_EP_Create");
  if (!ep_p || !client || flags != 0 || capabilities == 0)
    return report_error(GASNET_ERR_BAD_ARG, "gex_EP_Create: give capabilities and flags 0");
  const LockGuard lock(client->mutex);
  // The first is the primordial endpoint. Only this one has all capabilities.
  const bool is_first = !client->endpoints[0];
  if (!is_first && capabilities != GEX_EP_CAPABILITY_RMA)
    return report_error(GASNET_ERR_BAD_ARG,
                        "gex_EP_Create: capabilities 0x%x; more endpoints can have "
                        "GEX_EP_CAPABILITY_RMA only",
                        capabilities);
  for (unsigned int index = 0; index < GASNET_MAXEPS; ++index) {
    if (client->endpoints[index]) continue;
    *ep_p = new_endpoint(client, static_cast<gex_EP_Index_t>(index), capabilities, flags);
    return GASNET_OK;
  }
  return report_error(GASNET_ERR_RESOURCE, "gex_EP_Create: all %d endpoints of the client exist",
                      GASNET_MAXEPS);
}

gex_Client_t gex_EP_QueryClient(gex_EP_t ep) { return ep->client; }
gex_Flags_t gex_EP_QueryFlags(gex_EP_t ep) { return ep->flags; }
gex_Segment_t gex_EP_QuerySegment(gex_EP_t ep) {
  const LockGuard lock(ep->client->mutex);
  return ep->segment;
}
gex_EP_Index_t gex_EP_QueryIndex(gex_EP_t ep) { return ep->index; }
void gex_EP_SetCData(gex_EP_t ep, const void* val) { ep->client_data = val; }
void* gex_EP_QueryCData(gex_EP_t ep) { return const_cast<void*>(ep->client_data.load()); }
