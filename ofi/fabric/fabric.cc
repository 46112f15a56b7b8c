#include "fabric/fabric.h"

#include "base/provider.h"
#include "base/unsupported.h"

namespace lintel::ofi {
namespace {

fi_ops fabric_object_ops = object_ops(
    [](Object* object) { return Fabric::of(reinterpret_cast<fid_fabric*>(object)).close(); });

}  // namespace

Fabric::Fabric(uint32_t api, fi_ops_fabric& calls, void* context) noexcept
    : fid_fabric{{FI_CLASS_FABRIC, context, &fabric_object_ops}, &calls, api} {}

bool Fabric::is_ours(const fid_fabric& fabric) noexcept {
  return fabric.fid.ops == &fabric_object_ops;
}

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

}  // namespace lintel::ofi
