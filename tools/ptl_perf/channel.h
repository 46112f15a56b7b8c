// The two ends of the traffic: an entry that is exposed to others, and memory that operations
// start from. Set-up path; hands the timed loops their waiters.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ptl_perf/operations.h"
#include "ptl_perf/portals_objects.h"
#include "ptl_perf/region.h"
#include "ptl_perf/session.h"
#include "ptl_perf/waiters.h"

namespace lintel::perf {

/** Portal table indexes that both ends of a pair agree on. */
inline constexpr ptl_pt_index_t data_index = 4;
inline constexpr ptl_pt_index_t credit_index = 5;

inline constexpr ptl_match_bits_t data_match_bits = 0x00c0'ffee'0000'0001;

/** Calls `use` with a waiter on the queue, if there is one, or else on the counter: each of the
 * four gives a timed loop of its own. */
template <class Use>
auto use_waiter(const EventQueue& queue, const Counter& counter, Wait wait, Use&& use) {
  if (queue) {
    if (wait == Wait::blocking) return use(EventWaiter<Wait::blocking>(queue.get()));
    return use(EventWaiter<Wait::polling>(queue.get()));
  }
  if (wait == Wait::blocking) return use(CountWaiter<Wait::blocking>(counter.get()));
  return use(CountWaiter<Wait::polling>(counter.get()));
}

/** A portal table entry with entries appended, and what reports operations on them: an event queue
 *  or a counting event. */
class Exposure {
 public:
  /** `event_capacity` events are kept if `events` is full. */
  Exposure(Endpoint& endpoint, Events events, std::uint64_t event_capacity,
           ptl_pt_index_t index = data_index);

  /** Appends an entry over the region, open for puts and gets from one peer. */
  void expose(const Region& region, ptl_process_t peer);

  /** Appends an entry of no length (matching interfaces only). */
  void append_empty(ptl_process_t match_id, ptl_match_bits_t match_bits,
                    ptl_match_bits_t ignore_bits);

  /** Calls `use` with the waiter for operations of others on the exposed entries. */
  template <class Use>
  auto with_waiter(Wait wait, Use&& use) {
    return use_waiter(queue_, counter_, wait, std::forward<Use>(use));
  }

  ptl_handle_ct_t counter() const { return counter_.get(); }
  bool has_queue() const { return static_cast<bool>(queue_); }
  ptl_handle_eq_t queue() const { return queue_.get(); }

 private:
  void append(const ptl_me_t& entry);

  Endpoint& endpoint_;
  EventQueue queue_;
  Counter counter_;
  PortalEntry portal_;
  std::vector<ListEntry> list_entries_;
  std::vector<MatchEntry> match_entries_;
};

/** Reports of a memory descriptor about the operations that start from it. */
enum class Completion { nothing, full, counting };

Completion completion_of(Ack ack);
ptl_ack_req_t ack_request(Ack ack);

/** A memory descriptor over a region, and its event queue or counting event. */
class Source {
 public:
  /** `counted` is PTL_MD_EVENT_CT_ACK or PTL_MD_EVENT_CT_REPLY; used if completion is counting.
   *  `event_capacity` events are kept if it is full. */
  Source(Endpoint& endpoint, const Region& region, Completion completion, unsigned counted,
         std::uint64_t event_capacity);

  /** Makes a source for operations that are complete only with their answers. If an acknowledgment
   *  is requested, an operation that cannot be delivered is an event or a failure where the answer
   *  is awaited. A counter of the answers also counts each acknowledgment. */
  Source(Endpoint& endpoint, const Region& region, const Exposure& answers);

  ptl_handle_md_t descriptor() const { return descriptor_.get(); }

  /** Calls `use` with the waiter for the completion of operations from this descriptor. */
  template <class Use>
  auto with_waiter(Wait wait, Use&& use) {
    return use_waiter(queue_, counter_, wait, std::forward<Use>(use));
  }

 private:
  EventQueue queue_;
  Counter counter_;
  MemoryDescriptor descriptor_;
};

/** The peer of this process in its pair. */
Destination peer_of(Session& session, const Endpoint& endpoint, ptl_pt_index_t index = data_index);

/** Reports the end of a pass to the target, with a put of no length. The markers are numbered,
 *  since one may be lost when the next pass follows at once. */
class EndMarker {
 public:
  EndMarker(Endpoint& endpoint, const Destination& to);
  void restart() { sent_ = 0; }
  void send();

 private:
  std::uint64_t sent_ = 0;
  MemoryDescriptor descriptor_;
  Destination to_;
};

}  // namespace lintel::perf
