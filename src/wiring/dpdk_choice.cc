// From the list of ports to a link. Set-up path.
#include "wiring/dpdk_choice.h"

#include <vector>

#include "util/config.h"
#include "util/local_rank.h"
#include "util/module.h"

namespace lintel {

namespace {

std::vector<std::string> split_ports(const std::string& list) {
  std::vector<std::string> ports;
  for (size_t from = 0; from <= list.size();) {
    const size_t end = std::min(list.find(';', from), list.size());
    const std::string item = list.substr(from, end - from);
    const size_t first = item.find_first_not_of(" \t\n");
    if (first != std::string::npos)
      ports.push_back(item.substr(first, item.find_last_not_of(" \t\n") - first + 1));
    from = end + 1;
  }
  return ports;
}

const DpdkModule* dpdk_module(std::string& reason) {
  return static_cast<const DpdkModule*>(load_module("dpdk", reason));
}

}  // namespace

DpdkChoice choose_dpdk_port(const std::string& list, uint32_t local_rank,
                            const std::string& rank_origin) {
  const std::vector<std::string> ports = split_ports(list);
  DpdkChoice choice;
  if (ports.empty()) return choice;
  const std::string place =
      "process " + std::to_string(local_rank) + " of its node (" + rank_origin + ")";
  if (local_rank < ports.size()) {
    choice.port = ports[local_rank];
    choice.reason = "the port of " + place;
  } else {
    choice.reason = "PTL_DPDK_PORTS lists " + std::to_string(ports.size()) +
                    (ports.size() == 1 ? " port" : " ports") + ", counted from 0, and this is " +
                    place;
  }
  return choice;
}

DpdkChoice configured_dpdk() {
  const LocalRank local = find_local_rank();
  DpdkChoice choice =
      choose_dpdk_port(config_string(ConfigKey::dpdk_ports), local.rank, local.origin);
  choice.eal_arguments = config_string(ConfigKey::dpdk_eal);
  choice.mtu = static_cast<uint32_t>(config_u64(ConfigKey::dpdk_mtu));
  choice.ring = static_cast<uint32_t>(config_u64(ConfigKey::dpdk_ring));
  choice.pause_us = config_u64(ConfigKey::dpdk_pause_us);
  return choice;
}

std::string why_not_dpdk(const DpdkChoice& choice) {
  if (choice.port.empty()) return choice.reason;
  std::string text;
  const DpdkModule* const module = dpdk_module(text);
  if (module == nullptr) return text;
  return module->examine(choice.port, text) ? "" : text;
}

std::string describe_dpdk(const DpdkChoice& choice) {
  std::string text;
  const DpdkModule* const module = dpdk_module(text);
  if (module != nullptr && module->examine(choice.port, text))
    text.append(", ").append(choice.reason);
  return text;
}

OpenStatus open_dpdk_link(const DpdkChoice& choice, ProcessId id, std::unique_ptr<PacketLink>& link,
                          std::string& reason) {
  const DpdkModule* const module = dpdk_module(reason);
  if (module == nullptr) return OpenStatus::failed;
  DpdkSettings settings;
  settings.id = id;
  settings.port = choice.port;
  settings.eal_arguments = choice.eal_arguments;
  settings.mtu = choice.mtu;
  settings.ring = choice.ring;
  settings.pause_ns = choice.pause_us * 1000;
  return module->open(settings, link, reason);
}

}  // namespace lintel
