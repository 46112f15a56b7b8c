// The facts for programs. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>

#include <nlohmann/json.hpp>

#include "common/text.h"
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
          {"cores_allowed", node.machine.cpus_allowed.size()},
          {"nid", tools::format_nid(node.nid)},
          {"nid_choice", node.nid_choice},
          {"shm_usable", node.shm_usable},
          {"shm_total_bytes", node.shm_total_bytes},
          {"shm_free_bytes", node.shm_free_bytes},
          {"shm_needed_bytes", node.shm_needed_bytes},
          {"process_vm_readv", node.can_read_other_memory},
          {"ptrace_scope", node.ptrace_scope < 0 ? Json(nullptr) : Json(node.ptrace_scope)},
          {"membarrier", node.membarrier_available},
          {"userfaultfd", node.userfaultfd_available},
          {"receive_buffer_limit_bytes", node.receive_buffer_limit_bytes},
          {"locked_memory_limit_bytes", node.locked_memory_limit_bytes == UINT64_MAX
                                            ? Json(nullptr)
                                            : Json(node.locked_memory_limit_bytes)}};
}

Json devices_of(const Facts& facts) {
  Json json = Json::array();
  for (const DeviceFacts& device : facts.devices) {
    json.push_back({{"kind", device.kind},
                    {"name", device.name},
                    {"layer", device.layer},
                    {"link", device.link},
                    {"up", device.is_up},
                    {"address", device.address},
                    {"mtu_bytes", device.mtu_bytes},
                    {"speed_mbit", device.speed_mbit}});
  }
  return json;
}

Json modules_of(const Facts& facts) {
  Json json = Json::object();
  for (const ModuleFacts& module : facts.modules) json[module.name] = module.installed;
  return json;
}

Json accelerators_of(const Facts& facts) {
  Json json = Json::array();
  for (const AcceleratorFacts& each : facts.accelerators)
    json.push_back({{"driver", each.driver},
                    {"usable", each.usable},
                    {"reason", each.reason},
                    {"devices", each.devices},
                    {"within_node", each.within_node},
                    {"by_networks", each.by_networks}});
  return json;
}

Json findings_of(const Facts& facts) {
  Json json = Json::array();
  for (const Finding& finding : facts.findings) {
    json.push_back({{"id", finding.id},
                    {"severity", severity_name(finding.severity)},
                    {"what", finding.what},
                    {"advice", finding.advice}});
  }
  return json;
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
          {"nid", tools::format_nid(opened.id.phys.nid)},
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
  json["version"] = 2;  // version of the form in tools/ptl_info/schema.json
  json["library"] = "Lintel " + facts.library_version;
  json["portals_version"] =
      std::to_string(PTL_MAJOR_VERSION) + "." + std::to_string(PTL_MINOR_VERSION);
  json["node"] = node_of(facts.node);
  json["devices"] = devices_of(facts);
  json["modules"] = modules_of(facts);
  json["accelerators"] = accelerators_of(facts);
  json["libfabric"] = {{"provider", facts.libfabric.directory},
                       {"found_in", facts.libfabric.found_in}};
  json["findings"] = findings_of(facts);
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
                                     {"place", variable.place},
                                     {"help", variable.help},
                                     {"for_tests", variable.for_tests}});
  }
  json["runtime_names"] = facts.names.runtime_names;
  std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace lintel::info
