// Rendezvous of processes that someone else started: srun, mpirun, or a user by hand. The run-time
// library gives their addresses; then they use Portals itself. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <portals4_runtime.h>

#include <memory>
#include <vector>

#include "ptl_perf/portals_objects.h"
#include "ptl_perf/region.h"
#include "ptl_perf/rendezvous.h"

namespace lintel::perf {

class JobRendezvous final : public Rendezvous {
 public:
  /** The process has joined the job; `leave` undoes that. Throws if the job has no pairs. */
  explicit JobRendezvous(const ptl_job_info_t& job);
  ~JobRendezvous() override;
  JobRendezvous(const JobRendezvous&) = delete;
  JobRendezvous& operator=(const JobRendezvous&) = delete;

  unsigned rank() const override { return job_.rank; }
  unsigned size() const override { return job_.size; }
  std::string description() const override;
  /** The run-time library chooses the pid where the environment asks for one. */
  ptl_pid_t requested_pid() const override { return PTL_PID_ANY; }
  std::vector<ptl_process_t> exchange_identifiers(ptl_interface_t interface,
                                                  const ptl_process_t& own) override;
  std::vector<unsigned> nodes(const std::vector<ptl_process_t>& processes) const override;
  std::vector<Bytes> gather(std::span<const std::byte> own) override;
  Bytes broadcast(std::span<const std::byte> from_rank_0) override;
  void barrier() override;
  void leave() override;

 private:
  struct Mailbox;

  std::vector<Bytes> collect(std::span<const std::byte> own);
  Bytes distribute(std::span<const std::byte> from_rank_0);
  bool send(unsigned to, std::span<const std::byte> bytes, unsigned timeout_ms);

  ptl_job_info_t job_;
  std::vector<ptl_process_t> processes_;  // nid and pid by rank
  std::unique_ptr<Mailbox> mailbox_;
};

}  // namespace lintel::perf
