#include "fabric/fabric.h"

#include <new>

#include <rdma/fi_eq.h>

#include "domain/domain.h"
#include "fabric/event_queue.h"
#include "provider/provider.h"
#include "provider/unsupported.h"

namespace lintel::ofi {
namespace {

fi_ops fabric_object_ops = object_ops(
    [](Object* object) { return Fabric::of(reinterpret_cast<fid_fabric*>(object)).close(); });

int open_domain_with_flags(fid_fabric* fabric, fi_info* info, fid_domain** result, uint64_t flags,
                           void* context) {
  return flags == 0 ? Domain::open(fabric, info, result, context) : -FI_EINVAL;
}

fi_ops_fabric fabric_ops = {.size = sizeof(fi_ops_fabric),
                            .domain = Domain::open,
                            .passive_ep = unsupported(&fi_ops_fabric::passive_ep),
                            .eq_open = EventQueue::open,
                            .wait_open = unsupported(&fi_ops_fabric::wait_open),
                            .trywait = unsupported(&fi_ops_fabric::trywait),
                            .domain2 = open_domain_with_flags};

}  // namespace

Fabric::Fabric(uint32_t api, void* context) noexcept
    : fid_fabric{{FI_CLASS_FABRIC, context, &fabric_object_ops}, &fabric_ops, api} {}

bool Fabric::is_ours(const fid_fabric& fabric) noexcept { return fabric.ops == &fabric_ops; }

int Fabric::close() noexcept {
  if (users_ != 0) {
    FI_WARN(provider(), FI_LOG_FABRIC,
            "%zu domains and event queues of the fabric are open; close them first.\n",
            users_.load());
    return -FI_EBUSY;
  }
  delete this;
  return 0;
}

int open_fabric(fi_fabric_attr* attr, fid_fabric** result, void* context) noexcept {
  if (attr->name != nullptr && strcmp(attr->name, provider_name) != 0) {
    FI_INFO(provider(), FI_LOG_FABRIC, "there is no fabric %s\n", attr->name);
    return -FI_ENODATA;
  }
  auto* const fabric = new (std::nothrow) Fabric(attr->api_version, context);
  if (fabric == nullptr) return -FI_ENOMEM;
  *result = fabric;
  return 0;
}

}  // namespace lintel::ofi
