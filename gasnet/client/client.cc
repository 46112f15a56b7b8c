/* client.cc: the one client of the process, queries. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "client/client.h"

namespace lintel::gasnet {
namespace {

gasneti_client* g_client = nullptr;

}  // namespace

gasneti_client* the_client() { return g_client; }
void set_the_client(gasneti_client* client) { g_client = client; }

}  // namespace lintel::gasnet

gex_Flags_t gex_Client_QueryFlags(gex_Client_t client) { return client->flags; }
const char* gex_Client_QueryName(gex_Client_t client) { return client->name.c_str(); }
void gex_Client_SetCData(gex_Client_t client, const void* val) { client->client_data = val; }
void* gex_Client_QueryCData(gex_Client_t client) {
  return const_cast<void*>(client->client_data.load());
}
