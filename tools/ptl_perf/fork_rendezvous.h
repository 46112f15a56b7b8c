// Rendezvous of processes that one process forked: through a shared anonymous mapping.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ptl_perf/rendezvous.h"

namespace lintel::perf {

/** The mapping. Made before the fork, seen by all; unmapped when the last process ends. */
class SharedBoard {
 public:
  explicit SharedBoard(unsigned process_count);
  ~SharedBoard();
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;

  unsigned process_count() const { return process_count_; }

  /** No process returns before all processes have called. Does not notice a dead process; the
   *  supervisor does. */
  void barrier();

  void write(unsigned rank, std::span<const std::byte> bytes);
  Bytes read(unsigned rank) const;

 private:
  struct Header;
  struct Slot;
  Slot& slot(unsigned rank) const;

  unsigned process_count_;
  std::size_t mapped_bytes_;
  Header* header_;
};

class ForkRendezvous final : public Rendezvous {
 public:
  ForkRendezvous(SharedBoard& board, unsigned rank) : board_(board), rank_(rank) {}

  unsigned rank() const override { return rank_; }
  unsigned size() const override { return board_.process_count(); }
  std::string description() const override;
  ptl_pid_t requested_pid() const override { return PTL_PID_ANY; }
  std::vector<ptl_process_t> exchange_identifiers(ptl_interface_t interface,
                                                  const ptl_process_t& own) override;
  std::vector<Bytes> gather(std::span<const std::byte> own) override;
  Bytes broadcast(std::span<const std::byte> from_rank_0) override;
  void barrier() override { board_.barrier(); }
  void leave() override { board_.barrier(); }

 private:
  SharedBoard& board_;
  unsigned rank_;
};

}  // namespace lintel::perf
