// Opens a transport over an RDMA device by the configuration. Set-up path.
#include "wiring/verbs_choice.h"

#include "registration/watched_cache.h"
#include "util/config.h"
#include "util/log.h"
#include "util/module.h"
#include "util/new_descriptor.h"

namespace lintel {

namespace {

constexpr const char* device_directory = "/sys/class/infiniband";

bool node_has_devices() {
  const DirectoryStream directory = open_directory(device_directory);
  bool has = false;
  if (directory == nullptr) return has;
  while (const dirent* const entry = readdir(directory.get())) has = has || entry->d_name[0] != '.';
  return has;
}

const VerbsModule* verbs_module(std::string& reason) {
  return static_cast<const VerbsModule*>(load_module("verbs", reason));
}

VerbsPortWish configured_port(uint32_t nid) {
  VerbsPortWish wish;
  wish.device = config_string(ConfigKey::verbs_device);
  wish.nid = nid;
  if (const std::optional<uint64_t> index = config_optional(ConfigKey::verbs_gid_index))
    wish.gid_index = static_cast<int>(*index);
  wish.pkey = static_cast<uint16_t>(config_u64(ConfigKey::verbs_pkey));
  wish.service_level = static_cast<uint8_t>(config_u64(ConfigKey::verbs_service_level));
  wish.traffic_class = static_cast<uint8_t>(config_u64(ConfigKey::verbs_traffic_class));
  return wish;
}

}  // namespace

VerbsChoice configured_verbs(uint32_t nid) {
  VerbsChoice choice;
  if (!node_has_devices()) {
    const std::string& wanted = config_string(ConfigKey::verbs_device);
    if (!wanted.empty()) choice.reason = "PTL_VERBS_DEVICE=" + wanted + ", but " + no_verbs_devices;
    return choice;
  }
  VerbsSettings& settings = choice.settings;
  settings.port = configured_port(nid);
  settings.max_rc = static_cast<uint32_t>(config_u64(ConfigKey::verbs_max_rc));
  settings.receive_buffers = static_cast<uint32_t>(config_u64(ConfigKey::verbs_receive_buffers));
  settings.eager_bytes = static_cast<uint32_t>(config_u64(ConfigKey::verbs_eager_bytes));
  const VerbsModule* const module = verbs_module(choice.reason);
  choice.usable = module != nullptr && module->examine(settings.port, choice.port, choice.reason);
  return choice;
}

OpenStatus open_verbs_transport(const VerbsChoice& choice, ProcessId id,
                                const ReliableSettings& reliable, const Faults& faults,
                                std::unique_ptr<Transport>& transport, std::string& reason) {
  const VerbsModule* const module = verbs_module(reason);
  if (module == nullptr) return OpenStatus::failed;
  VerbsSettings verbs = choice.settings;
  verbs.id = id;
  verbs.reliable = reliable;
  verbs.faults = faults;
  if (reliable.security == NetworkSecurity::encrypted) {
    verbs.max_rc = 0;
    log_message(LogLevel::info,
                "verbs: no connected queue pairs and no RDMA, which cannot be encrypted "
                "(PTL_NETWORK_SECURITY)");
  }
  verbs.registration_cache = &process_registration_cache();
  return module->open(verbs, transport, reason);
}

}  // namespace lintel
