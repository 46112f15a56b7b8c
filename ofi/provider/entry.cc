// The function that the core of libfabric calls when it has loaded the file. Set-up path.
#include "base/provider.h"
#include "base/settings.h"
#include "domain/network.h"
#include "provider/getinfo.h"
#include "provider/open.h"

namespace lintel::ofi {
namespace {

// Called when the program ends, perhaps with objects open, whose memory goes with the process.
void clean_up() noexcept { Network::finish_process(); }

}  // namespace
}  // namespace lintel::ofi

extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini() {
  using namespace lintel::ofi;
  fi_provider& record = *provider();
  record.version = provider_version;
  record.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
  record.name = provider_name;
  record.getinfo = get_info;
  record.fabric = open_fabric;
  record.cleanup = clean_up;
  read_settings(record);
  return &record;
}
