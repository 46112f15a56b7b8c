// Asking libibverbs and the kernel about the ports there are. Set-up path.
#include "verbs/port_list.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "util/text.h"

namespace lintel {

namespace {

constexpr const char* device_nodes = "/dev/infiniband";
constexpr size_t most_gids = 1024;  // of one device

// The first IPv4 address of a network interface that is up; 0: none.
uint32_t ipv4_of_interface(const std::string& name) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return 0;
  uint32_t found = 0;
  for (const ifaddrs* entry = list; entry != nullptr && found == 0; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    if (name != entry->ifa_name || (entry->ifa_flags & IFF_UP) == 0) continue;
    found = ntohl(reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr.s_addr);
  }
  freeifaddrs(list);
  return found;
}

uint32_t ipv4_of_interface(uint32_t index) {
  char name[IF_NAMESIZE] = "";
  if (index == 0 || if_indextoname(index, name) == nullptr) return 0;
  return ipv4_of_interface(std::string(name));
}

// The IPoIB interface of a port belongs to the same piece of hardware, and its dev_port counts from
// 0.
uint32_t ipoib_ipv4(const std::string& device, unsigned port) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator("/sys/class/net", ignored)) {
    if (!fs::exists(entry.path() / "device/infiniband" / device, ignored)) continue;
    unsigned dev_port = 0;
    std::ifstream(entry.path() / "dev_port") >> dev_port;
    if (dev_port + 1 != port) continue;
    if (const uint32_t ipv4 = ipv4_of_interface(entry.path().filename().string()); ipv4 != 0)
      return ipv4;
  }
  return 0;
}

std::string why_not_opened(const std::string& device, int error) {
  std::string text = text_of("device ", device, " cannot be opened (", strerror(error), ")");
  if (error == EACCES || error == EPERM)
    text.append("; this user needs access to the files in /dev/infiniband");
  else if (access(device_nodes, F_OK) != 0)
    text.append(
        "; there is no /dev/infiniband: load the kernel's module ib_uverbs, or pass the "
        "directory into the container");
  return text;
}

GidType type_of(uint32_t type) noexcept {
  return type == IBV_GID_TYPE_ROCE_V2   ? GidType::roce_v2
         : type == IBV_GID_TYPE_ROCE_V1 ? GidType::roce_v1
                                        : GidType::infiniband;
}

void describe_device(ibv_context* context, const std::string& name, PortList& list,
                     const std::shared_ptr<ibv_context>& owner) {
  ibv_device_attr attributes{};
  if (const int error = ibv_query_device(context, &attributes); error != 0) {
    PortDescription port;
    port.device = name;
    port.fault = text_of("device ", name, " does not tell its limits (", strerror(error), ")");
    list.ports.push_back(port);
    list.contexts.push_back(owner);
    return;
  }
  std::vector<ibv_gid_entry> rows(most_gids);
  const ssize_t count = ibv_query_gid_table(context, rows.data(), rows.size(), 0);
  rows.resize(count < 0 ? 0 : static_cast<size_t>(count));
  for (unsigned number = 1; number <= attributes.phys_port_cnt; ++number) {
    PortDescription port;
    port.device = name;
    port.port = static_cast<uint8_t>(number);
    ibv_port_attr state{};
    if (const int error = ibv_query_port(context, port.port, &state); error != 0)
      port.fault =
          text_of(port_name(name, number), " does not tell its state (", strerror(error), ")");
    port.state = state.state;
    port.is_ethernet = state.link_layer == IBV_LINK_LAYER_ETHERNET;
    for (const ibv_gid_entry& row : rows)
      if (row.port_num == number)
        port.gids.push_back({row.gid_index, type_of(row.gid_type), row.gid,
                             port.is_ethernet ? ipv4_of_interface(row.ndev_ifindex) : 0});
    if (!port.is_ethernet) port.ipoib_ipv4 = ipoib_ipv4(name, number);
    list.ports.push_back(std::move(port));
    list.contexts.push_back(owner);
  }
}

}  // namespace

PortList list_ports(const std::string& only) {
  PortList list;
  int count = 0;
  ibv_device** const devices = ibv_get_device_list(&count);
  if (devices == nullptr) {
    list.reason = text_of("the RDMA devices of this node cannot be listed (", strerror(errno),
                          "); is the kernel's module ib_uverbs loaded?");
    return list;
  }
  for (int i = 0; i < count; ++i) {
    const std::string name = ibv_get_device_name(devices[i]);
    if (!only.empty() && only != name) continue;
    errno = 0;
    ibv_context* const context = ibv_open_device(devices[i]);
    if (context == nullptr) {
      PortDescription port;
      port.device = name;
      port.fault = why_not_opened(name, errno);
      list.ports.push_back(std::move(port));
      list.contexts.emplace_back();
      continue;
    }
    const std::shared_ptr<ibv_context> owner(context,
                                             [](ibv_context* open) { ibv_close_device(open); });
    describe_device(context, name, list, owner);
  }
  ibv_free_device_list(devices);
  return list;
}

}  // namespace lintel
