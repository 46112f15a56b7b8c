// Opening the link; routes to peers. Set-up and connection path.
#include "udp/udp_link.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "portals4.h"
#include "util/node_identity.h"
#include "util/text.h"

namespace lintel {

namespace {

constexpr uint32_t largest_payload = 65507;  // limit of an IPv4 datagram

IpAddress address_in(const RailAddress& port) noexcept {
  IpAddress address;
  std::copy_n(port.bytes.begin(), address.size(), address.begin());
  return address;
}

// The kernel sends a segmented datagram of 64 KB and joins it again in some tens of microseconds.
// The time of several is no queue in the network.
constexpr uint64_t queue_delay_ns = 200'000;

}  // namespace

OpenStatus UdpLink::open(const UdpSettings& settings, std::unique_ptr<UdpLink>& result,
                         std::string& reason) {
  if (!settings.host.is_found()) {
    reason = settings.host.reason;
    return OpenStatus::failed;
  }
  std::unique_ptr<UdpLink> link(new UdpLink(settings.host, settings.rails));
  UdpSocket& socket = link->socket_;
  const OpenStatus status = socket.open(settings.pid, reason);
  if (status != OpenStatus::opened) return status;
  UdpCalls calls;
  if (!calls.probe(socket.descriptor(), reason)) return OpenStatus::failed;
  const uint32_t mtu = settings.frame_bytes == 0
                           ? largest_payload
                           : std::clamp(settings.frame_bytes, least_mtu, largest_payload);
  const ProcessId id{settings.host.nid, settings.pid};
  link->properties_ = {
      .name = "udp",
      .device = settings.host.interface,
      .id = id,
      .own_address = udp_address_of(settings.host, id),
      .host_mask = udp_host_mask(),
      .mtu = mtu,
      .receive_capacity_bytes = std::max<uint64_t>(socket.receive_capacity_bytes(), mtu),
      .queue_delay_ns = queue_delay_ns,
      .sends_from_anywhere = true,
      .receives_by_system_call = true,
      .descriptor = socket.descriptor(),
  };
  link->properties_.rails_used = settings.rails.used;
  link->properties_.first_place = settings.rails.first_place;
  for (const UdpRail& rail : settings.rails.ports) {
    if (rail.index != 0) link->properties_.device += "+" + rail.interface;
    RailAddress& told = link->properties_.rails[link->properties_.rail_count++];
    std::copy(rail.address.begin(), rail.address.end(), told.bytes.begin());
    told.mtu = rail.mtu;
  }
  if (!link->sender_.open(calls)) return explained(OpenStatus::failed, reason, "no memory");
  if (!link->receiver_.open(mtu, calls)) return explained(OpenStatus::failed, reason, "no memory");
  result = std::move(link);
  return OpenStatus::opened;
}

bool UdpLink::may_exist(ProcessId peer) const noexcept {
  return peer.pid < PTL_PID_MAX && (socket_.host().ipv6 || is_ipv4_host(peer.nid));
}

uint32_t UdpLink::most_payload_to(ProcessId peer) const noexcept {
  const uint32_t ip_and_udp_bytes = (socket_.host().ipv6 ? 40 : 20) + 8;
  const uint32_t first_mtu = has_rails_to(peer) ? socket_.rails().ports[0].mtu : 0;
  return first_mtu == 0 ? mtu() : std::clamp(first_mtu - ip_and_udp_bytes, least_mtu, mtu());
}

uint32_t UdpLink::payload_to(ProcessId peer, const LinkAddress& to) noexcept {
  const uint32_t payload = socket_.route_payload_bytes(to);
  if (payload == 0) return 0;
  if (payload < least_mtu) socket_.permit_fragments();
  return std::clamp(payload, least_mtu, most_payload_to(peer));
}

// Datagrams to an address of this node pass the loopback, whose frames are long. Without a route
// to the first address of a peer, another rail may reach it.
ResolveStatus UdpLink::resolve(ProcessId peer, Route& route, std::string* reason) noexcept {
  if (!may_exist(peer)) {
    if (reason != nullptr) *reason = "no process has such an address";
    return ResolveStatus::unreachable;
  }
  route.address = udp_address_of(socket_.host(), peer);
  route.mtu = payload_to(peer, route.address);
  if (route.mtu == 0 && has_rails_to(peer)) route.mtu = most_payload_to(peer);
  if (route.mtu != 0) return ResolveStatus::resolved;
  if (reason != nullptr) {
    const int error = errno;
    try {
      *reason = "no route to " + udp_address_text(route.address) + " (" + strerror(error) + ")";
    } catch (...) {
      reason->clear();
    }
  }
  return ResolveStatus::no_route;
}

// A peer with several rails may call by any, whose addresses are not known yet.
bool UdpLink::adopt(ProcessId peer, const LinkAddress& from, Route& route) noexcept {
  if (udp_address_of(socket_.host(), peer) == from)
    return resolve(peer, route, nullptr) == ResolveStatus::resolved;
  if (!has_rails_to(peer) || !may_exist(peer) || !(address_at(ip_address_of(from), peer) == from))
    return false;
  route = {from, payload_to(peer, from)};
  return route.mtu != 0;
}

// By each further rail: the first address of the peer, which its kernel takes by any interface, and
// the same host in the network of the rail.
unsigned UdpLink::ways_to(ProcessId peer, const LinkAddress&,
                          LinkAddress (&to)[most_ways]) const noexcept {
  if (!has_rails_to(peer)) return 0;
  const IpAddress first = ip_address_of(socket_.host(), peer.nid);
  unsigned count = 0;
  to[count++] = with_rail(peer, address_at(first, peer));
  const std::vector<UdpRail>& ports = socket_.rails().ports;
  for (uint8_t rail = 1; rail < ports.size(); ++rail) {
    for (const IpAddress& host : {first, same_host(ports[rail], first)}) {
      to[count] = address_at(host, peer);
      to[count++].set_rail(rail);
    }
  }
  return count;
}

// By the rail of its network. Otherwise the kernel knows the source of frames to further ports.
LinkAddress UdpLink::with_rail(ProcessId peer, const LinkAddress& to) const noexcept {
  LinkAddress by_rail = to;
  if (!has_rails_to(peer)) return by_rail;
  const std::vector<UdpRail>& ports = socket_.rails().ports;
  const IpAddress host = ip_address_of(to);
  const auto near = std::find_if(ports.begin(), ports.end(),
                                 [&](const UdpRail& port) { return shares_network(port, host); });
  if (near != ports.end()) return by_port(static_cast<unsigned>(near - ports.begin()), to);
  if (udp_address_of(socket_.host(), peer) == to) return by_port(0, to);
  by_rail.set_rail(UdpSocket::plain_rail);
  return by_rail;
}

LinkAddress UdpLink::by_port(unsigned rail, LinkAddress to) const noexcept {
  to.set_rail(rail == 0 && socket_.is_source_for(to) ? UdpSocket::plain_rail
                                                     : static_cast<uint8_t>(rail));
  return to;
}

// Bridges to containers have the same address on many nodes.
RailReach UdpLink::reach(unsigned rail, const RailAddress& port) const noexcept {
  const IpAddress host = address_in(port);
  if (socket_.is_own(host)) return RailReach::never;
  return shares_network(socket_.rails().ports[rail], host) ? RailReach::same_network
                                                           : RailReach::perhaps;
}

LinkAddress UdpLink::rail_address(ProcessId peer, unsigned rail,
                                  const RailAddress& port) const noexcept {
  return by_port(rail, address_at(address_in(port), peer));
}

std::string UdpLink::describe() const {
  const bool segments = sender_.segments();
  const bool joins = receiver_.can_join();
  return udp_address_text(own_address()) + " (" + socket_.host().reason + "), frames of up to " +
         std::to_string(mtu()) + " bytes, " + std::to_string(receive_capacity_bytes() / 1024) +
         " KiB of receive buffer, " +
         (segments && joins ? "segmentation and joining by the kernel"
          : segments        ? "segmentation by the kernel"
          : joins           ? "joining by the kernel"
                            : "no segmentation by the kernel") +
         (socket_.rails().reason.empty() ? "" : "; " + socket_.rails().reason);
}

}  // namespace lintel
