// One process of the measurement: its interfaces, its place among the others. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <portals4.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "ptl_perf/rendezvous.h"
#include "ptl_perf/settings.h"

namespace lintel::perf {

/** An open logical interface (spec 3.6) and how to address the others on it. */
struct Endpoint {
  ptl_handle_ni_t interface = PTL_INVALID_HANDLE;
  ptl_ni_limits_t limits{};
  bool matching = true;
  bool logical = false;
  std::vector<ptl_process_t> addresses;  // indexed by rank, in the form of this interface
};

/** The processes work in pairs of an initiator and a target: ranks 2k and 2k+1, unless another
 * order is set. Rank 0 is always an initiator. */
class Session {
 public:
  /** Initializes Portals and opens the first interface. Collective. */
  Session(Rendezvous& rendezvous, const Settings& settings);

  /** Closes everything. Collective, unless an exception is under way. */
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Rendezvous& rendezvous() { return rendezvous_; }
  unsigned rank() const { return rendezvous_.rank(); }
  unsigned process_count() const { return rendezvous_.size(); }
  unsigned pair_count() const { return process_count() / 2; }
  bool initiator() const { return position_ % 2 == 0; }
  unsigned peer_rank() const { return order_[position_ ^ 1u]; }
  unsigned peer_rank(unsigned rank) const;
  bool initiator(unsigned rank) const;
  /** Pairs are the first and the second of this order, the third and the fourth, and so on. The
   * same at all ranks; begins with rank 0. */
  void set_order(std::vector<unsigned> order);
  const std::vector<unsigned>& order() const { return order_; }
  void barrier() { rendezvous_.barrier(); }

  /** The logical interface for these settings, opened at first use. Collective. */
  Endpoint& endpoint(bool matching, bool logical);
  Endpoint& endpoint(const Settings& settings) {
    return endpoint(settings.matching, settings.logical);
  }

  ptl_process_t physical_id() const { return physical_id(rank()); }
  ptl_process_t physical_id(unsigned rank) const { return identifiers_[rank]; }

  /** Returns the node of each rank. Nodes are numbered from 0. */
  const std::vector<unsigned>& nodes() const { return nodes_; }

  /** Resident memory in bytes, before PtlInit and right after the first PtlNIInit. */
  std::uint64_t resident_bytes_before_start() const { return resident_bytes_before_start_; }
  std::uint64_t resident_bytes_after_start() const { return resident_bytes_after_start_; }

 private:
  Rendezvous& rendezvous_;
  ptl_interface_t interface_;
  int exceptions_at_start_;
  std::vector<ptl_process_t> identifiers_;  // physical, by rank
  std::vector<unsigned> nodes_;             // indexed by rank
  std::vector<unsigned> order_;             // ranks, two by two
  unsigned position_ = 0;                   // index of this process in order_
  std::map<std::pair<bool, bool>, std::unique_ptr<Endpoint>> endpoints_;
  std::uint64_t resident_bytes_before_start_ = 0;
  std::uint64_t resident_bytes_after_start_ = 0;
};

}  // namespace lintel::perf
