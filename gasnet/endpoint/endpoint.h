/* endpoint.h: the object behind a gex_EP_t. Handlers are looked up on the message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_ENDPOINT_ENDPOINT_H
#define LINTEL_GASNET_ENDPOINT_ENDPOINT_H

#include <atomic>

#include "client/client.h"
#include "tools/headers.h"
#include "tools/lock.h"

struct gasneti_endpoint {
  gasneti_endpoint();

  gex_Client_t client = GEX_CLIENT_INVALID;
  gex_EP_Index_t index = 0;
  gex_EP_Capabilities_t capabilities = 0;
  gex_Flags_t flags = 0;
  gex_Segment_t segment LINTEL_GASNET_GUARDED_BY(client->mutex) = GEX_SEGMENT_INVALID;
  std::atomic<const void*> client_data{nullptr};
  lintel::gasnet::ProcessMutex registration;
  /* Handlers by index. An entry without a function is free. */
  gex_AM_Entry_t handlers[256] LINTEL_GASNET_GUARDED_BY(registration) = {};

  /** Registers entries as specified for gex_EP_RegisterHandlers. */
  int register_handlers(gex_AM_Entry_t* table, size_t count);
  /** Sets the handler of an index below GEX_AM_INDEX_BASE, for the library itself. */
  void set_internal_handler(gex_AM_Index_t handler, gex_AM_Fn_t function, const char* name);
};

namespace lintel::gasnet {

/** The entry of a handler that a message names; a missing one is fatal. Unchecked: entries are
 * registered before any message names them, and never change again. */
inline const gex_AM_Entry_t& handler_of(const gasneti_endpoint& endpoint,
                                        gex_AM_Index_t index) LINTEL_GASNET_UNCHECKED_LOCKS {
  return endpoint.handlers[index];
}

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_ENDPOINT_ENDPOINT_H
