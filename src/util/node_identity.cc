// Choosing the nid among the node's IPv4 addresses. Set-up path.
#include "util/node_identity.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "util/descriptor.h"
#include "util/log.h"

namespace lintel {

namespace {

// The interface that packets to anywhere leave through; empty if there is none.
std::string default_route_interface() {
  const std::unique_ptr<FILE, int (*)(FILE*)> routes(std::fopen("/proc/net/route", "re"), fclose);
  char line[256];
  char interface[IFNAMSIZ];
  char destination[9];
  // The first line has headings.
  while (routes != nullptr && std::fgets(line, sizeof line, routes.get()) != nullptr)
    if (std::sscanf(line, "%15s %8s", interface, destination) == 2 &&
        std::strcmp(destination, "00000000") == 0)
      return interface;
  return "";
}

bool is_usable(unsigned flags) { return (flags & IFF_UP) != 0 && (flags & IFF_LOOPBACK) == 0; }

// The first address of an interface, unless it is not usable or has none.
std::optional<uint32_t> address_of(const std::string& interface) {
  ifreq request{};
  if (interface.empty() || interface.size() >= sizeof request.ifr_name) return {};
  interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
  const Descriptor asked(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (ioctl(asked.get(), SIOCGIFFLAGS, &request) != 0 ||
      !is_usable(static_cast<unsigned short>(request.ifr_flags)) ||
      ioctl(asked.get(), SIOCGIFADDR, &request) != 0)
    return {};
  sockaddr_in address;
  std::memcpy(&address, &request.ifr_addr, sizeof address);
  return ntohl(address.sin_addr.s_addr);
}

std::string choice(uint32_t nid, const std::string& interface) {
  return nid_text(nid) + ", the address of " + interface;
}

}  // namespace

NodeIdentity find_node_identity() {
  // Asked for alone: a node may have thousands of interfaces and addresses.
  const std::string default_route = default_route_interface();
  if (const std::optional<uint32_t> nid = address_of(default_route))
    return {*nid, choice(*nid, default_route) + ", which has the default route", default_route};
  NodeIdentity first;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) list = nullptr;
  for (const ifaddrs* entry = list; entry != nullptr && first.reason.empty();
       entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET ||
        !is_usable(entry->ifa_flags))
      continue;
    const std::string name = entry->ifa_name;
    const uint32_t nid =
        ntohl(reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr.s_addr);
    first = {nid, choice(nid, name) + ", the first network interface that is up", name};
  }
  if (list != nullptr) freeifaddrs(list);

  if (!first.reason.empty()) return first;
  return {INADDR_LOOPBACK, nid_text(INADDR_LOOPBACK) + ", since no network interface is up", "lo"};
}

std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) return "";
  const std::string text = name;
  return text.substr(0, text.find('.'));
}

std::string nid_text(uint32_t nid) {
  const in_addr address{htonl(nid)};
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address, text, sizeof text);
  return text;
}

ProcessText::ProcessText(uint32_t nid, uint32_t pid) noexcept {
  std::snprintf(text_, sizeof text_, "nid %u.%u.%u.%u pid %u", nid >> 24, nid >> 16 & 0xff,
                nid >> 8 & 0xff, nid & 0xff, pid);
}

}  // namespace lintel
