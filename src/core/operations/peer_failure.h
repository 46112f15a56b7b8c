// Actions when a peer has died or closed its interface. Connection path.
#pragma once

#include "core/operations/peer.h"
#include "transport/polling.h"

namespace lintel {

class PhysicalInterface;

// Ends every operation with the peer, as PTL_NI_UNDELIVERABLE (spec 3.13.3). The lock of the
// PeerDirectory is held.
void fail_peer(PhysicalInterface& physical, Peer& peer, const Link::Failure& failure) noexcept
    LINTEL_REQUIRES(polling);

}  // namespace lintel
