// Queue pairs to peers by further ports, for long accesses to memory (StripedAccesses). They are
// made when the first long transfer asks for them. The process with the lower address offers one
// by each port, as soon as the peer has told that it has several, and the peer takes a port of the
// same network if it has one. A queue pair is used once a notice of the peer has come over it
// (memory_notice.h), which proves the way. One that is lost is offered again. Connection path.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "transport/packet_link.h"
#include "verbs/connected_port.h"
#include "verbs/memory_notice.h"

namespace lintel {

struct RailLink {
  VerbsLink* messages = nullptr;  // link of messages to the same peer
  VerbsLink link;                 // VerbsLink::rail is its number; both ends name it so
  ConnectedPort* port = nullptr;  // under the lock; of this process, once there is a queue pair
  NoticedKeys keys;
};

struct PeerRails {
  RailLink rails[most_rails - 1];
};

class RailLinks final : private NoticeSink {
 public:
  // `further`: the devices but the first. `first`: the port of messages. `sink` of all accesses.
  RailLinks(const VerbsDevices& further, Transport& datagrams, ConnectedPort& first,
            const VerbsSettings& settings, MessageSink& sink);

  [[nodiscard]] unsigned port_count() const noexcept {
    return static_cast<unsigned>(ports_.size());
  }
  // How many rails there can be to that peer.
  [[nodiscard]] unsigned rails_to(const VerbsLink& link) const noexcept {
    const unsigned told = link.peer_ports.load(std::memory_order_relaxed);
    return told == 0 ? port_count() : std::min(told, port_count());
  }
  [[nodiscard]] ConnectedPort& port(unsigned place) noexcept { return *ports_[place]; }
  [[nodiscard]] const ConnectedPort& port(unsigned place) const noexcept { return *ports_[place]; }
  [[nodiscard]] unsigned place_of(const ConnectedPort& port) const noexcept;

  // Set-up path.
  void set_doorbell(Doorbell& doorbell) noexcept {
    for (const auto& port : ports_) port->requests.set_doorbell(doorbell);
  }
  // Any thread; message path of large payloads. Requests the queue pairs that are missing: at most
  // one request a second, and fewer while requests bring none.
  void request(VerbsLink& link) noexcept;

  // The poller.
  void grant(VerbsLink& link) noexcept;
  // Handles a message of kind connection. False: it is about the queue pair for messages.
  [[nodiscard]] bool handle(VerbsLink& link, const InboundMessage& message) noexcept
      LINTEL_REQUIRES(polling);
  // The peer is gone.
  void fail(VerbsLink& link) noexcept LINTEL_REQUIRES(polling);
  // Message path. Returns how many completions it took.
  unsigned poll(unsigned budget) noexcept LINTEL_REQUIRES(polling);
  void stop_idle() noexcept;
  // See Transport::arm().
  [[nodiscard]] bool arm() noexcept;
  [[nodiscard]] bool has_unfinished() const noexcept;

 private:
  void on_notice(VerbsLink& link, const std::byte* data, uint32_t bytes) noexcept override;
  [[nodiscard]] bool offers_to(const VerbsLink& link) const noexcept;
  PeerRails* make_rails(VerbsLink& link) noexcept;
  void offer(VerbsLink& link) noexcept;
  // Chooses a port that is up and that no other rail to the peer has. `first`: the one that is
  // tried first. `gid`: of the peer's port, if it is known.
  [[nodiscard]] ConnectedPort* choose_port(const PeerRails& peer, unsigned first,
                                           const ibv_gid* gid) const noexcept;
  void prepare(RailLink& rail, const VerbsLink& link, ConnectedPort* port) noexcept;

  ConnectedPort& first_;
  const ProcessId id_;
  MessageSink& sink_;
  std::vector<std::unique_ptr<PeerRails>> peers_;
  std::vector<std::unique_ptr<ConnectedPort>> ports_;
  bool is_used_ = false;  // a port is open
};

}  // namespace lintel
