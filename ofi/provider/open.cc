#include "provider/open.h"

#include <cstring>
#include <new>

#include "address/address_vector.h"
#include "base/limits.h"
#include "base/provider.h"
#include "base/unsupported.h"
#include "completion/completion_queue.h"
#include "completion/counter.h"
#include "domain/domain.h"
#include "endpoint/endpoint.h"
#include "endpoint/scalable_endpoint.h"
#include "endpoint/transmit_context.h"
#include "fabric/event_queue.h"
#include "fabric/fabric.h"
#include "memory/memory_region.h"
#include "transfer/atomic.h"
#include "transfer/deferred.h"
#include "transfer/dispatch.h"
#include "transfer/peer_check.h"
#include "transfer/tables.h"

namespace lintel::ofi {
namespace {

int open_domain_with_flags(fid_fabric* fabric, fi_info* info, fid_domain** result, uint64_t flags,
                           void* context) {
  return flags == 0 ? open_domain(fabric, info, result, context) : -FI_EINVAL;
}

int open_endpoint_with_flags(fid_domain* domain, fi_info* info, fid_ep** result, uint64_t flags,
                             void* context) {
  return flags == 0 ? open_endpoint(domain, info, result, context) : -FI_EINVAL;
}

int open_scalable_endpoint(fid_domain* domain, fi_info* info, fid_ep** result, void* context);
int open_receive_context(fid_domain* domain, fi_rx_attr* attr, fid_ep** result, void* context);

int try_wait(fid_fabric*, Object** objects, int count) {
  for (int i = 0; i < count; ++i) {
    int code = -FI_EINVAL;
    if (objects[i]->fclass == FI_CLASS_CQ) code = CompletionQueue::of(objects[i]).try_wait();
    if (objects[i]->fclass == FI_CLASS_CNTR) code = Counter::of(objects[i]).try_wait();
    if (objects[i]->fclass == FI_CLASS_EQ) code = EventQueue::of(objects[i]).try_wait();
    if (code != 0) return code;
  }
  return 0;
}

fi_ops_fabric fabric_calls = {.size = sizeof(fi_ops_fabric),
                              .domain = open_domain,
                              .passive_ep = unsupported(&fi_ops_fabric::passive_ep),
                              .eq_open = EventQueue::open,
                              .wait_open = unsupported(&fi_ops_fabric::wait_open),
                              .trywait = try_wait,
                              .domain2 = open_domain_with_flags};

fi_ops_domain domain_opens = {.size = sizeof(fi_ops_domain),
                              .av_open = AddressVector::open,
                              .cq_open = CompletionQueue::open,
                              .endpoint = open_endpoint,
                              .scalable_ep = open_scalable_endpoint,
                              .cntr_open = Counter::open,
                              .poll_open = unsupported(&fi_ops_domain::poll_open),
                              .stx_ctx = TransmitContext::open,
                              .srx_ctx = open_receive_context,
                              .query_atomic = query_atomic,
                              .query_collective = unsupported(&fi_ops_domain::query_collective),
                              .endpoint2 = open_endpoint_with_flags};
fi_ops_mr region_calls = {.size = sizeof(fi_ops_mr),
                          .reg = MemoryRegion::register_one,
                          .regv = MemoryRegion::register_several,
                          .regattr = MemoryRegion::register_described};
const DomainCalls domain_calls = {&domain_opens, &region_calls, dispatch, check_peers,
                                  control_work};

const EndpointCalls endpoint_calls = {.general = &endpoint_ops,
                                      .names = &name_ops,
                                      .message = &message_ops,
                                      .memory = &memory_ops,
                                      .tagged = &tagged_ops,
                                      .atomic = &atomic_ops,
                                      .collective = &collective_ops};

const EndpointCalls sharing_calls = {.general = &endpoint_ops,
                                     .names = &name_ops,
                                     .message = &message_send_ops,
                                     .memory = &memory_ops,
                                     .tagged = &tagged_send_ops,
                                     .atomic = &atomic_ops,
                                     .collective = &collective_ops};

const EndpointCalls receive_context_calls = {.general = &endpoint_ops,
                                             .names = &name_ops,
                                             .message = &message_receive_ops,
                                             .memory = &no_memory_ops,
                                             .tagged = &tagged_receive_ops,
                                             .atomic = &no_atomic_ops,
                                             .collective = &collective_ops};

// fi_srx_context.
int open_receive_context(fid_domain* domain, fi_rx_attr* attr, fid_ep** result, void* context) {
  fi_info info{};
  info.caps = attr != nullptr ? attr->caps : receive_caps;
  info.mode = attr != nullptr ? attr->mode : 0;
  info.rx_attr = attr;
  auto* const opened = new (std::nothrow) Endpoint(Domain::of(domain), info, receive_context_calls,
                                                   context, {.role = Role::shared_receive});
  if (opened == nullptr) return -FI_ENOMEM;
  if (const int code = opened->open_shared(); code != 0) {
    (void)opened->close();
    return code;
  }
  *result = opened;
  return 0;
}

int open_scalable_endpoint(fid_domain* domain, fi_info* info, fid_ep** result, void* context) {
  if (info == nullptr) return -FI_EINVAL;
  return ScalableEndpoint::open(Domain::of(domain), *info, endpoint_calls, result, context);
}

}  // namespace

int open_fabric(fi_fabric_attr* attr, fid_fabric** result, void* context) noexcept {
  if (attr->name != nullptr && strcmp(attr->name, provider_name) != 0) {
    FI_INFO(provider(), FI_LOG_FABRIC, "there is no fabric %s\n", attr->name);
    return -FI_ENODATA;
  }
  auto* const fabric = new (std::nothrow) Fabric(attr->api_version, fabric_calls, context);
  if (fabric == nullptr) return -FI_ENOMEM;
  *result = fabric;
  return 0;
}

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** result, void* context) noexcept {
  if (info->domain_attr == nullptr) return -FI_EINVAL;
  auto* const domain = new (std::nothrow) Domain(Fabric::of(fabric), *info, domain_calls, context);
  if (domain == nullptr) return -FI_ENOMEM;
  if (const int code = domain->open(); code != 0) {
    (void)domain->close();
    return code;
  }
  *result = domain;
  return 0;
}

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** result, void* context) noexcept {
  if (info == nullptr || (info->ep_attr != nullptr && info->ep_attr->type != FI_EP_RDM &&
                          info->ep_attr->type != FI_EP_UNSPEC)) {
    FI_WARN(provider(), FI_LOG_EP_CTRL, "Only endpoints of type FI_EP_RDM can be opened.\n");
    return -FI_EINVAL;
  }
  const bool shares = info->ep_attr != nullptr && info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
  auto* const endpoint = new (std::nothrow)
      Endpoint(Domain::of(domain), *info, shares ? sharing_calls : endpoint_calls, context);
  if (endpoint == nullptr) return -FI_ENOMEM;
  *result = endpoint;
  return 0;
}

}  // namespace lintel::ofi
