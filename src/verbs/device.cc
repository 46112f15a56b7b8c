// Opening the port that was chosen. Set-up path.
#include "verbs/device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "registration/registration.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/near_processors.h"
#include "util/new_descriptor.h"
#include "util/text.h"
#include "verbs/port_choice.h"

namespace lintel {

namespace {

// The ports of all RDMA devices of this node, with the devices open. A device that cannot be opened
// is described as one port with its fault.
struct PortList {
  std::vector<PortDescription> ports;
  std::vector<std::shared_ptr<ibv_context>> contexts;  // context of each port
  std::string reason;                                  // why there are none
};

constexpr const char* device_nodes = "/dev/infiniband";
constexpr size_t most_gids = 1024;   // maximum number of GIDs of one device
constexpr uint8_t prefix_bits = 64;  // of a GID or an IPv6 address that name its network
constexpr uint8_t mapped_bits = 96;  // before the IPv4 address in a GID

std::string directory_of(const std::string& device) {
  return "/sys/class/infiniband/" + device + "/device";
}

struct Ipv4Address {
  uint32_t address;
  uint32_t mask;
};

// The IPv4 addresses of a network interface that is up.
std::vector<Ipv4Address> ipv4_addresses(const std::string& name) {
  std::vector<Ipv4Address> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  const auto word = [](const sockaddr* address) {
    return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
  };
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next)
    if (entry->ifa_addr != nullptr && entry->ifa_addr->sa_family == AF_INET &&
        entry->ifa_netmask != nullptr && name == entry->ifa_name &&
        (entry->ifa_flags & IFF_UP) != 0)
      found.push_back({word(entry->ifa_addr), word(entry->ifa_netmask)});
  freeifaddrs(list);
  return found;
}

// The IPoIB interface of a port belongs to the same piece of hardware, and its dev_port counts from
// 0.
uint32_t ipoib_ipv4(const std::string& device, unsigned port) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator("/sys/class/net", ignored)) {
    if (!fs::exists(entry.path() / "device/infiniband" / device, ignored)) continue;
    const Stream file = open_for_reading((entry.path() / "dev_port").c_str());
    unsigned dev_port = 0;
    if (file != nullptr && std::fscanf(file.get(), "%u", &dev_port) != 1) dev_port = 0;
    if (dev_port + 1 != port) continue;
    if (const auto own = ipv4_addresses(entry.path().filename().string()); !own.empty())
      return own[0].address;
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

PortGid row_of(const ibv_gid_entry& entry) {
  PortGid row{entry.gid_index, type_of(entry.gid_type), entry.gid};
  const uint32_t ipv4 = ipv4_of(row.gid);
  if (ipv4 == 0) row.network_bits = prefix_bits;
  char interface[IF_NAMESIZE] = "";
  if (if_indextoname(entry.ndev_ifindex, interface) == nullptr) return row;
  for (const Ipv4Address& own : ipv4_addresses(interface)) {
    if (row.interface_ipv4 == 0) row.interface_ipv4 = own.address;
    if (ipv4 != 0 && ((own.address ^ ipv4) & own.mask) == 0)
      row.network_bits = static_cast<uint8_t>(mapped_bits + std::popcount(own.mask));
  }
  return row;
}

void describe_device(ibv_context* context, const std::string& name, PortList& list,
                     const std::shared_ptr<ibv_context>& owner) {
  ibv_device_attr attributes{};
  if (const int error = ibv_query_device(context, &attributes); error != 0) {
    PortDescription port;
    port.device = name;
    port.fault = text_of("device ", name, ": its limits cannot be read (", strerror(error), ")");
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
          text_of(port_name(name, number), ": its state cannot be read (", strerror(error), ")");
    port.state = state.state;
    port.is_ethernet = state.link_layer == IBV_LINK_LAYER_ETHERNET;
    port.is_near = is_near(directory_of(name));
    for (const ibv_gid_entry& row : rows)
      if (row.port_num == number) port.gids.push_back(row_of(row));
    if (!port.is_ethernet) port.ipoib_ipv4 = ipoib_ipv4(name, number);
    list.ports.push_back(std::move(port));
    list.contexts.push_back(owner);
  }
}

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

constexpr uint8_t most_hops = 64;
constexpr uint16_t pkey_membership_bit =
    0x8000;  // full or limited: either can talk to full members

// Whether on-demand paging works for the RC operations that use memory of the application.
bool pages_on_demand(const ibv_odp_caps& device) noexcept {
  constexpr uint32_t needed = IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_WRITE;
  return (device.general_caps & IBV_ODP_SUPPORT) != 0 &&
         (device.per_transport_caps.rc_odp_caps & needed) == needed;
}

}  // namespace

CompletionEvents::~CompletionEvents() {
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
}

bool CompletionEvents::open(ibv_context* context, std::string& reason) {
  channel_ = ibv_create_comp_channel(context);
  if (channel_ != nullptr) {
    const int flags = fcntl(channel_->fd, F_GETFL);
    if (flags >= 0 && fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) == 0) return true;
  }
  reason = text_of("no channel for completions (", strerror(errno), ")");
  return false;
}

void CompletionEvents::drain() noexcept {
  constexpr unsigned most_events = 4096;  // more than the queues of a process
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  for (unsigned i = 0; i < most_events && ibv_get_cq_event(channel_, &queue, &context) == 0; ++i)
    ibv_ack_cq_events(queue, 1);
}

std::unique_ptr<VerbsDevice> VerbsDevice::open(const VerbsPortWish& wish, std::string& reason) {
  const StandardDescriptorsTaken taken;
  // Memory that is registered stays ours when the application forks; a matter of old kernels.
  ibv_fork_init();
  PortList list = list_ports(wish.device.substr(0, wish.device.rfind(':')));
  if (list.ports.empty() && !wish.device.empty()) list = list_ports("");
  const PortChoice choice = choose_port(list.ports, wish);
  if (!choice.found) {
    reason = list.reason.empty() ? choice.reason : list.reason;
    return nullptr;
  }
  const PortDescription& port = list.ports[choice.index];
  const PortGid& row = port.gids[choice.gid_row];
  const std::string name = port_name(port.device, port.port);

  std::unique_ptr<VerbsDevice> device(new VerbsDevice);
  device->owner = list.contexts[choice.index];
  device->context = device->owner.get();
  device->port = port.port;
  device->is_roce = port.is_ethernet;
  device->gid_index = static_cast<uint8_t>(row.index);
  device->gid = row.gid;
  device->network_bits = row.network_bits;
  device->directory = directory_of(port.device);
  device->nid = choice.nid;
  device->service_level = wish.service_level;
  device->traffic_class = wish.traffic_class;

  ibv_port_attr state{};
  if (const int error = ibv_query_port(device->context, port.port, &state); error != 0)
    return explained(nullptr, reason, verbs_failure(name, "ibv_query_port", error));
  device->lid = state.lid;
  device->mtu = std::clamp(state.active_mtu, IBV_MTU_256, IBV_MTU_4096);
  device->max_message_bytes = state.max_msg_sz;
  ibv_device_attr_ex attributes{};
  if (const int error = ibv_query_device_ex(device->context, nullptr, &attributes); error != 0)
    return explained(nullptr, reason, verbs_failure(name, "ibv_query_device", error));
  device->attributes = attributes.orig_attr;
  device->has_on_demand_paging = pages_on_demand(attributes.odp_caps);
  if (!device->find_pkey(wish.pkey, state.pkey_tbl_len, name, reason)) return nullptr;
  device->pd = ibv_alloc_pd(device->context);
  if (device->pd == nullptr)
    return explained(nullptr, reason, verbs_failure(name, "ibv_alloc_pd", errno));
  std::string why;
  if (!device->events.open(device->context, why) ||
      !device->async_events.open(device->context, port.device, port.port, why))
    return explained(nullptr, reason, text_of(name, ": ", why));
  device->name_ = name;
  device->description_ = text_of(name, " (", choice.reason, "), ", gid_text(row), ", MTU ",
                                 device->mtu_bytes(), port.is_near ? ", near" : ", far");
  return device;
}

VerbsDevices VerbsDevice::open_all(const VerbsPortWish& wish, std::string& reason) {
  VerbsDevices devices{open(wish, reason)};
  if (devices[0] == nullptr) return {};
  std::vector<std::string> names = wish.further;
  const bool chooses = wish.device.empty() && wish.most_ports > 1;
  VerbsPortWish further = wish;
  if (chooses) {
    const std::vector<PortDescription> ports = list_ports("").ports;
    further.device = nearest_port(ports, devices[0]->name(), wish.local_rank);
    further.reason = "one of the near active ports";
    if (wish.nid == 0 && further.device != devices[0]->name())
      if (std::shared_ptr<VerbsDevice> near = open(further, reason); near != nullptr) {
        // The address of the first active port names the node, for all its processes.
        near->nid = devices[0]->nid;
        devices[0] = std::move(near);
      }
    names = further_ports(ports, devices[0]->name(), wish.most_ports);
    further.reason = "another active port";
  }
  for (const std::string& name : names) {
    further.device = name;
    std::shared_ptr<VerbsDevice> device = open(further, reason);
    if (device != nullptr && device->is_roce != devices[0]->is_roce)
      return explained(VerbsDevices{}, reason,
                       text_of(name, " and ", devices[0]->name(), " are of different networks"));
    if (device != nullptr)
      devices.push_back(std::move(device));
    else if (!chooses)
      return {};
  }
  for (const auto& device : devices) device->is_one_of_several = devices.size() > 1;
  return devices;
}

VerbsDevice::~VerbsDevice() {
  if (pd != nullptr) ibv_dealloc_pd(pd);
}

bool VerbsDevice::find_pkey(uint16_t wanted, unsigned table_rows, const std::string& name,
                            std::string& reason) {
  for (unsigned i = 0; i < table_rows; ++i) {
    __be16 value = 0;
    if (ibv_query_pkey(context, port, static_cast<int>(i), &value) != 0) continue;
    const uint16_t pkey = static_cast<uint16_t>(value << 8 | value >> 8);
    if (((pkey ^ wanted) & ~pkey_membership_bit) != 0) continue;
    pkey_index = static_cast<uint16_t>(i);
    return true;
  }
  char text[8];
  std::snprintf(text, sizeof text, "0x%04x", wanted);
  reason =
      text_of(name, " does not belong to the partition ", text,
              " (PTL_VERBS_PKEY); /sys/class/infiniband/*/ports/*/pkeys lists those it belongs to");
  return false;
}

void VerbsDevice::fill_address(ibv_ah_attr& attributes, const ibv_gid& remote,
                               uint16_t remote_lid) const noexcept {
  attributes = {};
  attributes.port_num = port;
  attributes.sl = service_level;
  attributes.dlid = remote_lid;
  if (!needs_grh(remote)) return;
  attributes.is_global = 1;
  attributes.grh.dgid = remote;
  attributes.grh.sgid_index = gid_index;
  attributes.grh.hop_limit = most_hops;
  attributes.grh.traffic_class = traffic_class;
}

bool VerbsDevice::needs_grh(const ibv_gid& remote) const noexcept {
  return is_roce || remote.global.subnet_prefix != gid.global.subnet_prefix;
}

std::string verbs_failure(const std::string& name, const char* what, int error) {
  return text_of(name, ": ", what, " failed (", strerror(error), ")", error == ENOMEM ? "; " : "",
                 error == ENOMEM ? locked_memory_advice() : "");
}

std::string registration_failure(const char* what, size_t bytes, int error) {
  const bool limited = error == ENOMEM || error == EAGAIN;
  return text_of("the device did not register ", (bytes + 1023) / 1024, " KiB of memory for ", what,
                 " (", strerror(error), ")", limited ? "; " : "",
                 limited ? locked_memory_advice() : "");
}

// Reading events and passing them on. Connection path.
bool AsyncEvents::open(ibv_context* context, const std::string& name, uint8_t port,
                       std::string& reason) {
  context_ = context;
  name_ = name;
  port_ = port;
  const int flags = fcntl(context->async_fd, F_GETFL);
  if (flags >= 0 && fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) == 0) return true;
  reason = text_of("its events cannot be read without waiting (", strerror(errno), ")");
  return false;
}

void AsyncEvents::add(AsyncEventSink& sink) {
  const LockGuard guard(mutex_);
  sinks_.push_back(&sink);
}

void AsyncEvents::remove(AsyncEventSink& sink) noexcept {
  const LockGuard guard(mutex_);
  sinks_.erase(std::remove(sinks_.begin(), sinks_.end(), &sink), sinks_.end());
}

void AsyncEvents::dispatch() noexcept {
  constexpr unsigned most_events = 256;
  ibv_async_event event;
  // The descriptor stays readable while there are more.
  for (unsigned i = 0; i < most_events && ibv_get_async_event(context_, &event) == 0; ++i) {
    log_event(event);
    follow_port(event);
    {
      const LockGuard guard(mutex_);
      for (AsyncEventSink* const sink : sinks_) sink->on_async_event(event);
    }
    ibv_ack_async_event(&event);
  }
}

// Events, since ibv_query_port() may wait in the kernel while a network interface is changed.
void AsyncEvents::follow_port(const ibv_async_event& event) noexcept {
  const bool is_up = event.event_type == IBV_EVENT_PORT_ACTIVE;
  if ((is_up || event.event_type == IBV_EVENT_PORT_ERR) && event.element.port_num == port_)
    is_up_.store(is_up, std::memory_order_relaxed);
}

void AsyncEvents::log_event(const ibv_async_event& event) const noexcept {
  switch (event.event_type) {
    case IBV_EVENT_PORT_ERR:
      log_message(LogLevel::warn,
                  "verbs: port %d of %s is down: messages wait, and fail in the end",
                  event.element.port_num, name_.c_str());
      return;
    case IBV_EVENT_PORT_ACTIVE:
      log_message(LogLevel::warn, "verbs: port %d of %s is up again", event.element.port_num,
                  name_.c_str());
      return;
    case IBV_EVENT_DEVICE_FATAL:
      log_message(LogLevel::error,
                  "verbs: device %s has failed: nothing can be sent through it any more",
                  name_.c_str());
      return;
    case IBV_EVENT_CQ_ERR:
      log_message(LogLevel::error, "verbs: a completion queue of %s has overflowed", name_.c_str());
      return;
    case IBV_EVENT_SRQ_ERR:
      log_message(LogLevel::error,
                  "verbs: a queue of receive buffers of %s has failed: messages go as datagrams",
                  name_.c_str());
      return;
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
      log_message(
          LogLevel::warn,
          "verbs: port %d of %s has been given another %s: if that was the one in use, peers are "
          "lost and the job must be started again",
          event.element.port_num, name_.c_str(),
          event.event_type == IBV_EVENT_LID_CHANGE   ? "LID"
          : event.event_type == IBV_EVENT_GID_CHANGE ? "GID"
                                                     : "P_Key");
      return;
    default:
      log_message(LogLevel::debug, "verbs: event %d of %s", static_cast<int>(event.event_type),
                  name_.c_str());
  }
}

}  // namespace lintel
