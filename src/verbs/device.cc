// Opening the port that was chosen. Set-up path.
#include "verbs/device.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "util/locked_memory.h"
#include "util/text.h"
#include "verbs/port_choice.h"
#include "verbs/port_list.h"

namespace lintel {

namespace {

constexpr uint8_t most_hops = 64;
constexpr uint16_t pkey_membership_bit =
    0x8000;  // full or limited: either can talk to full members

uint32_t bytes_of(ibv_mtu mtu) noexcept {
  return 128u << std::clamp(static_cast<unsigned>(mtu), 1u, 5u);
}

// For what queue pairs (RC) do with memory of the application.
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
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_, &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
}

std::unique_ptr<VerbsDevice> VerbsDevice::open(const VerbsPortWish& wish, std::string& reason) {
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
  device->nid = choice.nid;
  device->service_level = wish.service_level;
  device->traffic_class = wish.traffic_class;

  ibv_port_attr state{};
  if (const int error = ibv_query_port(device->context, port.port, &state); error != 0) {
    reason = verbs_failure(name, "ibv_query_port", error);
    return nullptr;
  }
  device->lid = state.lid;
  device->mtu = state.active_mtu;
  device->mtu_bytes = bytes_of(state.active_mtu);
  device->max_message_bytes = state.max_msg_sz;
  ibv_device_attr_ex attributes{};
  if (const int error = ibv_query_device_ex(device->context, nullptr, &attributes); error != 0) {
    reason = verbs_failure(name, "ibv_query_device", error);
    return nullptr;
  }
  device->attributes = attributes.orig_attr;
  device->has_on_demand_paging = pages_on_demand(attributes.odp_caps);
  if (!device->find_pkey(wish.pkey, state.pkey_tbl_len, name, reason)) return nullptr;
  device->pd = ibv_alloc_pd(device->context);
  if (device->pd == nullptr) {
    reason = verbs_failure(name, "ibv_alloc_pd", errno);
    return nullptr;
  }
  std::string why;
  if (!device->events.open(device->context, why) ||
      !device->async_events.open(device->context, port.device, why)) {
    reason = text_of(name, ": ", why);
    return nullptr;
  }
  device->name_ = name;
  device->description_ =
      text_of(name, " (", choice.reason, "), ", gid_text(row), ", MTU ", device->mtu_bytes);
  return device;
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

bool VerbsDevice::is_active() const noexcept {
  ibv_port_attr state{};
  return ibv_query_port(context, port, &state) == 0 && state.state == IBV_PORT_ACTIVE;
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

}  // namespace lintel
