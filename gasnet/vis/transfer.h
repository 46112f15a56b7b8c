/* transfer.h: puts and gets of rows. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_VIS_TRANSFER_H
#define LINTEL_GASNET_VIS_TRANSFER_H

#include "vis/rows.h"

namespace lintel::gasnet {

/** A call: the peer, and how the call completes. */
struct Transfer {
  gex_TM_t tm;
  gex_Rank_t rank;
  gex_Flags_t flags;
  bool is_put;
};

gex_Event_t transfer_nb(const Transfer& transfer, Rows& rows);
int transfer_nbi(const Transfer& transfer, Rows& rows);
int transfer_blocking(const Transfer& transfer, Rows& rows);

/** Reads the variables of the environment. Set-up path. */
void start_transfers();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_VIS_TRANSFER_H
