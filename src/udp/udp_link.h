// PacketLink over a UDP socket: needs no privileges.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "transport/open_status.h"
#include "transport/packet_link.h"
#include "udp/udp_address.h"
#include "udp/udp_rails.h"
#include "udp/udp_receiver.h"
#include "udp/udp_sender.h"
#include "udp/udp_socket.h"

namespace lintel {

struct UdpSettings {
  NodeIdentity host;
  uint32_t pid = 0;          // below PTL_PID_MAX
  uint32_t frame_bytes = 0;  // largest payload; 0: what routes take
  UdpRails rails{};
};

class UdpLink final : public PacketLink {
 public:
  // Set-up path. `reason` explains a failure.
  [[nodiscard]] static OpenStatus open(const UdpSettings& settings,
                                       std::unique_ptr<UdpLink>& result, std::string& reason);

  [[nodiscard]] ResolveStatus resolve(ProcessId peer, Route& route,
                                      std::string* reason) noexcept override;
  [[nodiscard]] bool adopt(ProcessId peer, const LinkAddress& from, Route& route) noexcept override;
  [[nodiscard]] unsigned ways_to(ProcessId peer, const LinkAddress&,
                                 LinkAddress (&to)[most_ways]) const noexcept override;
  [[nodiscard]] LinkAddress with_rail(ProcessId peer,
                                      const LinkAddress& to) const noexcept override;
  [[nodiscard]] RailReach reach(unsigned rail, const RailAddress& port) const noexcept override;
  [[nodiscard]] LinkAddress rail_address(ProcessId peer, unsigned rail,
                                         const RailAddress& port) const noexcept override;
  [[nodiscard]] unsigned send(const OutboundFrame* frames, unsigned count) noexcept override {
    return sender_.send(frames, count);
  }
  [[nodiscard]] unsigned receive(InboundFrame* frames, unsigned max) noexcept override {
    return receiver_.receive(frames, max);
  }
  [[nodiscard]] bool arm() noexcept override {
    socket_.drain_errors();
    return receiver_.empty();
  }
  [[nodiscard]] unsigned take_unreachable(LinkAddress* addresses, unsigned max) noexcept override {
    return socket_.take_unreachable(addresses, max);
  }
  [[nodiscard]] LinkCounters counters() const noexcept override { return counters_.now(); }
  [[nodiscard]] std::string describe() const override;

 private:
  UdpLink(const NodeIdentity& host, const UdpRails& rails) : socket_(host, rails) {}

  [[nodiscard]] bool may_exist(ProcessId peer) const noexcept;
  [[nodiscard]] bool has_rails_to(ProcessId peer) const noexcept {
    return socket_.has_rails() && peer.nid != id().nid;
  }
  [[nodiscard]] LinkAddress address_at(const IpAddress& host, ProcessId peer) const noexcept {
    return udp_address_at(socket_.host(), host, peer.pid);
  }
  // Returns that address, with a port of this process.
  [[nodiscard]] LinkAddress by_port(unsigned rail, LinkAddress to) const noexcept;
  // Returns what the first rail takes, as far as frames to that peer may go by it.
  [[nodiscard]] uint32_t most_payload_to(ProcessId peer) const noexcept;
  // The payload of the route to that address of a peer; 0: there is no route.
  [[nodiscard]] uint32_t payload_to(ProcessId peer, const LinkAddress& to) noexcept;

  AtomicLinkCounters counters_;
  UdpSocket socket_;
  UdpSender sender_{socket_, counters_};
  UdpReceiver receiver_{socket_, counters_};
};

}  // namespace lintel
