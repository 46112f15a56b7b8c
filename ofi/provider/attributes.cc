#include "provider/attributes.h"

#include <algorithm>
#include <cstring>

#include <rdma/fi_errno.h>

#include "base/limits.h"
#include "base/provider.h"
#include "domain/region_table.h"
#include "provider/getinfo.h"

namespace lintel::ofi {
namespace {

constexpr uint64_t send_caps = FI_SEND | FI_RECV;
constexpr uint64_t memory_caps = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

// Without one of the modifiers of a kind of transfer, all of them are meant (man fi_getinfo). What
// costs nothing and changes nothing is added.
uint64_t complete_caps(uint64_t asked) noexcept {
  if (asked == 0) return all_caps;
  uint64_t caps = asked | domain_caps;
  if ((asked & transfer_caps) == 0) caps |= transfer_caps;
  if ((caps & (FI_MSG | FI_TAGGED)) != 0 && (asked & send_caps) == 0) caps |= send_caps;
  if ((caps & (FI_RMA | FI_ATOMIC)) != 0 && (asked & memory_caps) == 0) caps |= memory_caps;
  if ((caps & FI_MSG) != 0 && (caps & FI_RECV) != 0) caps |= FI_MULTI_RECV;
  return caps;
}

void fill_transmit(const fi_tx_attr* hints, const fi_info& info, fi_tx_attr& attr) noexcept {
  attr.caps = info.caps & transmit_caps;
  attr.mode = info.mode;
  attr.op_flags = hints != nullptr ? hints->op_flags : 0;
  attr.msg_order = message_order;
  attr.comp_order = FI_ORDER_NONE;
  attr.inject_size = inject_bytes;
  attr.size = most_transmits;
  attr.iov_limit = most_segments;
  attr.rma_iov_limit = most_segments;
}

void fill_receive(const fi_rx_attr* hints, const fi_info& info, fi_rx_attr& attr) noexcept {
  attr.caps = info.caps & receive_caps;
  attr.mode = info.mode;
  attr.op_flags = hints != nullptr ? hints->op_flags : 0;
  attr.msg_order = message_order;
  attr.comp_order = FI_ORDER_NONE;
  attr.total_buffered_recv = 0;
  attr.size = std::max(hints != nullptr ? hints->size : 0, most_receives);
  attr.iov_limit = most_segments;
}

size_t contexts_in(const fi_ep_attr* hints, size_t fi_ep_attr::*contexts) noexcept {
  return hints != nullptr ? std::max<size_t>(hints->*contexts, 1) : 1;
}

void fill_endpoint(const fi_ep_attr* hints, fi_ep_attr& attr) noexcept {
  attr.type = FI_EP_RDM;
  attr.protocol = protocol;
  attr.protocol_version = protocol_version;
  attr.max_msg_size = most_message_bytes;
  attr.max_order_raw_size = ordered_bytes;
  attr.max_order_war_size = ordered_bytes;
  attr.max_order_waw_size = ordered_bytes;
  attr.mem_tag_format = tag_format;
  attr.tx_ctx_cnt = contexts_in(hints, &fi_ep_attr::tx_ctx_cnt);
  attr.rx_ctx_cnt = contexts_in(hints, &fi_ep_attr::rx_ctx_cnt);
}

void fill_domain(uint32_t api_version, const fi_domain_attr* hints, const fi_info& info,
                 fi_domain_attr& attr) noexcept {
  static constexpr fi_domain_attr nothing{};
  const fi_domain_attr& asked = hints != nullptr ? *hints : nothing;
  const auto or_else = [](auto value, auto other) { return value != 0 ? value : other; };
  attr.domain = asked.domain;
  attr.threading = or_else(asked.threading, FI_THREAD_SAFE);
  attr.control_progress = or_else(asked.control_progress, FI_PROGRESS_AUTO);
  attr.data_progress = or_else(asked.data_progress, FI_PROGRESS_MANUAL);
  attr.resource_mgmt = or_else(asked.resource_mgmt, FI_RM_ENABLED);
  attr.av_type = or_else(asked.av_type, FI_AV_MAP);
  attr.mr_mode = registration_mode(api_version, asked.mr_mode, info.caps);
  attr.mr_key_size = key_bytes;
  attr.cq_data_size = data_bytes;
  attr.cq_cnt = most_queues;
  attr.ep_cnt = most_endpoints;
  attr.tx_ctx_cnt = most_endpoints;
  attr.rx_ctx_cnt = most_endpoints;
  attr.max_ep_tx_ctx = most_contexts;
  attr.max_ep_rx_ctx = most_contexts;
  attr.max_ep_stx_ctx = most_endpoints;
  attr.max_ep_srx_ctx = most_endpoints;
  attr.cntr_cnt = most_queues;
  attr.mr_iov_limit = most_segments;
  attr.caps = info.caps & domain_caps;
  attr.max_err_data = FI_NAME_MAX;
  attr.mr_cnt = most_regions;
}

}  // namespace

int fill_attributes(uint32_t api_version, const fi_info* hints, fi_info& info) noexcept {
  info.caps = complete_caps(hints != nullptr ? hints->caps : 0);
  // Operations are described in the context if it has room; otherwise, in memory of the provider.
  info.mode = hints != nullptr ? hints->mode & FI_CONTEXT2 : 0;
  info.addr_format = address_format;
  if (hints != nullptr && hints->addr_format == FI_ADDR_STR) info.addr_format = FI_ADDR_STR;
  fill_transmit(hints != nullptr ? hints->tx_attr : nullptr, info, *info.tx_attr);
  fill_receive(hints != nullptr ? hints->rx_attr : nullptr, info, *info.rx_attr);
  fill_endpoint(hints != nullptr ? hints->ep_attr : nullptr, *info.ep_attr);
  fill_domain(api_version, hints != nullptr ? hints->domain_attr : nullptr, info,
              *info.domain_attr);
  if (hints != nullptr && hints->fabric_attr != nullptr)
    info.fabric_attr->fabric = hints->fabric_attr->fabric;
  info.fabric_attr->prov_version = provider_version;
  info.domain_attr->name = strdup(provider_name);
  info.fabric_attr->name = strdup(provider_name);
  // The core sets the name of the provider.
  const bool enough = info.domain_attr->name != nullptr && info.fabric_attr->name != nullptr;
  return enough ? 0 : -FI_ENOMEM;
}

}  // namespace lintel::ofi
