// An Ethernet of two ports for two ranks, used through DPDK: shared memory between them (memif), or a
// cable between two network namespaces (af_packet on veth). Leaves nothing behind, however a test
// ends: sockets are abstract; the namespaces, which all tests of a program share, belong to processes
// that end with it. Set-up path.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/rank.h"

namespace lintel::test {

enum class Ethernet { memif, af_packet };

// Why there is no such Ethernet here; empty if there is.
[[nodiscard]] std::string why_no_ethernet(Ethernet ethernet);

// Before the ranks start.
void prepare_ethernet(Ethernet ethernet);

// In rank 0 and rank 1, before they open an interface: takes the rank's port and sets the environment
// so that DPDK is the only network.
void join_ethernet(const Rank& rank, Ethernet ethernet);

[[nodiscard]] bool run_command(const std::string& command);

}  // namespace lintel::test
