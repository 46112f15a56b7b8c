// The facts for programs. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>

#include <nlohmann/json.hpp>

#include "ptl_info/facts.h"

namespace lintel::info {
namespace {

using Json = nlohmann::ordered_json;

Json limits_of(const ptl_ni_limits_t& limits) {
  Json json;
  for (const LimitField& field : limit_fields()) json[field.name] = field.get(limits);
  return json;
}

Json node_of(const NodeFacts& node) {
  return {{"cpu", node.machine.cpu_model},
          {"virtual", node.machine.virtual_machine},
          {"cores_online", node.machine.cpus_online},
          {"memory_bytes", node.machine.memory_bytes},
          {"kernel", node.machine.kernel},
          {"nid", node.nid_choice},
          {"shared_memory", node.shared_memory},
          {"process_vm_readv",
           {{"permitted", node.can_read_other_memory}, {"detail", node.read_other_memory}}},
          {"membarrier_available", node.membarrier_available}};
}

Json interfaces_of(const Facts& facts) {
  Json json = Json::array();
  for (const InterfaceFacts& interface : facts.interfaces) {
    Json transports = Json::array();
    for (const TransportFacts& transport : interface.transports) {
      transports.push_back(
          {{"name", transport.name}, {"used", transport.usable}, {"reason", transport.reason}});
    }
    json.push_back({{"number", interface.number},
                    {"default", interface.is_default},
                    {"transports", transports}});
  }
  return json;
}

Json opened_of(const Facts& facts) {
  if (!facts.opened) return {{"problem", facts.open_problem}};
  const OpenedFacts& opened = *facts.opened;
  return {{"interface", opened.requested},
          {"nid", opened.id.phys.nid},
          {"pid", opened.id.phys.pid},
          {"uid", opened.uid},
          {"limits_default", limits_of(opened.default_limits)},
          {"limits_largest", limits_of(opened.largest_limits)},
          {"features", feature_names(opened.default_limits.features)}};
}

}  // namespace

void print_json(const Facts& facts) {
  Json json;
  json["tool"] = "ptl_info";
  json["library"] = "Lintel " + facts.library_version;
  json["portals_version"] =
      std::to_string(PTL_MAJOR_VERSION) + "." + std::to_string(PTL_MINOR_VERSION);
  json["node"] = node_of(facts.node);
  json["interfaces"] = interfaces_of(facts);
  json["opened"] = opened_of(facts);
  json["status_registers"] = Json::array();
  for (const StatusRegister& each : facts.registers) {
    json["status_registers"].push_back({{"index", each.index},
                                        {"name", each.name},
                                        {"meaning", each.meaning},
                                        {"value", each.value}});
  }
  json["configuration"] = Json::array();
  for (const ConfigFacts& variable : facts.configuration) {
    json["configuration"].push_back({{"name", variable.name},
                                     {"value", variable.value},
                                     {"default", variable.default_value},
                                     {"unit", variable.unit},
                                     {"allowed", variable.allowed},
                                     {"origin", variable.origin},
                                     {"help", variable.help},
                                     {"for_tests", variable.for_tests}});
  }
  json["former_names"] = facts.names.former_names;
  json["runtime_names"] = facts.names.runtime_names;
  std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace lintel::info
