/* parts.cc: one line for each room. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "client/parts.h"

#include "am/messages.h"

namespace lintel::gasnet {

void start_parts() { start_messages(); }

}  // namespace lintel::gasnet
