// Rendezvous of processes that someone else started: the environment names them, and they talk
// through Portals itself. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ptl_perf/portals_objects.h"
#include "ptl_perf/region.h"
#include "ptl_perf/rendezvous.h"

namespace lintel::perf {

/** The place of this process in a job. */
struct JobPlace {
  unsigned rank = 0;
  std::vector<ptl_process_t> processes;  // nid and pid by rank
};

/** Reads PTL_MY_RID (the rank), PTL_NIDMAP and PTL_PIDMAP (nids and pids by rank, separated by
 *  colons; numbers, or nids in dotted form). Nothing if PTL_MY_RID is not set; throws with what is
 *  wrong if the variables do not fit together. */
std::optional<JobPlace> read_job_place();

class EnvironmentRendezvous final : public Rendezvous {
 public:
  explicit EnvironmentRendezvous(JobPlace place);
  ~EnvironmentRendezvous() override;
  EnvironmentRendezvous(const EnvironmentRendezvous&) = delete;
  EnvironmentRendezvous& operator=(const EnvironmentRendezvous&) = delete;

  unsigned rank() const override { return place_.rank; }
  unsigned size() const override { return static_cast<unsigned>(place_.processes.size()); }
  std::string description() const override;
  ptl_pid_t requested_pid() const override { return place_.processes[place_.rank].phys.pid; }
  std::vector<ptl_process_t> exchange_identifiers(ptl_interface_t interface,
                                                  const ptl_process_t& own) override;
  std::vector<Bytes> gather(std::span<const std::byte> own) override;
  Bytes broadcast(std::span<const std::byte> from_rank_0) override;
  void barrier() override;
  void leave() override;

 private:
  struct Mailbox;

  std::vector<Bytes> collect(std::span<const std::byte> own);
  Bytes distribute(std::span<const std::byte> from_rank_0);
  bool send(unsigned to, std::span<const std::byte> bytes, unsigned timeout_ms);

  JobPlace place_;
  std::unique_ptr<Mailbox> mailbox_;
};

}  // namespace lintel::perf
