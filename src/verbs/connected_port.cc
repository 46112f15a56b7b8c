// Set-up path.
#include "verbs/connected_port.h"

#include <utility>

#include "util/text.h"

namespace lintel {

namespace {

// Length of a small message, which is sent inline if the device can: header and payload in two
// cache lines.
constexpr uint32_t small_bytes = sizeof(MessageHeader) + 80;
// Memory of this process for a connected peer: state, and slots that wait for its next messages.
constexpr size_t bytes_of_peer = sizeof(VerbsLink) + sizeof(Connection) + sizeof(Channel) +
                                 sizeof(QueuePair) + SpareSlots::capacity * small_bytes;
static_assert(bytes_of_peer <= 8192);

}  // namespace

ConnectedPort::ConnectedPort(std::shared_ptr<VerbsDevice> of, Transport& datagrams,
                             const ConnectedSettings& wanted, NoticeSink* notices)
    : device(std::move(of)),
      settings(wanted),
      distances(device->directory),
      memory(*device),
      requests(settings.max_rc != 0),
      accesses(*device, memory),
      exposures(*device, memory, requests),
      queue(*device),
      channels(*device, queue, receives, requests, unfinished, settings.max_rc),
      arrivals(receives, channels, exposures, settings.eager_bytes, notices),
      completions(queue, channels, arrivals, sender, accesses, exposures),
      change({datagrams, channels, unfinished, completions, arrivals, sender},
             {SendQueue::capacity, small_bytes, accesses.pieces_of_request()}, settings.eager_bytes,
             settings.max_rc != 0, settings.rc_idle_ns) {}

bool ConnectedPort::open(std::string& reason) {
  const uint32_t large = sizeof(MessageHeader) + settings.eager_bytes;
  if (!accesses.open() || !exposures.open())
    return explained(false, reason, "no address space for its pools (ulimit -v?)");
  if (settings.max_rc == 0) return true;
  if (!sender.open(device->pd, small_bytes, large, reason) ||
      !receives.open(*device, settings.receive_buffers, large, Arrivals::tag, reason) ||
      !queue.open(receives.count(), SendQueue::capacity, reason))
    return false;
  arrivals.open();
  memory.open(settings.registration_cache);
  requests.watch(queue.get(), receives.queue(), device->is_one_of_several ? device->port : 0);
  device->async_events.add(requests);
  return true;
}

ConnectedPort::~ConnectedPort() {
  device->async_events.remove(requests);
  channels.for_each([&](VerbsLink& link, Channel& channel) {
    if (channel.queue_pair == nullptr) return;
    channel.queue_pair->stop();
    completions.release(link, RemoteStatus::peer_failed);
  });
}

}  // namespace lintel
