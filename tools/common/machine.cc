// Description of the machine that the tools run on. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "common/machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace lintel::tools {
namespace {

std::string after_colon(const std::string& line) {
  const auto colon = line.find(':');
  if (colon == std::string::npos) return {};
  const auto start = line.find_first_not_of(" \t", colon + 1);
  return start == std::string::npos ? std::string{} : line.substr(start);
}

void read_cpu_description(Machine& machine) {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line;
  while (std::getline(cpuinfo, line)) {
    if (line.starts_with("model name") || line.starts_with("Model")) {
      machine.cpu_model = after_colon(line);
    } else if (line.starts_with("flags")) {
      const std::string flags = after_colon(line) + ' ';
      machine.invariant_tsc = flags.find("constant_tsc ") != std::string::npos &&
                              flags.find("nonstop_tsc ") != std::string::npos;
      machine.virtual_machine = flags.find("hypervisor ") != std::string::npos;
    }
    if (line.empty() && !machine.cpu_model.empty()) break;  // one processor is enough
  }
  if (machine.cpu_model.empty()) machine.cpu_model = "unknown processor";
}

// A value in kB from a file of the form "Name:   1234 kB".
std::uint64_t kilobytes_of(const char* file, const std::string& name) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with(name + ":")) {
      std::istringstream value(after_colon(line));
      std::uint64_t kilobytes = 0;
      value >> kilobytes;
      return kilobytes * 1024;
    }
  }
  return 0;
}

}  // namespace

Machine describe_machine() {
  Machine machine;
  read_cpu_description(machine);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  machine.cpus_online = online > 0 ? static_cast<unsigned>(online) : 1;

  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &allowed)) machine.cpus_allowed.push_back(cpu);
    }
  }

  utsname name{};
  if (uname(&name) == 0) {
    machine.kernel = std::string(name.sysname) + ' ' + name.release + ' ' + name.machine;
  }
  machine.memory_bytes = kilobytes_of("/proc/meminfo", "MemTotal");
  return machine;
}

std::uint64_t available_memory_bytes() { return kilobytes_of("/proc/meminfo", "MemAvailable"); }

std::uint64_t resident_memory_bytes() { return kilobytes_of("/proc/self/status", "VmRSS"); }

}  // namespace lintel::tools
