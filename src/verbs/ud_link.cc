// Opening and closing the link; routes to peers; what the resolver's thread does for it. Set-up and
// connection path.
#include "verbs/ud_link.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "util/text.h"
#include "verbs/port_choice.h"

namespace lintel {

namespace {

// Charge of the smallest frame in the reliability layer: a slot of the queue counts this much.
constexpr uint64_t smallest_charge_bytes = 640 + 64;

// A port as the handshake tells it.
struct UdPort {
  ibv_gid gid;
  uint32_t queue_pair;
  uint32_t q_key;
  uint16_t lid;
  uint16_t is_roce;
  uint32_t mtu;
};
static_assert(sizeof(UdPort) == sizeof(RailAddress) &&
              offsetof(UdPort, mtu) == offsetof(RailAddress, mtu));

RailAddress told(const UdDestination& own) noexcept {
  return std::bit_cast<RailAddress>(
      UdPort{own.gid, own.queue_pair, own.q_key, own.lid, uint16_t{own.is_roce}, own.mtu});
}

UdDestination destination_of(const RailAddress& rail) noexcept {
  const auto port = std::bit_cast<UdPort>(rail);
  return {port.gid, port.lid, port.is_roce == 1, port.queue_pair, port.q_key, port.mtu};
}

}  // namespace

UdLink::UdLink(const VerbsDevices& devices, ProcessId id) : devices_(devices) {
  properties_.name = "verbs";
  properties_.device = devices_[0]->name();
  properties_.id = id;
  properties_.host_mask = std::bit_cast<LinkAddress>(UdAddress{0, 0, UINT32_MAX, {}});
  properties_.mtu =
      least_of_rails(devices_, [](const VerbsDevice& device) { return device.mtu_bytes(); });
  properties_.descriptor = devices_[0]->events.descriptor();
}

OpenStatus UdLink::open(const VerbsDevices& devices, const UdSettings& settings,
                        std::unique_ptr<UdLink>& result, std::string& reason) {
  std::unique_ptr<UdLink> link(new UdLink(devices, settings.id));
  const OpenStatus status = link->resolver_.claim(settings.id, reason);
  if (status != OpenStatus::opened) return status;
  if (!link->open_parts(settings, reason)) return OpenStatus::failed;
  result = std::move(link);
  return OpenStatus::opened;
}

bool UdLink::join_descriptors(std::string& reason) {
  if (devices_.size() == 1) return true;
  for (const auto& device : devices_)
    if (!join_descriptor(completions_, device->events.descriptor()) ||
        !join_descriptor(events_, device->async_events.descriptor()))
      return explained(false, reason, std::string("epoll: ") + strerror(errno));
  properties_.descriptor = completions_.get();
  return true;
}

bool UdLink::open_parts(const UdSettings& settings, std::string& reason) {
  if (mtu() < least_mtu)
    return explained(
        false, reason,
        text_of(devices_[0]->name(), " carries datagrams of ", mtu(),
                " bytes only; raise the MTU of its network interface to 1500 at least"));
  if (!hosts_.open(devices_))
    return explained(false, reason, "no address space for the table of nodes (ulimit -v?)");
  if (!join_descriptors(reason)) return false;
  const uint32_t slots =
      std::min(settings.receive_buffers, least_of_rails(devices_, [](const VerbsDevice& device) {
                 return std::min(device.attributes.max_qp_wr, device.attributes.max_cqe);
               }));
  for (const auto& device : devices_) {
    rails_.push_back(
        std::make_unique<UdRail>(device, static_cast<uint8_t>(rails_.size()), hosts_, resolver_));
    if (!rails_.back()->open(slots, mtu(), reason)) return false;
    if (devices_.size() == 1) break;
    if (rails_.size() > 1) properties_.device += "+" + device->name();
    properties_.rails[properties_.rail_count++] = told(rails_.back()->destination());
  }
  const UdDestination own = rails_[0]->destination();
  properties_.own_address = rails_[0]->address_of(own);
  properties_.receive_capacity_bytes = std::max(slots * smallest_charge_bytes, uint64_t{4} * mtu());
  return resolver_.start(own, *this, settings.lookup_timeout_ns, reason);
}

UdLink::~UdLink() { resolver_.stop(); }

bool UdLink::offer_memory(std::byte* start, size_t bytes) noexcept {
  bool taken = true;
  for (const auto& rail : rails_) taken &= rail->offered().offer(rail->device().pd, start, bytes);
  return taken;
}

bool UdLink::arm() noexcept {
  bool armed = true;
  for (const auto& rail : rails_) armed &= rail->arm();
  return armed;
}

// The port of its pid is closed with the process; the next process there has another queue pair and
// another Q_Key.
bool UdLink::is_gone(ProcessId peer, const LinkAddress& address) noexcept {
  Route now;
  bool refused = false;
  const ResolveStatus status = resolver_.resolve(peer, now, nullptr, &refused);
  return refused || (status == ResolveStatus::resolved &&
                     !(now.address.without_rail() == address.without_rail()));
}

bool UdLink::adopt(ProcessId, const LinkAddress& from, Route& route) noexcept {
  const auto address = std::bit_cast<UdAddress>(from);
  if (from.rail() >= rails_.size() || !hosts_.contains(address.host) ||
      hosts_.handle(from.rail(), address.host) == nullptr)
    return false;
  hosts_.admit(address.host);
  route = {from, mtu()};
  return true;
}

// The first port of the peer, by all of this process.
unsigned UdLink::ways_to(ProcessId, const LinkAddress& route,
                         LinkAddress (&to)[most_ways]) const noexcept {
  for (unsigned rail = 0; rail < rails_.size(); ++rail) {
    to[rail] = route;
    to[rail].set_rail(static_cast<uint8_t>(rail));
  }
  return rails_.size() == 1 ? 0 : static_cast<unsigned>(rails_.size());
}

RailReach UdLink::reach(unsigned rail, const RailAddress& port) const noexcept {
  const UdDestination to = destination_of(port);
  const VerbsDevice& device = *devices_[rail];
  if (why_not_sent_to(to, device.is_roce) != nullptr) return RailReach::never;
  return shares_network(device.gid, to.gid, device.network_bits) ? RailReach::same_network
                                                                 : RailReach::perhaps;
}

LinkAddress UdLink::rail_address(ProcessId, unsigned rail, const RailAddress& port) const noexcept {
  return rails_[rail]->address_of(destination_of(port));
}

bool UdLink::make_route(const UdDestination& destination, Route& route, std::string& reason) {
  if (hosts_.make(0, hosts_.key_of(0, destination.gid, destination.lid), reason) == UdHosts::none)
    return false;
  route = {rails_[0]->address_of(destination), std::min(destination.mtu, mtu())};
  return true;
}

void UdLink::work() noexcept {
  hosts_.make_wanted();
  for (const auto& rail : rails_) rail->offered().register_wanted();
}

int UdLink::event_descriptor() const noexcept {
  return events_.is_open() ? events_.get() : devices_[0]->async_events.descriptor();
}

void UdLink::handle_events() noexcept {
  for (const auto& device : devices_) device->async_events.dispatch();
}

std::string UdLink::describe() const {
  std::string text;
  for (const auto& rail : rails_) text += (text.empty() ? "" : "; ") + rail->describe();
  return text_of(text, "; datagrams of up to ", mtu(), " bytes");
}

}  // namespace lintel
