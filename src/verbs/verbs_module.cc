// The entry point of the module. Set-up path.
#include "verbs/verbs_module.h"

#include "verbs/device.h"
#include "verbs/host.h"

namespace lintel {

namespace {

bool examine(const VerbsPortWish& wish, VerbsPort& port, std::string& reason) {
  const std::unique_ptr<VerbsDevice> device = VerbsDevice::open(wish, reason);
  if (device == nullptr) return false;
  port.nid = device->nid;
  port.name = device->name();
  port.text = device->description();
  return true;
}

VerbsStatus open(const VerbsSettings& settings, const VerbsHost& host, std::unique_ptr<Transport>&,
                 std::string& reason) {
  set_log_level(settings.log_level);
  set_verbs_host(host);
  const std::unique_ptr<VerbsDevice> device = VerbsDevice::open(settings.port, reason);
  if (device == nullptr) return VerbsStatus::failed;
  reason = "not built yet";
  return VerbsStatus::failed;
}

}  // namespace

}  // namespace lintel

const void* lintel_verbs_module_1() {
  static const lintel::VerbsModule offer{lintel::examine, lintel::open};
  return &offer;
}
