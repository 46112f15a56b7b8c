// Chooses ports by the configuration, and opens what is over them. Set-up path.
#include "wiring/device_choice.h"

#include <charconv>
#include <utility>
#include <vector>

#include "registration/watched_cache.h"
#include "util/config.h"
#include "util/config_parse.h"
#include "util/local_rank.h"
#include "util/log.h"
#include "util/module.h"
#include "util/new_descriptor.h"
#include "util/text.h"

namespace lintel {

namespace {

const DpdkModule* dpdk_module(std::string& reason) {
  return static_cast<const DpdkModule*>(load_module("dpdk", reason));
}

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

// Returns how many ports that value of PTL_RAILS permits: a list names interfaces of UDP.
unsigned most_ports(const std::string& rails) {
  if (rails == "auto") return most_rails;
  unsigned most = 1;
  const auto [end, error] = std::from_chars(rails.data(), rails.data() + rails.size(), most);
  return error == std::errc{} && end == rails.data() + rails.size() ? most : 1;
}

VerbsPortWish configured_port(uint32_t nid) {
  VerbsPortWish wish;
  std::vector<std::string> devices = split_words(config_string(ConfigKey::verbs_device), '+');
  if (!devices.empty()) {
    wish.device = devices.front();
    wish.further.assign(devices.begin() + 1, devices.end());
  }
  wish.most_ports = most_ports(config_string(ConfigKey::rails));
  wish.local_rank = find_local_rank().rank;
  wish.nid = nid;
  if (const std::optional<uint64_t> index = config_optional(ConfigKey::verbs_gid_index))
    wish.gid_index = static_cast<int>(*index);
  wish.pkey = static_cast<uint16_t>(config_u64(ConfigKey::verbs_pkey));
  wish.service_level = static_cast<uint8_t>(config_u64(ConfigKey::verbs_service_level));
  wish.traffic_class = static_cast<uint8_t>(config_u64(ConfigKey::verbs_traffic_class));
  return wish;
}

}  // namespace

DpdkChoice choose_dpdk_port(const std::string& list, uint32_t local_rank,
                            const std::string& rank_origin) {
  const std::vector<std::string> ports = split_words(list, ';');
  DpdkChoice choice;
  if (ports.empty()) return choice;
  const std::string place = text_of("process ", local_rank, " of its node (", rank_origin, ")");
  if (local_rank >= ports.size()) {
    choice.reason =
        text_of("PTL_DPDK_PORTS lists ", ports.size(), ports.size() == 1 ? " port" : " ports",
                ", counted from 0, and this is ", place);
    return choice;
  }
  std::vector<std::string> own = split_words(ports[local_rank], '+');
  choice.reason = own.size() > most_rails
                      ? text_of("PTL_DPDK_PORTS lists ", own.size(),
                                " ports for one process, more than ", most_rails)
                      : text_of(own.size() == 1 ? "the port of " : "the ports of ", place);
  if (own.size() <= most_rails) choice.settings.ports = std::move(own);
  return choice;
}

DpdkChoice configured_dpdk() {
  const LocalRank local = find_local_rank();
  DpdkChoice choice =
      choose_dpdk_port(config_string(ConfigKey::dpdk_ports), local.rank, local.origin);
  choice.settings.eal_arguments = config_string(ConfigKey::dpdk_eal);
  choice.settings.mtu = static_cast<uint32_t>(config_u64(ConfigKey::dpdk_mtu));
  choice.settings.ring = static_cast<uint32_t>(config_u64(ConfigKey::dpdk_ring));
  return choice;
}

std::string why_not_dpdk(const DpdkChoice& choice) {
  if (choice.settings.ports.empty()) return choice.reason;
  std::string text;
  const DpdkModule* const module = dpdk_module(text);
  if (module == nullptr) return text;
  for (const std::string& port : choice.settings.ports)
    if (!module->examine(port, text)) return text;
  return "";
}

std::string describe_dpdk(const DpdkChoice& choice) {
  std::string text;
  const DpdkModule* const module = dpdk_module(text);
  if (module == nullptr) return text;
  std::string all;
  for (const std::string& port : choice.settings.ports) {
    if (!module->examine(port, text)) return text;
    all.append(text).append(", ");
  }
  return all + choice.reason;
}

OpenStatus open_dpdk_link(const DpdkChoice& choice, ProcessId id, std::unique_ptr<PacketLink>& link,
                          std::string& reason) {
  const DpdkModule* const module = dpdk_module(reason);
  if (module == nullptr) return OpenStatus::failed;
  DpdkSettings settings = choice.settings;
  settings.id = id;
  return module->open(settings, link, reason);
}

VerbsChoice configured_verbs(uint32_t nid) {
  VerbsChoice choice;
  if (!node_has_devices()) {
    const std::string& wanted = config_string(ConfigKey::verbs_device);
    if (!wanted.empty()) choice.reason = "PTL_VERBS_DEVICE=" + wanted + ", but " + no_verbs_devices;
    return choice;
  }
  VerbsSettings& settings = choice.settings;
  settings.port = configured_port(nid);
  if (settings.port.further.size() >= most_rails) {
    choice.reason = text_of("PTL_VERBS_DEVICE names ", settings.port.further.size() + 1,
                            " ports, more than ", most_rails);
    return choice;
  }
  settings.max_rc = static_cast<uint32_t>(config_u64(ConfigKey::verbs_max_rc));
  settings.receive_buffers = static_cast<uint32_t>(config_u64(ConfigKey::verbs_receive_buffers));
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
