// The position of this process among those of its job on this node. Ports and other things of the
// node are assigned by it. Set-up path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lintel {

struct LocalRank {
  uint32_t rank = 0;
  std::string origin;  // source of the rank, for messages
};

// PTL_LOCAL_RANK; else the value that the run-time library set; else that of the launcher in the
// environment (Open MPI, Slurm, PALS, Intel MPI, MVAPICH); else 0.
[[nodiscard]] LocalRank find_local_rank();

// The rank of PtlLintelSetLocalRank(). Thread-safe.
void choose_local_rank(uint32_t rank) noexcept;

// The rank of the process in its job, from the environment; nothing outside of jobs. For the
// log.
[[nodiscard]] std::optional<uint32_t> find_job_rank();

}  // namespace lintel
