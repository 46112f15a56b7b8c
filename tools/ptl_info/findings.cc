// Finds what is wrong on this node or could be better, and what to do. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "common/text.h"
#include "ptl_info/facts.h"
#include "util/node_identity.h"

namespace lintel::info {
namespace {

using tools::format_bytes;

constexpr std::uint64_t wanted_receive_buffer = std::uint64_t{4} << 20;
constexpr std::uint64_t wanted_locked_memory = std::uint64_t{64} << 20;

bool has_rdma(const Facts& facts) {
  return std::any_of(facts.devices.begin(), facts.devices.end(),
                     [](const DeviceFacts& device) { return device.kind == "rdma"; });
}

class Findings {
 public:
  void add(const char* id, Severity severity, std::string what, std::string advice) {
    all_.push_back({id, severity, std::move(what), std::move(advice)});
  }
  bool mention(const std::string& text) const {
    return std::any_of(all_.begin(), all_.end(), [&](const Finding& finding) {
      return finding.what.find(text) != std::string::npos;
    });
  }
  std::vector<Finding> take() {
    std::stable_sort(all_.begin(), all_.end(),
                     [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
    return std::move(all_);
  }

 private:
  std::vector<Finding> all_;
};

void check_shared_memory(const NodeFacts& node, Findings& findings) {
  if (!node.shm_usable) {
    findings.add("shm_unusable", Severity::problem, node.shared_memory,
                 "processes of a node need a /dev/shm that they may write to; in a container: "
                 "--ipc=host, or a tmpfs there");
  } else if (node.shm_free_bytes < node.shm_needed_bytes) {
    findings.add("shm_small", Severity::problem,
                 "/dev/shm has " + format_bytes(node.shm_free_bytes) + " left, and each process " +
                     "takes up to " + format_bytes(node.shm_needed_bytes),
                 "mount -o remount,size=50% /dev/shm; in a container: --shm-size or --ipc=host");
  }
}

void check_kernel(const Facts& facts, Findings& findings) {
  const NodeFacts& node = facts.node;
  if (!node.can_read_other_memory)
    findings.add("process_vm_readv", Severity::note,
                 "processes may not read each other's memory (" + node.read_other_memory + ")",
                 node.ptrace_scope > 0
                     ? "sysctl -w kernel.yama.ptrace_scope=0"
                     : "permit process_vm_readv in the seccomp profile of the container");
  if (!node.membarrier_available)
    findings.add("membarrier", Severity::note,
                 "the kernel has no expedited membarrier for several processes: every message "
                 "pays for a full fence",
                 "Linux 4.16 or later, and a seccomp profile that permits membarrier");
  if (node.receive_buffer_limit_bytes < wanted_receive_buffer && !node.is_root)
    findings.add("rmem_max", Severity::note,
                 "UDP sockets get a receive buffer of " +
                     format_bytes(node.receive_buffer_limit_bytes) + " at most",
                 "sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304");
  if (!has_rdma(facts)) return;
  if (node.locked_memory_limit_bytes < wanted_locked_memory)
    findings.add("memlock", Severity::problem,
                 "this process may lock " + format_bytes(node.locked_memory_limit_bytes) +
                     " of memory, which RDMA devices need",
                 "ulimit -l unlimited; for all users: memlock in /etc/security/limits.conf, "
                 "LimitMEMLOCK=infinity for slurmd");
  if (!node.userfaultfd_available)
    findings.add("userfaultfd", Severity::note,
                 "userfaultfd is not permitted: memory is registered with RDMA devices for each "
                 "long transfer",
                 "sysctl -w vm.unprivileged_userfaultfd=1");
}

void check_devices(const Facts& facts, Findings& findings) {
  for (const DeviceFacts& device : facts.devices) {
    if (device.kind != "rdma" || device.is_up) continue;
    findings.add("rdma_port_down", Severity::note,
                 "RDMA port " + device.name + " is " + device.link,
                 "look at the cable and, with InfiniBand, at the subnet manager (ibstat)");
  }
}

void check_modules(const Facts& facts, Findings& findings) {
  for (const ModuleFacts& module : facts.modules) {
    if (module.installed) continue;
    const bool is_needed = (module.name == "verbs" && has_rdma(facts)) ||
                           (module.name == "crypto" && facts.job_key_is_set) ||
                           (module.name == "dpdk" && facts.dpdk_is_wanted) ||
                           (module.name == "pmix" && facts.is_launched_by_pmix);
    if (!is_needed) continue;
    findings.add("module_missing", Severity::problem,
                 "the module " + module.name + " is not installed",
                 "install the package of that module, or name its directory in PTL_MODULE_PATH");
  }
}

void check_configuration(const Facts& facts, Findings& findings) {
  for (const std::string& complaint : facts.configuration_complaints) {
    const bool is_unreadable = complaint.find(" cannot be read: ") != std::string::npos;
    findings.add("configuration", Severity::problem, complaint,
                 is_unreadable ? "make it a file that this user may read, or remove it"
                               : "ptl_info --config --all lists what is allowed");
  }
  for (const std::string& directory : facts.missing_module_directories)
    findings.add("configuration", Severity::problem,
                 "PTL_MODULE_PATH names " + directory + ", which is no directory",
                 "name the directories that hold modules such as verbs.so");
  for (const unsigned cpu : facts.progress_cpus) {
    const auto& allowed = facts.node.machine.cpus_allowed;
    if (std::find(allowed.begin(), allowed.end(), static_cast<int>(cpu)) != allowed.end()) continue;
    findings.add("progress_cpus", Severity::problem,
                 "PTL_PROGRESS_CPUS names processor " + std::to_string(cpu) +
                     ", which this process may not use",
                 "taskset -pc $$ shows the processors that it may use");
    break;
  }
}

// Transports that the default interface should have, and other networks that are asked for.
void check_transports(const Facts& facts, Findings& findings) {
  for (const InterfaceFacts& interface : facts.interfaces) {
    if (!interface.is_default) continue;
    for (const TransportFacts& transport : interface.transports) {
      if (transport.usable || !transport.is_unexpected) continue;
      findings.add("transport_unusable", Severity::problem,
                   transport.name + " cannot be used: " + transport.reason,
                   "docs/troubleshooting.md; PTL_TRANSPORT without it ends this message");
    }
  }
}

constexpr const char* more_addresses = "ulimit -v unlimited, in the shell or script that starts it";

std::string address_limit(const NodeFacts& node) {
  return format_bytes(node.address_space_limit_bytes) + " of address space (ulimit -v)";
}

void check_opening(const Facts& facts, Findings& findings) {
  const bool is_limited = facts.node.address_space_limit_bytes != UINT64_MAX;
  if (!facts.fits_largest_limits)
    findings.add("address_space", Severity::note,
                 is_limited ? "the largest limits of an interface do not fit into " +
                                  address_limit(facts.node)
                            : "there is no memory for the largest limits of an interface",
                 is_limited ? more_addresses : "programs that ask for less are not concerned");
  if (facts.open_problem.empty()) return;
  // The error that was logged names the cause, where the code names a kind.
  const std::string& error = facts.log_error;
  const std::size_t colon = error.find(": ");
  const std::string why = colon == std::string::npos
                              ? facts.open_problem
                              : error.substr(colon + 2) + " (" +
                                    facts.open_problem.substr(0, facts.open_problem.find(": ")) +
                                    ")";
  const bool lacks_addresses = is_limited && error.find("address space") != std::string::npos;
  findings.add("interface_unusable", Severity::problem,
               "the interface cannot be opened: " + why +
                   (lacks_addresses ? "; this process may use " + address_limit(facts.node) : ""),
               lacks_addresses         ? more_addresses
               : facts.is_no_interface ? "ptl_info --all lists the interfaces"
               : error.starts_with("interface") && error.find("PTL_TRANSPORT") != std::string::npos
                   ? "correct PTL_TRANSPORT; without it all transports are used"
                   : "docs/troubleshooting.md has the line");
}

bool uses_network(const Facts& facts) {
  for (const InterfaceFacts& interface : facts.interfaces)
    for (const TransportFacts& transport : interface.transports)
      if (interface.is_default && transport.usable && transport.name != "local" &&
          transport.name != "shm")
        return true;
  return false;
}

void check_nid(const Facts& facts, Findings& findings) {
  if (!facts.node.nid_fault.empty() && uses_network(facts))
    findings.add("nid_unreachable", Severity::problem,
                 "other nodes cannot reach this one: its nid " + nid_text(facts.node.nid) + " " +
                     facts.node.nid_fault,
                 "set PTL_NID to a network interface with carrier that leads to them, or, if there "
                 "are no other nodes, PTL_TRANSPORT=shm");
  if (!facts.nid_map_fault.empty())
    findings.add(
        "nid_map", Severity::problem, facts.nid_map_fault,
        "correct PTL_NIDMAP, or set PTL_NID to the network interface whose address it has");
}

// Reports other lines that the library wrote.
void check_log(const Facts& facts, Findings& findings) {
  for (const std::string& line : facts.log_lines) {
    const std::size_t reason = line.find(" opens without ");
    const std::size_t colon = reason == std::string::npos ? reason : line.find(": ", reason);
    if (findings.mention(colon == std::string::npos ? line : line.substr(colon + 2))) continue;
    if (line == facts.log_error && !facts.open_problem.empty()) continue;  // check_opening()
    findings.add("log", Severity::problem, line, "docs/troubleshooting.md has the line");
  }
}

}  // namespace

const char* severity_name(Severity severity) {
  return severity == Severity::problem ? "problem" : "note";
}

std::vector<Finding> find_problems(const Facts& facts) {
  Findings findings;
  check_configuration(facts, findings);
  check_transports(facts, findings);
  check_opening(facts, findings);
  check_nid(facts, findings);
  check_shared_memory(facts.node, findings);
  check_modules(facts, findings);
  check_kernel(facts, findings);
  check_devices(facts, findings);
  check_log(facts, findings);
  return findings.take();
}

}  // namespace lintel::info
