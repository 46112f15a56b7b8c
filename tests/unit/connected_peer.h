// A peer reached by a ScriptedTransport, without an interface.
#pragma once

#include "core/operations/peer.h"
#include "scripted_transport.h"
#include "util/lock.h"

namespace lintel::test {

struct ConnectedPeer {
  ConnectedPeer() {
    peer.route.link = &link;
    peer.route.transport = &transport;
    const LockGuard guard(peer.send_lock);
    peer.set_failed(false);
  }
  ScriptedTransport transport;
  Link link;
  Peer peer;
};

}  // namespace lintel::test
