// Prints the most important facts, on one screen. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>

#include "common/text.h"
#include "ptl_info/facts.h"

namespace lintel::info {
namespace {

std::string speed_text(std::uint64_t mbit) {
  if (mbit == 0) return "";
  return mbit >= 1000 ? tools::format_fixed(static_cast<double>(mbit) / 1000, mbit % 1000 ? 1 : 0) +
                            " Gbit/s"
                      : std::to_string(mbit) + " Mbit/s";
}

void print_transports(const Facts& facts) {
  std::printf("\nTransports of PTL_IFACE_DEFAULT, the first that reaches a process serves it\n");
  for (const InterfaceFacts& interface : facts.interfaces) {
    if (!interface.is_default) continue;
    for (const TransportFacts& transport : interface.transports)
      std::printf("  %-8s %-4s %s\n", transport.name.c_str(), transport.usable ? "yes" : "no",
                  transport.reason.c_str());
  }
}

void print_devices(const std::vector<DeviceFacts>& devices) {
  std::printf("\nDevices\n");
  tools::Columns table;
  for (const DeviceFacts& device : devices)
    table.add_row({device.name, device.layer.empty() ? device.kind : device.layer, device.link,
                   device.mtu_bytes == 0 ? "" : "MTU " + std::to_string(device.mtu_bytes),
                   speed_text(device.speed_mbit), device.address});
  std::printf("%s", table.text(2).c_str());
}

void print_libfabric(const LibfabricFacts& facts) {
  if (facts.directory.empty() && facts.found_in.empty()) return;
  std::printf("\nlibfabric\n");
  if (!facts.found_in.empty()) {
    std::printf("  it finds the provider lintel in %s\n", facts.found_in.c_str());
  } else {
    std::printf("  it does not find the provider lintel: export FI_PROVIDER_PATH=%s\n",
                facts.directory.c_str());
  }
}

// Nothing on nodes without accelerators.
void print_accelerators(const std::vector<AcceleratorFacts>& accelerators) {
  bool is_first = true;
  for (const AcceleratorFacts& each : accelerators) {
    if (!each.usable) continue;
    if (is_first) std::printf("\nMemory of accelerators (of programs that load the driver)\n");
    is_first = false;
    std::printf("  %-8s %s\n", each.driver.c_str(), each.reason.c_str());
    for (std::size_t device = 0; device < each.devices.size(); ++device)
      std::printf("    %s:%zu  %s\n", each.driver.c_str(), device, each.devices[device].c_str());
    if (each.devices.empty()) {
      std::printf("    no device\n");
      continue;
    }
    std::printf("    within a node  %s\n    by networks    %s\n", each.within_node.c_str(),
                each.by_networks.c_str());
  }
}

void print_findings(const std::vector<Finding>& findings) {
  if (findings.empty()) {
    std::printf("\nNothing is wrong.\n");
    return;
  }
  std::printf("\nWhat is wrong, and what to do\n");
  for (const Finding& finding : findings) {
    const std::string what = std::string(severity_name(finding.severity)) + ": " + finding.what;
    std::printf("%s%s", tools::wrap(what, 2).c_str(), tools::wrap(finding.advice, 6).c_str());
  }
}

}  // namespace

void print_screen(const Facts& facts) {
  const NodeFacts& node = facts.node;
  std::printf("Lintel %s, Portals %d.%d\n", facts.library_version.c_str(), PTL_MAJOR_VERSION,
              PTL_MINOR_VERSION);
  std::printf("  nid %s\n", node.nid_choice.c_str());
  std::printf("  %s, %zu of %u cores, %s\n", node.machine.cpu_model.c_str(),
              node.machine.cpus_allowed.size(), node.machine.cpus_online,
              node.machine.kernel.c_str());
  print_transports(facts);
  print_devices(facts.devices);
  print_accelerators(facts.accelerators);
  print_libfabric(facts.libfabric);
  print_findings(facts.findings);
  std::printf(
      "\nptl_info --all: limits, registers, all interfaces; --config: variables; --json: "
      "for programs\n");
}

}  // namespace lintel::info
