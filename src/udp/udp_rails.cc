#include "udp/udp_rails.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "util/assert.h"
#include "util/config_parse.h"
#include "util/near_processors.h"
#include "util/new_descriptor.h"
#include "util/text.h"

namespace lintel {

namespace {

// The meaning of PTL_RAILS.
struct Choice {
  size_t most = most_rails;         // rails, with the first one
  std::vector<std::string> listed;  // empty: all interfaces

  [[nodiscard]] bool admits(const std::string& interface) const {
    return listed.empty() || std::find(listed.begin(), listed.end(), interface) != listed.end();
  }
};

Choice choice_of(const std::string& wanted) {
  Choice choice;
  if (wanted == "auto") return choice;
  const auto [end, error] =
      std::from_chars(wanted.data(), wanted.data() + wanted.size(), choice.most);
  if (error == std::errc{} && end == wanted.data() + wanted.size()) return choice;
  choice.most = most_rails;
  choice.listed = split_words(wanted, ',');
  return choice;
}

bool is_near_interface(const std::string& interface) {
  return is_near("/sys/class/net/" + interface + "/device");
}

// 0: not known.
uint32_t mtu_of(const std::string& interface) {
  ifreq request{};
  interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
  const Descriptor socket = open_socket(AF_INET, SOCK_DGRAM);
  return ioctl(socket.get(), SIOCGIFMTU, &request) == 0 ? static_cast<uint32_t>(request.ifr_mtu)
                                                        : 0;
}

// Why an interface is no rail; empty: it is one.
std::string objection(const ifaddrs& entry, const std::string& first, uint32_t first_mtu,
                      const UdpRail& rail) {
  if ((entry.ifa_flags & IFF_UP) == 0) return "is down";
  if (rail.mtu < first_mtu)
    return text_of("has an MTU of ", rail.mtu, ", less than that of ", first);
  return "";
}

// Whether an address of an interface may be one of a rail, in the family of the nid.
bool is_usable(const ifaddrs& entry, const NodeIdentity& host) {
  const sockaddr* const address = entry.ifa_addr;
  if (address == nullptr || entry.ifa_netmask == nullptr || (entry.ifa_flags & IFF_LOOPBACK) != 0 ||
      address->sa_family != (host.ipv6 ? AF_INET6 : AF_INET))
    return false;
  return !host.ipv6 ||
         !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

UdpRail rail_of(const ifaddrs& entry) {
  UdpRail rail;
  rail.interface = entry.ifa_name;
  rail.index = static_cast<int>(if_nametoindex(entry.ifa_name));
  rail.address = ip_address_of(*entry.ifa_addr);
  rail.mask = ip_address_of(*entry.ifa_netmask);
  std::fill_n(rail.mask.begin(), entry.ifa_addr->sa_family == AF_INET ? 12 : 0, uint8_t{0xff});
  rail.mtu = mtu_of(rail.interface);
  rail.is_near = is_near_interface(rail.interface);
  return rail;
}

// The port of the nid, whose index is 0 here, then all others that can be rails.
std::vector<UdpRail> find_ports(const NodeIdentity& host, const Choice& choice,
                                std::string& unused) {
  std::vector<UdpRail> ports{{.interface = host.interface.empty() ? "the first" : host.interface,
                              .address = ip_address_of(host, host.nid),
                              .mtu = host.interface.empty() ? 0 : mtu_of(host.interface),
                              .is_near = is_near_interface(host.interface)}};
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) list = nullptr;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (!is_usable(*entry, host)) continue;
    const UdpRail rail = rail_of(*entry);
    if (rail.address == ports[0].address) ports[0].mask = rail.mask;
    const bool is_known = rail.interface == host.interface || rail.address == ports[0].address ||
                          std::any_of(ports.begin(), ports.end(), [&](const UdpRail& other) {
                            return other.index == rail.index;
                          });
    if (is_known || !choice.admits(rail.interface)) continue;
    if (const std::string why = objection(*entry, host.interface, ports[0].mtu, rail); !why.empty())
      unused += "; " + rail.interface + " " + why;
    else
      ports.push_back(rail);
  }
  return ports;
}

// The nearest first; among them, each process of the node begins with another one. Returns why, for
// the log.
std::string order_ports(std::vector<UdpRail>& ports, const LocalRank& local) {
  const auto is_near = [](const UdpRail& port) { return port.is_near; };
  std::stable_partition(ports.begin(), ports.end(), is_near);
  const auto near = std::count_if(ports.begin(), ports.end(), is_near);
  const auto equal = near != 0 ? near : static_cast<std::ptrdiff_t>(ports.size());
  std::rotate(ports.begin(), ports.begin() + local.rank % equal, ports.begin() + equal);
  return equal == 1 ? ""
                    : text_of("; ", ports[0].interface, " first, as this is process ", local.rank,
                              " of its node (", local.origin, ")");
}

}  // namespace

bool is_rail_choice(const std::string& wanted) {
  const Choice choice = choice_of(wanted);
  return choice.most >= 1 && choice.most <= most_rails &&
         std::all_of(choice.listed.begin(), choice.listed.end(), [](const std::string& interface) {
           return if_nametoindex(interface.c_str()) != 0;
         });
}

UdpRails find_udp_rails(const NodeIdentity& host, const std::string& wanted,
                        const LocalRank& local) {
  UdpRails rails;
  const Choice choice = choice_of(wanted);
  LINTEL_ASSERT(is_rail_choice(wanted));
  if (wanted.empty() || !host.is_found()) return rails;
  std::string unused;
  std::vector<UdpRail> ports = find_ports(host, choice, unused);
  const std::string start = order_ports(ports, local);
  // The port of the nid is always one: peers call there. If not chosen it stands in for others.
  const auto is_first = [](const UdpRail& port) { return port.index == 0; };
  const size_t most = std::min(ports.size(), choice.most);
  const auto first =
      static_cast<size_t>(std::find_if(ports.begin(), ports.end(), is_first) - ports.begin());
  const size_t used = std::min<size_t>(most, first < most ? most_rails : most_rails - 1);
  for (size_t i = used; i < ports.size(); ++i)
    if (i != first) unused += "; " + ports[i].interface + " is one too many";
  rails.used = static_cast<uint8_t>(used);
  rails.first_place = static_cast<uint8_t>(std::min(first, used));
  rails.reason = "rails: ";
  for (size_t i = 0; i < used; ++i)
    rails.reason += text_of(i == 0 ? "" : ", ", ports[i].interface, " (", ip_text(ports[i].address),
                            ports[i].is_near ? ", near)" : ", far)");
  rails.reason += start + unused;
  rails.ports.push_back(ports[first]);
  for (size_t i = 0; i < used; ++i)
    if (i != first) rails.ports.push_back(ports[i]);
  if (rails.ports.size() == 1) rails.ports.clear();
  return rails;
}

bool shares_network(const UdpRail& port, const IpAddress& address) noexcept {
  return port.mask != IpAddress{} && same_host(port, address) == address;
}

IpAddress same_host(const UdpRail& port, IpAddress address) noexcept {
  for (size_t i = 0; i < address.size(); ++i)
    address[i] =
        static_cast<uint8_t>((port.address[i] & port.mask[i]) | (address[i] & ~port.mask[i]));
  return address;
}

}  // namespace lintel
