/* orderly_end.cc: a barrier in each neighbourhood, and one by puts between their first processes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exit/orderly_end.h"

#include "job/futex.h"
#include "job/job.h"
#include "job/neighbourhood.h"
#include "network/network.h"
#include "network/poll.h"
#include "tools/headers.h"

namespace lintel::gasnet {
namespace {

/* Puts arrive without a wake-up. */
constexpr uint64_t kLookAgainNs = 100'000;

class Deadline {
 public:
  explicit Deadline(double seconds)
      : end_ns_(gasnett_ticks_to_ns(gasnett_ticks_now()) + static_cast<uint64_t>(seconds * 1e9)) {}
  bool has_passed() const { return gasnett_ticks_to_ns(gasnett_ticks_now()) >= end_ns_; }

 private:
  uint64_t end_ns_;
};

/** Whether the condition holds before the deadline. */
template <typename Condition>
bool look_until(Condition&& condition, const Deadline& deadline) {
  while (!condition()) {
    if (deadline.has_passed()) return false;
    gasnett_nsleep(kLookAgainNs);
  }
  return true;
}

/** Whether the word has the value before the deadline. */
bool sleep_until(std::atomic<uint32_t>& word, uint32_t value, const Deadline& deadline) {
  for (;;) {
    const uint32_t now = word.load(std::memory_order_acquire);
    if (now == value) return true;
    if (deadline.has_passed()) return false;
    futex_wait(word, now, 10);
  }
}

/** The meeting of the first processes of neighbourhoods. In each round a process puts to another
 * one, and the distance doubles. The puts request no acknowledgement, since the process may end
 * before it arrives. */
class EndOfNeighbourhoods {
 public:
  EndOfNeighbourhoods() {
    ptl_md_t md{};
    md.start = &arrived_;
    md.length = sizeof arrived_;
    md.eq_handle = PTL_EQ_NONE;
    md.ct_handle = PTL_CT_NONE;
    is_bound_ = PtlMDBind(network().interface(), &md, &source_) == PTL_OK;
  }

  bool meet(unsigned int phase, const Deadline& deadline) {
    const Neighbourhood& n = neighbourhood();
    const gex_Rank_t count = n.number_of_neighbourhoods();
    const gex_Rank_t own = n.number_of(job().rank());
    unsigned int round = 0;
    for (uint64_t distance = 1; distance < count; distance *= 2, ++round) {
      const gex_Rank_t rank = n.first_of(static_cast<gex_Rank_t>((own + distance) % count));
      std::atomic<uint64_t>& arrival = n.control().end_arrivals[phase][round];
      const auto offset =
          static_cast<ptl_size_t>(reinterpret_cast<char*>(&arrival) -
                                  reinterpret_cast<char*>(&n.control().remote_exit_word));
      if (!is_bound_ || PtlPut(source_, 0, sizeof arrived_, PTL_NO_ACK_REQ, process_of(rank),
                               number_of(PortalIndex::kExit), 0, offset, nullptr, 0) != PTL_OK)
        return false;
      if (!look_until([&] { return arrival.load(std::memory_order_acquire) != 0; }, deadline))
        return false;
    }
    return true;
  }

 private:
  uint64_t arrived_ = 1;
  ptl_handle_md_t source_{};
  bool is_bound_ = false;
};

/** Whether all processes of the job have arrived before the deadline. */
bool meet(EndOfNeighbourhoods* others, unsigned int phase, const Deadline& deadline) {
  ControlBlock& control = neighbourhood().control();
  std::atomic<uint32_t>& members = control.end_members[phase];
  std::atomic<uint32_t>& is_reached = control.end_is_reached[phase];
  members.fetch_add(1, std::memory_order_acq_rel);
  futex_wake_all(members);
  if (!others) return sleep_until(is_reached, 1, deadline);
  if (!sleep_until(members, neighbourhood().count(), deadline)) return false;
  if (!others->meet(phase, deadline)) return false;
  is_reached.store(1, std::memory_order_release);
  futex_wake_all(is_reached);
  return true;
}

}  // namespace

void expose_end() {
  network().allocate(PortalIndex::kExit, 0, PTL_EQ_NONE);
  ControlBlock& control = neighbourhood().control();
  ptl_me_t entry{};
  entry.start = &control.remote_exit_word;
  entry.length = sizeof control.remote_exit_word + sizeof control.end_arrivals;
  entry.ct_handle = PTL_CT_NONE;
  entry.uid = PTL_UID_ANY;
  entry.options = PTL_ME_OP_PUT;
  entry.match_id.rank = PTL_RANK_ANY;
  entry.ignore_bits = ~ptl_match_bits_t{0};
  network().append(PortalIndex::kExit, entry, nullptr);
}

void end_in_order(double seconds) {
  if (job().size() == 1) return;
  const Deadline deadline(seconds);
  // Never destroyed: the process ends while puts from it may be under way.
  static EndOfNeighbourhoods* const others =
      neighbourhood().is_first() ? new EndOfNeighbourhoods : nullptr;
  stop_threads_that_poll();
  if (!meet(others, 0, deadline)) return;
  if (look_until(is_quiet, deadline)) meet(others, 1, deadline);
}

}  // namespace lintel::gasnet
