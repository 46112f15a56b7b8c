#include "verbs/rail_links.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "transport/process_key.h"
#include "util/assert.h"
#include "util/clock.h"
#include "util/lock.h"
#include "util/log.h"
#include "verbs/port_choice.h"

namespace lintel {

namespace {

constexpr uint32_t between_requests_ms = 1000;
constexpr unsigned most_doublings = 3;
constexpr uint32_t notices_waiting = 128;

}  // namespace

RailLinks::RailLinks(const VerbsDevices& further, Transport& datagrams, ConnectedPort& first,
                     const VerbsSettings& settings, MessageSink& sink)
    : first_(first), id_(settings.id), sink_(sink) {
  ConnectedSettings small = settings;
  small.eager_bytes = sizeof(MemoryNotice);
  small.receive_buffers = std::min(settings.receive_buffers, notices_waiting);
  for (const auto& device : further)
    ports_.push_back(
        std::make_unique<ConnectedPort>(device, datagrams, small, static_cast<NoticeSink*>(this)));
}

unsigned RailLinks::place_of(const ConnectedPort& port) const noexcept {
  unsigned place = 0;
  while (place != ports_.size() && ports_[place].get() != &port) ++place;
  LINTEL_ASSERT(place != ports_.size());
  return place;
}

bool RailLinks::offers_to(const VerbsLink& link) const noexcept {
  return key_of(id_) < key_of(link.peer);
}

void RailLinks::request(VerbsLink& link) noexcept {
  const auto now_ms = static_cast<uint32_t>(now_ns() / 1'000'000);
  const uint32_t next_ms = link.next_request_ms.load(std::memory_order_relaxed);
  if (next_ms != 0 && static_cast<int32_t>(now_ms - next_ms) < 0) return;
  // Connecting a queue pair over RoCE waits in the kernel until the address of the peer is known,
  // for a second at most.
  const uint32_t before = link.rail_requests.load(std::memory_order_relaxed);
  link.rail_requests.store(before + 1, std::memory_order_relaxed);
  link.next_request_ms.store(now_ms + (between_requests_ms << std::min(before, most_doublings)),
                             std::memory_order_relaxed);
  const LockGuard guard(link.lock);
  first_.requests.request_rails(link);
}

void RailLinks::grant(VerbsLink& link) noexcept {
  {
    const LockGuard guard(link.lock);
    if (!std::exchange(link.wants_rails, false)) return;
  }
  if (link.peer_ports.load(std::memory_order_relaxed) != 0 && offers_to(link)) {
    offer(link);
  } else {
    first_.change.tell_of_rails(link, static_cast<uint8_t>(port_count()));
  }
}

PeerRails* RailLinks::make_rails(VerbsLink& link) noexcept {
  if (PeerRails* const known = link.rails.load(std::memory_order_relaxed); known != nullptr)
    return known;
  try {
    peers_.push_back(std::make_unique<PeerRails>());
  } catch (...) {
    log_message(LogLevel::error, "verbs: no memory for a queue pair");
    return nullptr;
  }
  PeerRails& made = *peers_.back();
  for (unsigned i = 0; i < std::size(made.rails); ++i) {
    made.rails[i].messages = &link;
    VerbsLink& rail = made.rails[i].link;
    rail.peer = link.peer;
    rail.rail = static_cast<uint8_t>(i + 1);
    rail.context = &made.rails[i];
    const LockGuard guard(rail.lock);
    rail.messages_until_request = ChannelRequests::never;
  }
  link.rails.store(&made, std::memory_order_release);
  return &made;
}

ConnectedPort* RailLinks::choose_port(const PeerRails& peer, unsigned first,
                                      const ibv_gid* gid) const noexcept {
  ConnectedPort* other = nullptr;
  for (unsigned i = 0; i < port_count(); ++i) {
    ConnectedPort& port = *ports_[(first + i) % port_count()];
    const bool taken = std::any_of(
        std::begin(peer.rails), std::end(peer.rails),
        [&](const RailLink& rail) { return rail.link.channel != nullptr && rail.port == &port; });
    if (taken || !port.device->async_events.port_is_up()) continue;
    if (gid == nullptr || shares_network(port.device->gid, *gid, port.device->network_bits))
      return &port;
    if (other == nullptr) other = &port;
  }
  return other;
}

void RailLinks::prepare(RailLink& rail, const VerbsLink& link, ConnectedPort* port) noexcept {
  if (!port->is_open() && !port->channels.is_closed()) {
    std::string reason;
    bool opened = false;
    try {
      opened = port->open(reason);
    } catch (...) {
      reason = "no memory";
    }
    if (opened) {
      is_used_ = true;
    } else {
      log_message(LogLevel::info, "verbs: %s is not used for accesses to memory: %s",
                  port->device->name().c_str(), reason.c_str());
      port->channels.close();
    }
  }
  rail.keys.clear();
  const LockGuard guard(rail.link.lock);
  rail.link.datagrams = link.datagrams;
  rail.port = port;
}

// A rail whose queue pairs carried nothing gets another port of this process, if there is one.
void RailLinks::offer(VerbsLink& link) noexcept {
  PeerRails* const peer = make_rails(link);
  if (peer == nullptr) return;
  const unsigned count = rails_to(link);
  for (unsigned i = 0; i < count; ++i) {
    RailLink& rail = peer->rails[i];
    if (rail.link.channel != nullptr || rail.link.pending != 0) continue;
    ConnectedPort* const port = choose_port(*peer, i + rail.link.failures, nullptr);
    if (port == nullptr) return;
    prepare(rail, link, port);
    static_cast<void>(port->change.offer(rail.link));
  }
}

bool RailLinks::handle(VerbsLink& link, const InboundMessage& message) noexcept {
  AgreementBody body;
  if (message.payload_length != sizeof body) return false;
  std::memcpy(&body, message.payload, sizeof body);
  const auto kind = static_cast<Agreement>(message.header.operation);
  // What is not sound is refused with the others.
  if (body.version != agreement_version || body.rail == 0 || body.rail >= most_rails) return false;
  if (kind == Agreement::rails) {
    link.peer_ports.store(static_cast<uint8_t>(body.rail), std::memory_order_relaxed);
    if (offers_to(link)) {
      offer(link);
    } else {
      first_.change.tell_of_rails(link, static_cast<uint8_t>(port_count()));
    }
    return true;
  }
  PeerRails* const peer =
      kind == Agreement::offer ? make_rails(link) : link.rails.load(std::memory_order_relaxed);
  if (peer == nullptr) return true;
  RailLink& rail = peer->rails[body.rail - 1];
  if (kind == Agreement::offer && rail.link.channel == nullptr) {
    ibv_gid gid;
    std::memcpy(&gid, body.gid, sizeof gid);
    ConnectedPort* const port = choose_port(*peer, 0, &gid);
    if (port == nullptr) {
      rail.link.datagrams = link.datagrams;
      first_.change.decline(rail.link, body.sender_number);
      return true;
    }
    prepare(rail, link, port);
  }
  if (rail.port != nullptr) rail.port->change.handle(rail.link, message, sink_);
  return true;
}

void RailLinks::fail(VerbsLink& link) noexcept {
  link.peer_ports.store(0, std::memory_order_relaxed);
  link.next_request_ms.store(0, std::memory_order_relaxed);
  link.rail_requests.store(0, std::memory_order_relaxed);
  PeerRails* const peer = link.rails.load(std::memory_order_relaxed);
  if (peer == nullptr) return;
  for (RailLink& rail : peer->rails) {
    rail.keys.clear();
    if (rail.port != nullptr) rail.port->change.fail(rail.link, sink_);
  }
}

void RailLinks::on_notice(VerbsLink& link, const std::byte* data, uint32_t bytes) noexcept {
  auto& rail = *static_cast<RailLink*>(link.context);
  if (rail.keys.take(data, bytes, link.channel->peer.number))
    rail.messages->rail_requests.store(0, std::memory_order_relaxed);
}

unsigned RailLinks::poll(unsigned budget) noexcept {
  if (!is_used_) [[likely]]
    return 0;
  unsigned handled = 0;
  for (const auto& port : ports_) {
    if (!port->is_open()) continue;
    handled += port->completions.poll(sink_, budget);
    port->serve(sink_, [&](const auto& visit) {
      port->channels.for_each([&](VerbsLink& link, Channel&) { visit(link); });
    });
  }
  return handled;
}

void RailLinks::stop_idle() noexcept {
  for (const auto& port : ports_) {
    port->change.stop_idle();
    port->memory.end_freed();
  }
}

bool RailLinks::arm() noexcept {
  for (const auto& port : ports_)
    if (port->is_open() && !port->arm()) return false;
  return true;
}

bool RailLinks::has_unfinished() const noexcept {
  return std::any_of(ports_.begin(), ports_.end(),
                     [](const auto& port) { return !port->unfinished.is_empty(); });
}

}  // namespace lintel
