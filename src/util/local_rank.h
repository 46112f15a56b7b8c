// Which place this process has among the processes of its job on this node: ports and other things of
// the node are dealt out by it. Set-up path.
#pragma once

#include <cstdint>
#include <string>

namespace lintel {

struct LocalRank {
  uint32_t rank = 0;
  std::string origin;  // who says so, for people
};

// PTL_LOCAL_RANK; else what the run-time library said; else what the launcher left in the environment
// (Open MPI, Slurm, PALS, Intel MPI, MVAPICH); else 0.
[[nodiscard]] LocalRank find_local_rank();

// What the run-time library says (PtlLintelSetLocalRank). Thread-safe.
void choose_local_rank(uint32_t rank) noexcept;

}  // namespace lintel
