// Rendezvous of two processes that a user started on two hosts: `ptl_perf --listen` and `ptl_perf
// HOST`. They talk over a TCP connection outside of what is measured. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "ptl_perf/rendezvous.h"
#include "ptl_perf/settings.h"
#include "ptl_perf/socket.h"

namespace lintel::perf {

/** Rank 0 connects, rank 1 listens. */
class HostRendezvous final : public Rendezvous {
 public:
  /** Rank 0: connects and sends the command line, which both follow. */
  HostRendezvous(const Settings& settings, const std::vector<std::string>& arguments);
  /** Rank 1: takes the command line from the other end. */
  explicit HostRendezvous(Socket connection);

  /** Returns the arguments of the other end, at rank 1. */
  const std::vector<std::string>& arguments() const { return arguments_; }
  /** Rank 1: whether the command line can be followed; an empty text if so. */
  void answer(const std::string& problem) { connection_.send(problem); }
  /** Rank 0: waits for that. Throws if it cannot. */
  void await_answer();

  /** Both processes are on this host, and see the same network. */
  bool same_host() const { return own_host_ == other_host_; }

  unsigned rank() const override { return rank_; }
  unsigned size() const override { return 2; }
  std::string description() const override;
  ptl_pid_t requested_pid() const override { return PTL_PID_ANY; }
  std::vector<ptl_process_t> exchange_identifiers(ptl_interface_t interface,
                                                  const ptl_process_t& own) override;
  std::vector<Bytes> gather(std::span<const std::byte> own) override;
  Bytes broadcast(std::span<const std::byte> from_rank_0) override;
  void barrier() override { exchange({}); }
  void leave() override { barrier(); }
  int connection() const override { return connection_.descriptor(); }

 private:
  void greet();
  Bytes exchange(std::span<const std::byte> own);

  unsigned rank_;
  Socket connection_;
  std::string own_host_;  // name of the host, with a part that makes it unique
  std::string other_host_;
  std::vector<std::string> arguments_;
};

}  // namespace lintel::perf
