// Description of the machine that the tools run on, for the header of their output. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lintel::tools {

struct Machine {
  std::string cpu_model;          // name that the kernel reports
  unsigned cpus_online = 0;       // logical processors that the kernel schedules on
  std::vector<int> cpus_allowed;  // processors that this process may use, ascending
  std::string kernel;             // name, release and architecture
  std::uint64_t memory_bytes = 0;
  bool virtual_machine = false;
  bool invariant_tsc = false;  // the time-stamp counter runs at one rate in every power state
};

/** Reads /proc and asks the kernel. Fields that cannot be found out stay at their defaults. */
Machine describe_machine();

/** Memory that can be allocated without swapping, in bytes; 0 if the kernel does not say. */
std::uint64_t available_memory_bytes();

/** Resident memory of this process in bytes; 0 if the kernel does not say. */
std::uint64_t resident_memory_bytes();

}  // namespace lintel::tools
