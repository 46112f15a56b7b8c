// The list of links by netlink (rtnetlink(7)). Set-up path.
#include "util/network_links.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "util/new_descriptor.h"

namespace lintel {

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

}  // namespace lintel
