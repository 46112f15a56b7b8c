// A long message waits at its sender until the receiver gets it, and a directed receive waits for
// its sender, without an operation of Portals that would fail if the peer died. So from time to
// time the peer is asked for an acknowledgment. Not on the fast path; with the lock of the domain.
#pragma once

#include <portals4.h>

#include "endpoint/operation.h"

namespace lintel::ofi {

class Domain;

void check_peers(Domain& domain);

// Handles the end of a probe. If it failed, what waits for that peer fails.
void probe_ended(Operation& operation, const ptl_event_t& event);

}  // namespace lintel::ofi
