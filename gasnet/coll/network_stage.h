/* network_stage.h: small collectives between nodes by counters and triggered operations. Message
 * path.
 *
 * A call is posted as a chain: the counter of a step triggers the operations of the next step. So
 * the network carries out the chain while the program computes. A slot has a level for each step. A
 * level receives the value of another place and an increment when the own value is ready. The
 * counter of both triggers an atomic operation of this process on itself. The counter of that
 * operation shows that the combined value is ready. Counters are never reset.
 *
 * All memory is read when an operation starts (PTL_MD_VOLATILE).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_COLL_NETWORK_STAGE_H
#define LINTEL_GASNET_COLL_NETWORK_STAGE_H

#include <portals4.h>

#include <memory>
#include <vector>

#include "coll/node_stage.h"
#include "coll/places.h"
#include "coll/reduction.h"
#include "coll/schedule.h"

namespace lintel::gasnet {

/** A value that is ready, or that is ready when a counter has reached a threshold. */
struct Awaited {
  char* value = nullptr;
  ptl_handle_ct_t counter{};
  ptl_size_t threshold = 0; /* 0: ready */
};

class NetworkStage {
 public:
  /** Makes what all teams share: portal table entry and memory descriptor. @return false if the
   * limits of the interface are too low. */
  static bool open();

  /** @param team    number of the team.
   * @param places   must outlive this object. */
  NetworkStage(uint32_t team, const TeamPlaces& places);
  ~NetworkStage();
  NetworkStage(const NetworkStage&) = delete;
  NetworkStage& operator=(const NetworkStage&) = delete;

  /** Makes counters and entries. @return false if there are not enough. */
  bool prepare();
  /** The same for the slots of neighbours, into which results are put. */
  bool prepare_release(const NodeStage& node);

  /** The own value of a slot. This process writes it. */
  Awaited own_value(unsigned int slot) { return {values_[slot][0]}; }
  /** The own value of a slot. A neighbour sends it with send_to_leader(). */
  Awaited value_of_neighbour(unsigned int slot);
  /** Posts the steps of the schedule. @return the result. */
  Awaited post(unsigned int slot, const Schedule& schedule, const Reduction& reduction,
               Awaited value);
  /** Posts the puts of the value to the neighbours.
   * @return ready when the value is in the memory that neighbours share. So this process does not
   *         return from a call that its neighbours cannot return from. */
  Awaited post_release(unsigned int slot, uint32_t use, Awaited value, size_t bytes);
  /** Posts an increment after everything that was posted on the value.
   * @return ready when all of that has been started. */
  Awaited post_end(unsigned int slot, Awaited value);
  static bool is_reached(const Awaited& value);

  /** Sends the contribution of a node to its leader. By any neighbour of the leader.
   * @param bytes  at least 1 unless the call has no data. */
  static void send_to_leader(ptl_rank_t leader, uint32_t team, unsigned int slot, const void* value,
                             size_t bytes);

 private:
  struct Counter {
    ptl_handle_ct_t handle{};
    ptl_size_t expected = 0;
  };
  struct Level {
    Counter arrived;
    Counter combined;
  };
  using Value = char[kSmallBytes];

  bool add(Counter& counter);
  bool add_entry(uint64_t match_bits, void* start, size_t bytes, ptl_handle_ct_t counter,
                 unsigned int operation);
  void put(const Awaited& value, size_t bytes, ptl_rank_t target, uint64_t match_bits) const;
  void increment(const Awaited& when, const Counter& counter) const;

  uint32_t team_;
  const TeamPlaces& places_;
  unsigned int levels_;
  std::vector<std::vector<Level>> levels_of_slots_;
  std::vector<Counter> ends_;
  std::vector<Counter> results_; /* counters of the results for neighbours, in shared memory */
  std::vector<ptl_handle_me_t> entries_;
  std::vector<ptl_handle_ct_t> counters_;
  std::unique_ptr<char[]> memory_;
  std::vector<std::vector<char*>> values_;
  uint32_t uses_[kSlots] = {};
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_COLL_NETWORK_STAGE_H
