// Choosing the nid among the node's IPv4 addresses. Set-up path.
#include "transport/node_identity.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include "util/log.h"

namespace lintel {

namespace {

std::string as_text(uint32_t nid) {
  const in_addr address{htonl(nid)};
  char text[INET_ADDRSTRLEN];
  inet_ntop(AF_INET, &address, text, sizeof text);
  return text;
}

}  // namespace

NodeIdentity find_node_identity(const std::string& wanted) {
  NodeIdentity first;
  NodeIdentity named;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) list = nullptr;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    const uint32_t nid =
        ntohl(reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr.s_addr);
    if (named.reason.empty() && !wanted.empty() && wanted == entry->ifa_name)
      named = {nid, as_text(nid) + ", the address of " + wanted + " (PTL_NID_INTERFACE)"};
    const bool usable = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_LOOPBACK) == 0;
    if (first.reason.empty() && usable)
      first = {nid, as_text(nid) + ", the address of " + entry->ifa_name +
                        ", the first network interface that is up"};
  }
  if (list != nullptr) freeifaddrs(list);

  if (!named.reason.empty()) return named;
  if (!wanted.empty()) {
    static std::atomic<bool> said{false};
    log_once(said, LogLevel::warn,
             "PTL_NID_INTERFACE: no network interface named \"%s\" has an IPv4 address; "
             "choosing another one",
             wanted.c_str());
  }
  if (!first.reason.empty()) return first;
  return {INADDR_LOOPBACK, as_text(INADDR_LOOPBACK) + ", since no network interface is up"};
}

}  // namespace lintel
