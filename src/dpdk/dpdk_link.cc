// Opening the link: the ports, the claim to nid and pid; routes to peers. Set-up and connection
// path.
#include "dpdk/dpdk_link.h"

#include <rte_version.h>
#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "dpdk/eal.h"
#include "util/clock.h"
#include "util/text.h"

namespace lintel {

namespace {

// A port of hardware needs this long at most until its link is up.
constexpr uint64_t link_up_ns = 5'000'000'000;
constexpr unsigned claims = 3;
constexpr uint64_t claim_gap_ns = 3'000'000;
// Returns the slots of a ring that data may take: the rest is for acknowledgements.
constexpr uint64_t slots_for_data(uint32_t ring_frames) noexcept {
  return std::max(ring_frames - ring_frames / 8, 4u);
}
// Frames wait only in the ring between two processes, which holds up no others.
constexpr uint64_t private_queue_delay_ns = 250'000;

MacAddress mac_in(const RailAddress& port) noexcept {
  MacAddress mac;
  std::copy_n(port.bytes.begin(), mac.size(), mac.begin());
  return mac;
}

using Rails = std::vector<std::unique_ptr<DpdkRail>>;

bool any_of(const Rails& rails, bool (*is)(DpdkRail&)) {
  return std::any_of(rails.begin(), rails.end(), [is](const auto& rail) { return is(*rail); });
}

}  // namespace

// A peer may send all that is on the way by one port.
DpdkLink::DpdkLink(const DpdkSettings& settings, Rails rails) : rails_(std::move(rails)) {
  const Port& first = rails_[0]->port();
  const uint32_t mtu = least_of_rails(rails_, [](const DpdkRail& rail) { return rail.mtu(); });
  const bool is_private = first.is_private();
  properties_ = {
      .name = "dpdk",
      .device = first.name(),
      .id = settings.id,
      .own_address = link_address_of(first.mac()),
      .mtu = mtu,
      .receive_capacity_bytes =
          slots_for_data(least_of_rails(
              rails_, [](const DpdkRail& rail) { return rail.port().ring_frames(); })) *
          mtu,
      .receive_slot_bytes = mtu,
      .queue_delay_ns = is_private ? private_queue_delay_ns : LinkProperties{}.queue_delay_ns,
      .sends_from_anywhere =
          !any_of(rails_, [](DpdkRail& rail) { return !rail.port().sends_from_anywhere(); }),
      .keeps_frames_of_node = is_private,
      .descriptor = rails_.size() == 1 ? first.interrupt_descriptor() : no_descriptor,
  };
  if (rails_.size() > 1) join_interrupts();
  for (const auto& rail : rails_) {
    if (rails_.size() == 1) break;
    if (rail != rails_[0]) properties_.device += "+" + rail->port().name();
    RailAddress& told = properties_.rails[properties_.rail_count++];
    const MacAddress& mac = rail->port().mac();
    std::copy(mac.begin(), mac.end(), told.bytes.begin());
    told.mtu = mtu;
  }
}

// A thread sleeps only if each port wakes it.
void DpdkLink::join_interrupts() noexcept {
  for (const auto& rail : rails_)
    if (const int descriptor = rail->port().interrupt_descriptor();
        descriptor < 0 || !join_descriptor(interrupts_, descriptor))
      return;
  properties_.descriptor = interrupts_.get();
}

OpenStatus DpdkLink::open(const DpdkSettings& settings, std::unique_ptr<PacketLink>& result,
                          std::string& reason) {
  uint64_t instance = 0;
  if (getrandom(&instance, sizeof instance, GRND_NONBLOCK) != sizeof instance)
    return explained(OpenStatus::failed, reason, "the kernel gives no random numbers (getrandom)");
  Rails rails;
  for (const std::string& device : settings.ports) {
    // The gate holds up the connections of all of them.
    if (settings.ports.size() > 1 && Port::needs_gate(device))
      return explained(OpenStatus::failed, reason, device + " cannot be one of several ports");
    rails.push_back(
        DpdkRail::open(settings, device, static_cast<uint8_t>(rails.size()), instance | 1, reason));
    if (rails.back() == nullptr) return OpenStatus::failed;
  }
  std::unique_ptr<DpdkLink> link(new DpdkLink(settings, std::move(rails)));
  const OpenStatus status = link->claim(reason);
  if (status == OpenStatus::opened) result = std::move(link);
  return status;
}

// Waits for hardware, which needs a while to reach its partner; at the end of a memif there may be
// no process yet.
OpenStatus DpdkLink::claim(std::string& reason) {
  const auto look = [this] {
    for (const auto& rail : rails_) rail->look();
  };
  const bool is_hardware = any_of(rails_, [](DpdkRail& rail) { return rail.port().is_hardware(); });
  const uint64_t deadline = now_ns() + (is_hardware ? link_up_ns : 0);
  do {
    look();
  } while (any_of(rails_, [](DpdkRail& rail) { return !rail.reaches_network(); }) &&
           now_ns() < deadline);
  const auto is_disputed = [](DpdkRail& rail) { return rail.discovery().disputed(); };
  const bool reaches_network =
      any_of(rails_, [](DpdkRail& rail) { return rail.reaches_network(); });
  for (unsigned i = 0; reaches_network && i < claims && !any_of(rails_, is_disputed); ++i) {
    for (const auto& rail : rails_)
      if (rail->reaches_network()) rail->sender().send_discovery(rail->discovery().claim());
    const uint64_t next = now_ns() + claim_gap_ns;
    while (now_ns() < next) look();
  }
  if (any_of(rails_, is_disputed))
    return explained(
        OpenStatus::pid_in_use, reason,
        "another process on the network of " + properties_.device + " has this nid and pid");
  for (const auto& rail : rails_) rail->discovery().settle();
  return OpenStatus::opened;
}

bool DpdkLink::offer_memory(std::byte* start, size_t bytes) noexcept {
  bool taken = true;
  for (const auto& rail : rails_) taken &= rail->sender().offer_memory(start, bytes);
  return taken;
}

// All ports are asked; the one that answers first is taken until the ports are paired.
ResolveStatus DpdkLink::resolve(ProcessId peer, Route& route, std::string* reason) noexcept {
  route.mtu = mtu();
  ResolveStatus result = ResolveStatus::unreachable;
  for (const auto& rail : rails_) {
    Route by;
    const ResolveStatus status = rail->resolve(peer, by);
    if (status == ResolveStatus::unreachable || result == ResolveStatus::resolved) continue;
    result = status;
    route.address = by.address;
  }
  if (result == ResolveStatus::unreachable && reason != nullptr) {
    try {
      *reason = "too many processes are known already";
    } catch (...) {
      reason->clear();
    }
  }
  return result;
}

bool DpdkLink::adopt(ProcessId peer, const LinkAddress& from, Route& route) noexcept {
  route = {from, mtu()};
  return rail(from.rail()).adopt(peer, from);
}

unsigned DpdkLink::ways_to(ProcessId peer, const LinkAddress&,
                           LinkAddress (&to)[most_ways]) const noexcept {
  unsigned count = 0;
  for (const auto& rail : rails_) {
    Route route;
    if (rail->resolve(peer, route) == ResolveStatus::resolved) to[count++] = route.address;
  }
  return rails_.size() == 1 ? 0 : count;
}

RailReach DpdkLink::reach(unsigned, const RailAddress& port) const noexcept {
  for (const auto& rail : rails_)
    if (rail->port().mac() == mac_in(port)) return RailReach::never;
  return RailReach::perhaps;
}

LinkAddress DpdkLink::rail_address(ProcessId, unsigned rail,
                                   const RailAddress& port) const noexcept {
  return rails_[rail]->address_of(mac_in(port));
}

std::string DpdkLink::describe() const {
  std::string text;
  for (const auto& rail : rails_) text += (text.empty() ? "" : "; ") + rail->describe();
  return text_of(text, "; frames of up to ", mtu(), " bytes, ", describe_eal_memory(),
                 descriptor() == no_descriptor
                     ? text_of(", no receive interrupts: polled every ",
                               properties_.longest_pause_ns / 1000, " us at least")
                     : "",
                 "; ", rte_version());
}

}  // namespace lintel
