/* client.h: the object behind a gex_Client_t, and the state of the process. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_CLIENT_CLIENT_H
#define LINTEL_GASNET_CLIENT_CLIENT_H

#include <atomic>
#include <memory>
#include <string>

#include "network/exchange.h"
#include "tools/headers.h"
#include "tools/lock.h"

/** There is one client. It owns its endpoints. The primordial team and segment are reached through
 * it. */
struct gasneti_client {
  std::string name;
  gex_Flags_t flags = 0;
  std::atomic<const void*> client_data{nullptr};
  lintel::gasnet::ProcessMutex mutex; /* creation and destruction of objects */
  gex_EP_t endpoints[GASNET_MAXEPS] LINTEL_GASNET_GUARDED_BY(mutex) = {};
  gex_TM_t team = GEX_TM_INVALID;
  /* Prepared by gex_Client_Init, run by gex_Segment_Attach. */
  std::unique_ptr<lintel::gasnet::Exchange> attach_exchange;
  bool is_attached = false;

  /** NULL if it does not exist. Unchecked: the lock is for those that make endpoints. A caller
   * knows the index from the call that has made this one, and it never changes. */
  gex_EP_t endpoint(size_t index) const LINTEL_GASNET_UNCHECKED_LOCKS { return endpoints[index]; }
};

namespace lintel::gasnet {

/** The client of this process; NULL before gex_Client_Init. */
gasneti_client* the_client();
void set_the_client(gasneti_client* client);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_CLIENT_CLIENT_H
