// A process group in the environment: PTL_MY_RID, PTL_NIDMAP, PTL_PIDMAP, PTL_MY_JID, PTL_WAIT_S,
// PTL_JOB_MEMORY. Set-up path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lintel {

struct HandEnvironment {
  std::optional<uint32_t> rank;
  std::optional<uint32_t> job;
  std::vector<uint32_t> nids;  // indexed by rank; empty if not set
  std::vector<uint32_t> pids;
  std::optional<uint32_t> wait_s;  // maximum time of waiting for a process that has not started
  std::string memory;              // memory of JobBarrier; empty if not set
};

// An empty text, or what makes no sense: anything but numbers, maps of different lengths, a rank
// beyond them. Variables that are not set or empty are left out.
[[nodiscard]] std::string read_hand_environment(HandEnvironment& environment);

// A number (decimal, or hexadecimal with 0x), or an address such as 192.0.2.1.
[[nodiscard]] std::optional<uint32_t> read_identifier(const std::string& text);

}  // namespace lintel
