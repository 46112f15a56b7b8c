// Choosing the nid among the node's IPv4 addresses. Set-up path.
#include "util/node_identity.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "util/log.h"

namespace lintel {

namespace {

// The interface that packets to anywhere leave through; empty if there is none.
std::string default_route_interface() {
  std::ifstream routes("/proc/net/route");
  std::string line;
  std::getline(routes, line);  // headings
  while (std::getline(routes, line)) {
    std::istringstream fields(line);
    std::string interface;
    std::string destination;
    if (fields >> interface >> destination && destination == "00000000") return interface;
  }
  return "";
}

}  // namespace

NodeIdentity find_node_identity() {
  const std::string default_route = default_route_interface();
  NodeIdentity routed;
  NodeIdentity first;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) list = nullptr;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    const std::string name = entry->ifa_name;
    const uint32_t nid =
        ntohl(reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr.s_addr);
    const std::string choice = nid_text(nid) + ", the address of " + name;
    const bool usable = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_LOOPBACK) == 0;
    if (routed.reason.empty() && usable && name == default_route)
      routed = {nid, choice + ", which has the default route", name};
    if (first.reason.empty() && usable)
      first = {nid, choice + ", the first network interface that is up", name};
  }
  if (list != nullptr) freeifaddrs(list);

  if (!routed.reason.empty()) return routed;
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
