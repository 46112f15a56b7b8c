// What a link means for a peer that is connected already. A process has several links if both sides
// connected at the same time, each by another transport. Messages to it travel by one link only, so
// they stay in order; messages from it are taken from all of them. Connection path, the poller.
#pragma once

#include "core/operations/peer.h"
#include "transport/transport.h"

namespace lintel {

enum class LinkRelation : uint8_t {
  sends,               // messages to the peer travel by it
  receives,            // messages of the same process come by it as well
  replaces,            // nothing was sent by the one that sends, which has found no process yet
  of_another_process,  // whose address is that of the peer
};

// `link` is one of `transport`. The lock of the PeerDirectory is held.
[[nodiscard]] inline LinkRelation relation_of(const Peer& peer, Transport& transport,
                                              Link& link) noexcept {
  if (peer.link == &link) return LinkRelation::sends;
  const uint64_t known = peer.transport->incarnation(*peer.link);
  if (known != 0)
    return known == transport.incarnation(link) ? LinkRelation::receives
                                                : LinkRelation::of_another_process;
  // Payloads that wait were measured for the other one.
  return transport.capabilities().max_eager_bytes >= peer.transport->capabilities().max_eager_bytes
             ? LinkRelation::replaces
             : LinkRelation::receives;
}

}  // namespace lintel
