/* parts.cc: one line for each room. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "start/parts.h"

#include "am/messages.h"
#include "coll/barrier.h"
#include "coll/gather.h"
#include "rma/event.h"
#include "vis/packed.h"

namespace lintel::gasnet {

void start_parts() {
  start_messages();
  start_events();
  start_gather();
  start_barriers();
  start_vis();
}

}  // namespace lintel::gasnet
