// Relation of a new link to a peer that is connected already. A process has several links if both
// sides connected at the same time, each by another transport. Messages to it travel by one link
// only, so they stay in order; messages from it are taken from all of them. Connection path, the
// poller.
#pragma once

#include "core/operations/peer.h"
#include "transport/transport.h"

namespace lintel {

enum class LinkRelation : uint8_t {
  sends,               // the link that carries messages to the peer
  receives,            // another link of the same process: messages from it are taken
  replaces,            // takes the place of the sending link, which has found no process yet
  of_another_process,  // link of another process with the address of the peer
};

// `link` is one of `transport`. The lock of the PeerDirectory is held.
[[nodiscard]] inline LinkRelation relation_of(const Peer& peer, Transport& transport,
                                              Link& link) noexcept {
  if (peer.link == &link) return LinkRelation::sends;
  const uint64_t known = peer.transport->incarnation(*peer.link);
  if (known != 0)
    return known == transport.incarnation(link) ? LinkRelation::receives
                                                : LinkRelation::of_another_process;
  // Queued payloads may be as long as the other transport allows.
  return transport.capabilities().max_eager_bytes >= peer.transport->capabilities().max_eager_bytes
             ? LinkRelation::replaces
             : LinkRelation::receives;
}

}  // namespace lintel
