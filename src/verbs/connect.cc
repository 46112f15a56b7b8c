// Links: one per peer, over one of the layer of datagrams. Connection path; on_messages() is message path.
#include <algorithm>

#include "util/log.h"
#include "verbs/verbs_transport.h"

namespace lintel {

// Found or made; never destroyed before the transport. nullptr: no memory.
VerbsLink* VerbsTransport::link_for(ProcessId peer) {
  const std::lock_guard guard(links_mutex_);
  std::unique_ptr<VerbsLink>& place = links_[uint64_t{peer.nid} << 32 | peer.pid];
  if (place == nullptr) {
    place = std::make_unique<VerbsLink>();
    place->peer = peer;
    place->max_data_bytes = settings_.eager_bytes;
  }
  return place.get();
}

Link* VerbsTransport::connect(ProcessId peer, std::string* reason) {
  Link* const datagrams = datagrams_->connect(peer, reason);
  if (datagrams == nullptr) return nullptr;
  VerbsLink* const link = link_for(peer);
  {
    const std::lock_guard guard(link->lock);
    if (link->datagrams == nullptr) link->datagrams = datagrams;
  }
  std::atomic_ref<void*>(datagrams->context).store(link, std::memory_order_release);
  return link;
}

VerbsLink& VerbsTransport::link_of(Link& datagrams) noexcept {
  return *static_cast<VerbsLink*>(
      std::atomic_ref<void*>(datagrams.context).load(std::memory_order_acquire));
}

// The peer has proven who it is.
void* VerbsTransport::on_new_link(Link& datagrams) noexcept {
  VerbsLink* link = nullptr;
  try {
    link = link_for(datagrams.peer);
  } catch (...) {
    log_message(LogLevel::error, "verbs: no memory for nid 0x%08x pid %u", datagrams.peer.nid,
                datagrams.peer.pid);
    return nullptr;
  }
  {
    const std::lock_guard guard(link->lock);
    if (link->datagrams == nullptr) link->datagrams = &datagrams;
    link->uid = datagrams.uid;
    link->max_data_bytes = std::min(datagrams.max_data_bytes, settings_.eager_bytes);
    link->wish_after = 0;
  }
  link->failures = 0;
  std::atomic_ref<void*>(datagrams.context).store(link, std::memory_order_release);
  void* const context = sink_->on_new_link(*link);
  std::atomic_ref<void*> stored(link->context);
  if (stored.load(std::memory_order_acquire) != context)
    stored.store(context, std::memory_order_release);
  return link;
}

void VerbsTransport::on_messages(Link& datagrams, const InboundMessage* messages,
                                 unsigned count) noexcept {
  if (datagrams.context == nullptr) return;  // no memory for it
  VerbsLink& link = link_of(datagrams);
  unsigned first = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (messages[i].header.kind != MessageKind::connection) [[likely]]
      continue;
    if (i != first) sink_->on_messages(link, messages + first, i - first);
    handle_agreement(link, messages[i]);
    first = i + 1;
  }
  if (count != first) sink_->on_messages(link, messages + first, count - first);
}

void VerbsTransport::on_peer_failed(Link& datagrams) noexcept {
  if (datagrams.context != nullptr) fail_link(link_of(datagrams));
}

}  // namespace lintel
