// Gives an event of Portals to the operation that it belongs to. Message path, with the lock of the
// domain.
#pragma once

#include <portals4.h>

namespace lintel::ofi {

class Domain;

void dispatch(Domain& domain, const ptl_event_t& event);

}  // namespace lintel::ofi
