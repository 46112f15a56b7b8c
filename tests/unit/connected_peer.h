// A peer reached by a ScriptedTransport, without an interface.
#pragma once

#include "core/operations/peer.h"
#include "scripted_transport.h"

namespace lintel::test {

struct ConnectedPeer {
  ConnectedPeer() {
    peer.route.link = &link;
    peer.route.transport = &transport;
    peer.failed = false;
  }
  ScriptedTransport transport;
  Link link;
  Peer peer;
};

}  // namespace lintel::test
