/* token.h: what a handler can query about its message. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_AM_TOKEN_H
#define LINTEL_GASNET_AM_TOKEN_H

#include "tools/headers.h"

/** A token. It lies on the stack of the thread that runs the handler. */
struct gasneti_token {
  gex_Rank_t source = 0;
  gex_EP_t endpoint = GEX_EP_INVALID;
  const gex_AM_Entry_t* entry = nullptr;
  bool is_request = false;
  bool is_long = false;
  bool has_replied = false;
};

#endif  // LINTEL_GASNET_AM_TOKEN_H
