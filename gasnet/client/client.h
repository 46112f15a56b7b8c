/* client.h: the object behind a gex_Client_t, and the state of the process. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_CLIENT_CLIENT_H
#define LINTEL_GASNET_CLIENT_CLIENT_H

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "network/exchange.h"
#include "tools/headers.h"

/** There is one client. It owns its endpoints. The primordial team and segment are reached through
 * it. */
struct gasneti_client {
  std::string name;
  gex_Flags_t flags = 0;
  std::atomic<const void*> client_data{nullptr};
  gex_EP_t endpoints[GASNET_MAXEPS] = {};
  gex_TM_t team = GEX_TM_INVALID;
  std::mutex mutex; /* creation and destruction of objects */
  /* Prepared by gex_Client_Init, run by gex_Segment_Attach. */
  std::unique_ptr<lintel::gasnet::Exchange> attach_exchange;
  bool is_attached = false;
};

namespace lintel::gasnet {

/** The client of this process; NULL before gex_Client_Init. */
gasneti_client* the_client();
void set_the_client(gasneti_client* client);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_CLIENT_CLIENT_H
