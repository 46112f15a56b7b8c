// Chooses a port of the list and opens a link. Set-up path.
#include "wiring/dpdk_choice.h"

#include <vector>

#include "util/config.h"
#include "util/config_parse.h"
#include "util/local_rank.h"
#include "util/module.h"
#include "util/text.h"

namespace lintel {

namespace {

const DpdkModule* dpdk_module(std::string& reason) {
  return static_cast<const DpdkModule*>(load_module("dpdk", reason));
}

}  // namespace

DpdkChoice choose_dpdk_port(const std::string& list, uint32_t local_rank,
                            const std::string& rank_origin) {
  const std::vector<std::string> ports = split_words(list, ';');
  DpdkChoice choice;
  if (ports.empty()) return choice;
  const std::string place = text_of("process ", local_rank, " of its node (", rank_origin, ")");
  if (local_rank < ports.size()) choice.settings.port = ports[local_rank];
  choice.reason = local_rank < ports.size() ? "the port of " + place
                                            : text_of("PTL_DPDK_PORTS lists ", ports.size(),
                                                      ports.size() == 1 ? " port" : " ports",
                                                      ", counted from 0, and this is ", place);
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
  if (choice.settings.port.empty()) return choice.reason;
  std::string text;
  const DpdkModule* const module = dpdk_module(text);
  if (module == nullptr) return text;
  return module->examine(choice.settings.port, text) ? "" : text;
}

std::string describe_dpdk(const DpdkChoice& choice) {
  std::string text;
  const DpdkModule* const module = dpdk_module(text);
  if (module != nullptr && module->examine(choice.settings.port, text))
    text.append(", ").append(choice.reason);
  return text;
}

OpenStatus open_dpdk_link(const DpdkChoice& choice, ProcessId id, std::unique_ptr<PacketLink>& link,
                          std::string& reason) {
  const DpdkModule* const module = dpdk_module(reason);
  if (module == nullptr) return OpenStatus::failed;
  DpdkSettings settings = choice.settings;
  settings.id = id;
  return module->open(settings, link, reason);
}

}  // namespace lintel
