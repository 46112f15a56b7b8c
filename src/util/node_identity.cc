// Choosing the nid among the addresses of the node. Set-up path.
#include "util/node_identity.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "util/log.h"
#include "util/new_descriptor.h"

namespace lintel {

// The list of links by netlink (rtnetlink(7)). Set-up path.

namespace {

constexpr size_t answer_bytes = size_t{32} << 10;  // maximum length of the kernel's datagrams
constexpr unsigned most_answers = 1u << 16;

// Attributes that hold attributes.
template <typename Use>
void for_each_attribute(const rtattr* attribute, size_t bytes, Use&& use) {
  auto length = static_cast<int>(bytes);
  for (; RTA_OK(attribute, length); attribute = RTA_NEXT(attribute, length)) use(*attribute);
}

const void* value_of(const rtattr& attribute) noexcept { return RTA_DATA(&attribute); }

std::string text_of(const rtattr& attribute) {
  const auto* const text = static_cast<const char*>(value_of(attribute));
  return {text, strnlen(text, RTA_PAYLOAD(&attribute))};
}

NetworkLink link_of(const nlmsghdr& message) {
  NetworkLink link;
  const auto* const info = static_cast<const ifinfomsg*>(NLMSG_DATA(&message));
  link.index = static_cast<uint32_t>(info->ifi_index);
  const size_t head_bytes = NLMSG_LENGTH(NLMSG_ALIGN(sizeof *info));
  if (message.nlmsg_len <= head_bytes) return link;
  for_each_attribute(IFLA_RTA(info), message.nlmsg_len - head_bytes, [&](const rtattr& attribute) {
    if (attribute.rta_type == IFLA_IFNAME) link.name = text_of(attribute);
    if (attribute.rta_type == IFLA_MASTER && RTA_PAYLOAD(&attribute) >= sizeof link.master)
      std::memcpy(&link.master, value_of(attribute), sizeof link.master);
    if ((attribute.rta_type & NLA_TYPE_MASK) != IFLA_LINKINFO) return;
    for_each_attribute(static_cast<const rtattr*>(value_of(attribute)), RTA_PAYLOAD(&attribute),
                       [&](const rtattr& inner) {
                         if (inner.rta_type == IFLA_INFO_KIND) link.kind = text_of(inner);
                       });
  });
  return link;
}

bool ask_for_links(int socket) noexcept {
  struct {
    nlmsghdr header;
    ifinfomsg info;
  } request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = RTM_GETLINK;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  const timeval patience{1, 0};
  return setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
         send(socket, &request, sizeof request, 0) == sizeof request;
}

// False: that was the last answer.
bool take_answer(const std::byte* answer, size_t bytes, std::vector<NetworkLink>& links) {
  auto length = static_cast<unsigned>(bytes);
  for (const auto* message = reinterpret_cast<const nlmsghdr*>(answer); NLMSG_OK(message, length);
       message = NLMSG_NEXT(message, length)) {
    if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR) return false;
    if (message->nlmsg_type == RTM_NEWLINK && message->nlmsg_len >= NLMSG_LENGTH(sizeof(ifinfomsg)))
      links.push_back(link_of(*message));
  }
  return true;
}

bool leads_out(const NetworkLink& port) {
  constexpr std::array within_node = {"veth", "tun", "dummy"};
  return std::find(within_node.begin(), within_node.end(), port.kind) == within_node.end();
}

// The interfaces that packets to anywhere leave through, the preferred one first.
std::vector<std::string> default_route_interfaces() {
  std::vector<std::string> interfaces;
  const Stream routes = open_for_reading("/proc/net/route");
  char line[256];
  char interface[IFNAMSIZ];
  char destination[9];
  // The first line has headings.
  while (routes != nullptr && std::fgets(line, sizeof line, routes.get()) != nullptr)
    if (std::sscanf(line, "%15s %8s", interface, destination) == 2 &&
        std::strcmp(destination, "00000000") == 0)
      interfaces.emplace_back(interface);
  return interfaces;
}

// An interface without carrier sends nothing.
bool is_usable(unsigned flags) {
  return (flags & IFF_UP) != 0 && (flags & IFF_RUNNING) != 0 && (flags & IFF_LOOPBACK) == 0;
}

constexpr bool is_loopback(uint32_t ipv4) { return ipv4 >> 24 == IN_LOOPBACKNET; }
constexpr bool is_link_local(uint32_t ipv4) { return ipv4 >> 16 == 0xa9fe; }  // RFC 3927

// The first address of an interface, unless it is not usable or has none.
std::optional<uint32_t> address_of(const std::string& interface) {
  ifreq request{};
  if (interface.empty() || interface.size() >= sizeof request.ifr_name) return {};
  interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
  const Descriptor asked = open_socket(AF_INET, SOCK_DGRAM);
  if (ioctl(asked.get(), SIOCGIFFLAGS, &request) != 0 ||
      !is_usable(static_cast<unsigned short>(request.ifr_flags)) ||
      ioctl(asked.get(), SIOCGIFADDR, &request) != 0)
    return {};
  sockaddr_in address;
  std::memcpy(&address, &request.ifr_addr, sizeof address);
  const uint32_t nid = ntohl(address.sin_addr.s_addr);
  return is_link_local(nid) ? std::nullopt : std::optional(nid);
}

std::string choice(uint32_t nid, const std::string& interface) {
  return nid_text(nid) + ", the address of " + interface;
}

// Rank of an address; the lowest is chosen.
enum class Rank : uint8_t {
  ipv4,
  ipv6,
  ipv6_link_local,
  ipv4_link_local,  // some devices have the same one in every machine
  within_node,      // as of docker0: the same in every machine, too
  none,
};

struct Candidate {
  Rank rank = Rank::none;
  NodeIdentity node;
};

// Whether an address does not expire and no other host has it, by its flags in /proc/net/if_inet6.
bool is_lasting(unsigned flags) {
  constexpr unsigned temporary = 0x01;
  constexpr unsigned duplicate = 0x08;
  constexpr unsigned deprecated = 0x20;
  return (flags & (temporary | duplicate | deprecated)) == 0;
}

std::vector<Candidate> ipv6_candidates() {
  std::vector<Candidate> found;
  const Stream table = open_for_reading("/proc/net/if_inet6");
  char line[256];
  while (table != nullptr && std::fgets(line, sizeof line, table.get()) != nullptr) {
    char digits[33];
    char interface[IFNAMSIZ];
    unsigned index = 0;
    unsigned flags = 0;
    if (std::sscanf(line, "%32s %x %*x %*x %x %15s", digits, &index, &flags, interface) != 4 ||
        std::strlen(digits) != 32 || !is_lasting(flags))
      continue;
    Candidate candidate;
    NodeIdentity& node = candidate.node;
    node.ipv6 = true;
    for (size_t i = 0; i < sizeof node.address.s6_addr; ++i)
      std::sscanf(digits + 2 * i, "%2hhx", &node.address.s6_addr[i]);
    const bool is_local = IN6_IS_ADDR_LINKLOCAL(&node.address);
    node.scope = is_local ? index : 0;
    node.nid = last_word(node.address);
    node.interface = interface;
    if (node.nid == INADDR_ANY || node.nid == INADDR_NONE) continue;
    candidate.rank = is_local ? Rank::ipv6_link_local : Rank::ipv6;
    found.push_back(candidate);
  }
  return found;
}

std::string text_of(const NodeIdentity& node) {
  if (!node.ipv6) return choice(node.nid, node.interface);
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, &node.address, text, sizeof text);
  return nid_text(node.nid) + ", the end of " + text + ", an address of " + node.interface;
}

std::string text_of(Rank rank) {
  switch (rank) {
    case Rank::ipv4:
      return ", the first network interface that has carrier";
    case Rank::ipv6:
      return ", since none has an IPv4 address that others could reach";
    case Rank::ipv6_link_local:
    case Rank::ipv4_link_local:
      return ", since there are only link-local addresses";
    default:
      return ", since no network interface leads to other nodes";
  }
}

// All addresses of interfaces that are up and have carrier, by rank.
Candidate best_candidate() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) list = nullptr;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  const std::vector<NetworkLink> links = read_network_links();
  const std::vector<Candidate> of_ipv6 = ipv6_candidates();
  Candidate best;
  const auto consider = [&](Rank rank, const NodeIdentity& node) {
    if (stays_on_node(links, node.interface)) rank = Rank::within_node;
    if (rank < best.rank) best = {rank, node};
  };
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || !is_usable(entry->ifa_flags)) continue;
    if (entry->ifa_addr->sa_family == AF_INET) {
      const uint32_t nid =
          ntohl(reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr.s_addr);
      consider(is_link_local(nid) ? Rank::ipv4_link_local : Rank::ipv4, {nid, "", entry->ifa_name});
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const auto& wanted = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
      for (const Candidate& candidate : of_ipv6)
        if (IN6_ARE_ADDR_EQUAL(&candidate.node.address, &wanted) &&
            candidate.node.interface == entry->ifa_name)
          consider(candidate.rank, candidate.node);
    }
  }
  return best;
}

}  // namespace

std::vector<NetworkLink> read_network_links() {
  std::vector<NetworkLink> links;
  const Descriptor asked = open_socket(AF_NETLINK, SOCK_RAW);  // NETLINK_ROUTE is protocol 0
  if (!asked.is_open() || !ask_for_links(asked.get())) return links;
  std::vector<uint64_t> memory(answer_bytes / sizeof(uint64_t));
  auto* const answer = reinterpret_cast<std::byte*>(memory.data());
  for (unsigned i = 0; i < most_answers; ++i) {
    const ssize_t bytes = recv(asked.get(), answer, answer_bytes, 0);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0 || !take_answer(answer, static_cast<size_t>(bytes), links)) break;
  }
  return links;
}

bool stays_on_node(const std::vector<NetworkLink>& links, const std::string& name) {
  const auto link = std::find_if(links.begin(), links.end(),
                                 [&](const NetworkLink& one) { return one.name == name; });
  if (link == links.end()) return false;
  if (link->kind == "dummy") return true;
  return link->kind == "bridge" &&
         std::none_of(links.begin(), links.end(), [&](const NetworkLink& port) {
           return port.master == link->index && leads_out(port);
         });
}

NodeIdentity find_node_identity() {
  // Only these interfaces are read: a node may have thousands of interfaces and addresses.
  for (const std::string& interface : default_route_interfaces())
    if (const std::optional<uint32_t> nid = address_of(interface))
      return {*nid, choice(*nid, interface) + ", which has the default route", interface};
  Candidate best = best_candidate();
  if (best.rank == Rank::none)
    return {INADDR_LOOPBACK,
            nid_text(INADDR_LOOPBACK) + ", since no network interface with carrier has an address",
            "lo"};
  best.node.reason = text_of(best.node) + text_of(best.rank);
  return best.node;
}

std::string why_not_reached(const NodeIdentity& node) {
  if (node.ipv6 ? IN6_IS_ADDR_LOOPBACK(&node.address) : is_loopback(node.nid))
    return "is an address of the loopback, which every node has";
  const std::string& name = node.interface;
  ifreq request{};
  if (name.empty() || name.size() >= sizeof request.ifr_name) return "";
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  const Descriptor asked = open_socket(AF_INET, SOCK_DGRAM);
  if (ioctl(asked.get(), SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_RUNNING) == 0)
    return "is an address of " + name + ", which has no carrier";
  if (stays_on_node(read_network_links(), name))
    return "is an address of " + name + ", which leads to no other node";
  return "";
}

uint32_t last_word(const in6_addr& address) noexcept {
  uint32_t word;
  std::memcpy(&word, address.s6_addr + 12, sizeof word);
  return ntohl(word);
}

uint64_t number_of_machine() {
  const Stream file = open_for_reading("/proc/sys/kernel/random/boot_id");
  char digits[64] = "";
  if (file == nullptr || std::fgets(digits, sizeof digits, file.get()) == nullptr) return 0;
  uint64_t number = 0;
  for (const char* digit = digits; *digit != '\0'; ++digit)
    if (std::isxdigit(static_cast<unsigned char>(*digit)) != 0)
      number = number * 31 + static_cast<unsigned char>(*digit);
  return number;
}

uint64_t number_of_network() {
  struct stat state {};
  return stat("/proc/self/ns/net", &state) == 0 ? number_of_machine() * 31 + state.st_ino : 0;
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
