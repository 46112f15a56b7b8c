// Connecting them. Connection path.
#include "udp/udp_peer_sockets.h"

#include <sys/socket.h>

#include <utility>

#include "util/without_cancellation.h"

namespace lintel {

void UdpPeerSockets::connect(const LinkAddress& to) noexcept {
  const std::lock_guard guard(mutex_);
  if (!socket_.is_on_this_node(to) || find(to) >= 0 || count_ == most) return;
  Descriptor sender = socket_.open_sender();
  const WithoutCancellation scope;
  if (!sender.is_open() ||
      ::connect(sender.get(), reinterpret_cast<const sockaddr*>(to.bytes.data()),
                socket_.address_bytes()) != 0)
    return;
  size_t at = place_of(to);
  while (entries_[at].owner.is_open()) at = (at + 1) % places;
  Entry& entry = entries_[at];
  entry.to = to;
  entry.owner = std::move(sender);
  entry.descriptor.store(entry.owner.get(), std::memory_order_release);
  ++count_;
}

}  // namespace lintel
