#include "udp/udp_rails.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>

#include "util/assert.h"
#include "util/config_parse.h"
#include "util/new_descriptor.h"
#include "util/text.h"

namespace lintel {

namespace {

// What PTL_RAILS says.
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

// The processors that are near to an interface, as a list; empty: nothing is known.
std::string processors_near(const std::string& interface) {
  const Stream in =
      open_for_reading(("/sys/class/net/" + interface + "/device/local_cpulist").c_str());
  char line[1024] = "";
  if (in == nullptr || std::fgets(line, sizeof line, in.get()) == nullptr) return "";
  return std::string(trim(line));
}

std::vector<unsigned> own_processors() {
  cpu_set_t set;
  std::vector<unsigned> own;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return own;
  for (unsigned i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) own.push_back(i);
  return own;
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

}  // namespace

bool is_rail_choice(const std::string& wanted) {
  const Choice choice = choice_of(wanted);
  return choice.most >= 1 && choice.most <= most_rails &&
         std::all_of(choice.listed.begin(), choice.listed.end(), [](const std::string& interface) {
           return if_nametoindex(interface.c_str()) != 0;
         });
}

bool shares_processor(std::string_view text, const std::vector<unsigned>& own) {
  const std::optional<std::vector<unsigned>> near = parse_cpu_list(text);
  if (!near || near->empty() || own.empty()) return true;
  return std::any_of(near->begin(), near->end(), [&](unsigned processor) {
    return std::find(own.begin(), own.end(), processor) != own.end();
  });
}

UdpRails find_udp_rails(const NodeIdentity& host, const std::string& wanted) {
  UdpRails rails;
  const Choice choice = choice_of(wanted);
  LINTEL_ASSERT(is_rail_choice(wanted));
  if (choice.most == 1 || !host.is_found()) return rails;
  if (host.ipv6) {
    rails.reason = "one rail: the nid is an IPv6 address";
    return rails;
  }
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) list = nullptr;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  const std::vector<unsigned> own = own_processors();
  std::string unused;
  if (!host.interface.empty()) rails.first_mtu = mtu_of(host.interface);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET ||
        entry->ifa_netmask == nullptr || (entry->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    UdpRail rail;
    rail.interface = entry->ifa_name;
    rail.index = static_cast<int>(if_nametoindex(entry->ifa_name));
    rail.address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr;
    rail.mask = reinterpret_cast<const sockaddr_in*>(entry->ifa_netmask)->sin_addr;
    const bool is_known =
        rail.interface == host.interface || ntohl(rail.address.s_addr) == host.nid ||
        std::any_of(rails.further.begin(), rails.further.end(),
                    [&](const UdpRail& other) { return other.index == rail.index; });
    if (is_known || !choice.admits(rail.interface)) continue;
    rail.mtu = mtu_of(rail.interface);
    rail.is_near = shares_processor(processors_near(rail.interface), own);
    if (const std::string why = objection(*entry, host.interface, rails.first_mtu, rail);
        !why.empty())
      unused += "; " + rail.interface + " " + why;
    else
      rails.further.push_back(rail);
  }
  std::stable_sort(rails.further.begin(), rails.further.end(),
                   [](const UdpRail& a, const UdpRail& b) { return a.is_near && !b.is_near; });
  while (rails.further.size() >= choice.most) {
    unused += "; " + rails.further.back().interface + " is one too many";
    rails.further.pop_back();
  }
  rails.reason = text_of("rails: ", host.interface.empty() ? "the first" : host.interface);
  for (const UdpRail& rail : rails.further)
    rails.reason += text_of(", ", rail.interface, " (", nid_text(ntohl(rail.address.s_addr)),
                            rail.is_near ? ", near)" : ", far)");
  rails.reason += unused;
  return rails;
}

}  // namespace lintel
