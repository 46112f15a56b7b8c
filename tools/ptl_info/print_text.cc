// The facts for people. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>

#include "common/text.h"
#include "ptl_info/facts.h"

namespace lintel::info {
namespace {

using tools::Columns;
using tools::format_bytes;

void print_line(const char* name, const std::string& value) {
  std::printf("  %-18s %s\n", name, value.c_str());
}

void print_node(const NodeFacts& node) {
  std::printf("\nNode\n");
  print_line("processor", node.machine.cpu_model +
                              (node.machine.virtual_machine ? " (virtual)" : "") + ", " +
                              std::to_string(node.machine.cpus_online) + " cores");
  print_line("kernel", node.machine.kernel);
  print_line("nid", node.nid_choice);
  print_line("shared memory", node.shared_memory);
  print_line("process_vm_readv", node.read_other_memory);
  print_line("membarrier", node.membarrier_available
                               ? "available (expedited, between processes)"
                               : "not available: every message pays for a full fence");
}

void print_interfaces(const Facts& facts) {
  std::printf("\nInterfaces\n");
  for (const InterfaceFacts& interface : facts.interfaces) {
    std::printf("  %u%s\n", interface.number,
                interface.is_default ? "  what PTL_IFACE_DEFAULT stands for" : "");
    for (const TransportFacts& transport : interface.transports) {
      std::printf("     %-8s %-8s %s\n", transport.name.c_str(),
                  transport.usable ? "used:" : "not used:", transport.reason.c_str());
    }
  }
}

void print_limits(const OpenedFacts& opened) {
  std::printf("\nLimits: granted by default, and when as much as possible is desired\n");
  Columns table;
  for (const LimitField& field : limit_fields()) {
    const std::uint64_t by_default = field.get(opened.default_limits);
    const std::uint64_t at_most = field.get(opened.largest_limits);
    const bool is_size = std::string(field.meaning).starts_with("bytes");
    const auto text = [is_size](std::uint64_t value) {
      return is_size ? format_bytes(value) : std::to_string(value);
    };
    table.add_row({field.name, text(by_default), text(at_most)});
  }
  std::printf("%s", table.text(2).c_str());
  std::printf("\nFeatures\n");
  for (const std::string& name : feature_names(opened.default_limits.features)) {
    std::printf("  %s\n", name.c_str());
  }
}

void print_accelerators(const std::vector<AcceleratorFacts>& accelerators) {
  std::printf("\nMemory of accelerators\n");
  for (const AcceleratorFacts& each : accelerators) {
    std::string devices;
    for (const std::string& name : each.devices) devices += (devices.empty() ? ": " : ", ") + name;
    print_line(each.driver.c_str(), each.reason + devices);
    if (each.devices.empty()) continue;
    print_line("  within a node", each.within_node);
    print_line("  by networks", each.by_networks);
  }
}

void print_registers(const Facts& facts) {
  std::printf("\nStatus registers of an interface (PtlNIStatus)\n");
  for (const StatusRegister& each : facts.registers) {
    std::printf("  %3u  %-57s %s\n", each.index, each.name.c_str(), each.meaning.c_str());
  }
}

}  // namespace

void print_configuration(const Facts& facts, bool all) {
  std::printf("Configuration variables\n");
  for (const ConfigFacts& variable : facts.configuration) {
    if (variable.for_tests && !all && variable.origin == "default") continue;
    const std::string unit = variable.unit.empty() ? "" : " " + variable.unit;
    std::string line = variable.name + " = " + variable.value;
    if (!variable.value.empty()) line += unit;
    line += variable.origin == "default"
                ? "  (default)"
                : "  (from " +
                      (variable.place.empty() ? "the " + variable.origin : variable.place) +
                      "; default " +
                      (variable.default_value.empty() ? "empty" : variable.default_value) + ")";
    std::printf("\n  %s\n      allowed: %s\n%s", line.c_str(), variable.allowed.c_str(),
                tools::wrap(variable.help, 6).c_str());
  }
}

void print_text(const Facts& facts) {
  std::printf("Lintel %s, Portals %d.%d\n", facts.library_version.c_str(), PTL_MAJOR_VERSION,
              PTL_MINOR_VERSION);
  print_node(facts.node);
  print_interfaces(facts);
  print_accelerators(facts.accelerators);
  if (facts.opened) {
    std::printf("\nThis process on interface %s\n", facts.opened->requested.c_str());
    print_line("nid, pid, uid", tools::format_nid(facts.opened->id.phys.nid) + ", " +
                                    std::to_string(facts.opened->id.phys.pid) + ", " +
                                    std::to_string(facts.opened->uid));
    print_limits(*facts.opened);
  } else {
    std::printf("\nThe interface cannot be opened: %s\n", facts.open_problem.c_str());
  }
  print_registers(facts);
  std::printf("\n");
  print_configuration(facts, false);
}

}  // namespace lintel::info
