#include "provider/getinfo.h"

#include <cstring>

#include "base/limits.h"
#include "base/provider.h"
#include "domain/domain.h"
#include "fabric/fabric.h"
#include "provider/attributes.h"
#include "wire/address.h"

namespace lintel::ofi {
namespace {

bool check(bool met, const char* what, uint64_t asked, uint64_t offered) noexcept {
  if (!met)
    FI_INFO(provider(), FI_LOG_CORE, "hints: %s is 0x%llx, and at most 0x%llx is offered\n", what,
            static_cast<unsigned long long>(asked), static_cast<unsigned long long>(offered));
  return met;
}

bool at_most(const char* what, uint64_t asked, uint64_t offered) noexcept {
  return check(asked <= offered, what, asked, offered);
}

bool among(const char* what, uint64_t asked, uint64_t offered) noexcept {
  return check((asked & ~offered) == 0, what, asked, offered);
}

bool same_name(const char* what, const char* asked, const char* offered) noexcept {
  if (asked == nullptr || strcasecmp(asked, offered) == 0) return true;
  FI_INFO(provider(), FI_LOG_CORE, "hints: %s is %s, and %s is offered\n", what, asked, offered);
  return false;
}

bool can_transmit(const fi_tx_attr& hints) noexcept {
  return among("tx_attr->caps", hints.caps, transmit_caps | domain_caps) &&
         among("tx_attr->op_flags", hints.op_flags, transmit_op_flags) &&
         among("tx_attr->msg_order", hints.msg_order, message_order) &&
         among("tx_attr->comp_order", hints.comp_order, 0) &&
         at_most("tx_attr->inject_size", hints.inject_size, inject_bytes) &&
         at_most("tx_attr->size", hints.size, most_transmits) &&
         at_most("tx_attr->iov_limit", hints.iov_limit, most_segments) &&
         at_most("tx_attr->rma_iov_limit", hints.rma_iov_limit, most_segments);
}

bool can_receive(const fi_rx_attr& hints) noexcept {
  return among("rx_attr->caps", hints.caps, receive_caps | domain_caps) &&
         among("rx_attr->op_flags", hints.op_flags, receive_op_flags) &&
         among("rx_attr->msg_order", hints.msg_order, message_order) &&
         among("rx_attr->comp_order", hints.comp_order, 0) &&
         at_most("rx_attr->iov_limit", hints.iov_limit, most_segments);
}

bool can_connect(const fi_ep_attr& hints) noexcept {
  const bool type = hints.type == FI_EP_UNSPEC || hints.type == FI_EP_RDM;
  const bool known = hints.protocol == 0 || hints.protocol == protocol;
  return check(type, "ep_attr->type", hints.type, FI_EP_RDM) &&
         check(known, "ep_attr->protocol", hints.protocol, protocol) &&
         at_most("ep_attr->protocol_version", hints.protocol_version, protocol_version) &&
         at_most("ep_attr->max_msg_size", hints.max_msg_size, most_message_bytes) &&
         at_most("ep_attr->max_order_raw_size", hints.max_order_raw_size, ordered_bytes) &&
         at_most("ep_attr->max_order_war_size", hints.max_order_war_size, ordered_bytes) &&
         at_most("ep_attr->max_order_waw_size", hints.max_order_waw_size, ordered_bytes) &&
         at_most("ep_attr->mem_tag_format", hints.mem_tag_format, tag_bits) &&
         (hints.tx_ctx_cnt == FI_SHARED_CONTEXT ||
          at_most("ep_attr->tx_ctx_cnt", hints.tx_ctx_cnt, most_contexts)) &&
         (hints.rx_ctx_cnt == FI_SHARED_CONTEXT ||
          at_most("ep_attr->rx_ctx_cnt", hints.rx_ctx_cnt, most_contexts)) &&
         at_most("ep_attr->auth_key_size", hints.auth_key_size, 0);
}

bool can_open(const fi_domain_attr& hints) noexcept {
  const bool ours = hints.domain == nullptr || Domain::is_ours(*hints.domain);
  return check(ours, "domain_attr->domain", 1, 0) &&
         same_name("domain_attr->name", hints.name, provider_name) &&
         at_most("domain_attr->threading", hints.threading, FI_THREAD_ENDPOINT) &&
         at_most("domain_attr->control_progress", hints.control_progress, FI_PROGRESS_MANUAL) &&
         at_most("domain_attr->data_progress", hints.data_progress, FI_PROGRESS_MANUAL) &&
         at_most("domain_attr->resource_mgmt", hints.resource_mgmt, FI_RM_ENABLED) &&
         at_most("domain_attr->av_type", hints.av_type, FI_AV_TABLE) &&
         at_most("domain_attr->mr_key_size", hints.mr_key_size, key_bytes) &&
         at_most("domain_attr->cq_data_size", hints.cq_data_size, data_bytes) &&
         at_most("domain_attr->cq_cnt", hints.cq_cnt, most_queues) &&
         at_most("domain_attr->ep_cnt", hints.ep_cnt, most_endpoints) &&
         at_most("domain_attr->tx_ctx_cnt", hints.tx_ctx_cnt, most_endpoints) &&
         at_most("domain_attr->rx_ctx_cnt", hints.rx_ctx_cnt, most_endpoints) &&
         at_most("domain_attr->max_ep_tx_ctx", hints.max_ep_tx_ctx, most_contexts) &&
         at_most("domain_attr->max_ep_rx_ctx", hints.max_ep_rx_ctx, most_contexts) &&
         at_most("domain_attr->max_ep_stx_ctx", hints.max_ep_stx_ctx, most_endpoints) &&
         at_most("domain_attr->max_ep_srx_ctx", hints.max_ep_srx_ctx, most_endpoints) &&
         at_most("domain_attr->cntr_cnt", hints.cntr_cnt, most_queues) &&
         at_most("domain_attr->mr_iov_limit", hints.mr_iov_limit, most_segments) &&
         at_most("domain_attr->mr_cnt", hints.mr_cnt, most_regions) &&
         at_most("domain_attr->auth_key_size", hints.auth_key_size, 0) &&
         among("domain_attr->caps", hints.caps, domain_caps);
}

bool can_reach(const fi_info& hints) noexcept {
  const bool format = hints.addr_format == FI_FORMAT_UNSPEC ||
                      hints.addr_format == address_format || hints.addr_format == FI_ADDR_STR;
  return check(format, "addr_format", hints.addr_format, address_format);
}

bool can_meet(const fi_info& hints) noexcept {
  if (!among("caps", hints.caps, all_caps) || !can_reach(hints)) return false;
  if (hints.tx_attr != nullptr && !can_transmit(*hints.tx_attr)) return false;
  if (hints.rx_attr != nullptr && !can_receive(*hints.rx_attr)) return false;
  if (hints.ep_attr != nullptr && !can_connect(*hints.ep_attr)) return false;
  if (hints.domain_attr != nullptr && !can_open(*hints.domain_attr)) return false;
  if (hints.fabric_attr == nullptr) return true;
  const fid_fabric* const fabric = hints.fabric_attr->fabric;
  return check(fabric == nullptr || Fabric::is_ours(*fabric), "fabric_attr->fabric", 1, 0) &&
         same_name("fabric_attr->name", hints.fabric_attr->name, provider_name);
}

// A node is the text of an address; there are no names of hosts and services.
int set_destination(const char* node, const fi_info* hints, fi_info& info) noexcept {
  Address address;
  if (node != nullptr) {
    if (!parse(node, address)) return -FI_ENODATA;
  } else if (hints != nullptr && hints->dest_addr != nullptr) {
    const bool read = hints->addr_format == FI_ADDR_STR
                          ? parse(static_cast<const char*>(hints->dest_addr), address)
                          : hints->dest_addrlen >= sizeof address;
    if (!read) return -FI_ENODATA;
    if (hints->addr_format != FI_ADDR_STR) memcpy(&address, hints->dest_addr, sizeof address);
  } else {
    return 0;
  }
  if (!address.is_valid()) return -FI_ENODATA;
  const AddressText text(address);
  const bool as_text = info.addr_format == FI_ADDR_STR;
  info.dest_addrlen = as_text ? text.size() + 1 : sizeof address;
  info.dest_addr = malloc(info.dest_addrlen);
  if (info.dest_addr == nullptr) return -FI_ENOMEM;
  memcpy(info.dest_addr, as_text ? static_cast<const void*>(text.c_str()) : &address,
         info.dest_addrlen);
  return 0;
}

}  // namespace

int get_info(uint32_t api_version, const char* node, const char* service, uint64_t flags,
             const fi_info* hints, fi_info** result) noexcept {
  if (hints != nullptr && !can_meet(*hints)) return -FI_ENODATA;
  const bool names_source = (flags & FI_SOURCE) != 0;
  if (node != nullptr && (names_source || service != nullptr)) {
    FI_INFO(provider(), FI_LOG_CORE, "node and service name no address of an endpoint: %s\n", node);
    return -FI_ENODATA;
  }
  if (!names_source && hints != nullptr && hints->src_addr != nullptr) {
    FI_INFO(provider(), FI_LOG_CORE, "hints: src_addr is given, but fi_enable chooses it\n");
    return -FI_ENODATA;
  }
  fi_info* const info = fi_allocinfo();
  if (info == nullptr) return -FI_ENOMEM;
  int code = fill_attributes(api_version, hints, *info);
  if (code == 0) code = set_destination(node, hints, *info);
  if (code != 0) {
    fi_freeinfo(info);
    return code;
  }
  *result = info;
  return 0;
}

}  // namespace lintel::ofi
