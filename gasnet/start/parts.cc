/* parts.cc: one line for each room. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "start/parts.h"

#include "am/messages.h"
#include "coll/gather.h"
#include "coll/message_tree.h"
#include "coll/pieces.h"
#include "coll/team_collectives.h"
#include "rma/event.h"
#include "vis/packed.h"
#include "vis/transfer.h"

namespace lintel::gasnet {

bool start_parts() {
  start_messages();
  start_events();
  start_gather();
  start_message_trees();
  start_pieces();
  start_vis();
  start_transfers();
  return start_team_collectives();
}

void all_parts_started(bool all_can) { keep_team_collectives(all_can); }

}  // namespace lintel::gasnet
