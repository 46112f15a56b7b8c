// The five data movement operations with a common interface, for tests that apply to all of them,
// and comparison of whole target events.
#pragma once

#include <string>
#include <vector>

#include "support/pair.h"

namespace lintel::test {

enum class Operation { put, get, atomic, fetch_atomic, swap };

inline constexpr Operation all_operations[] = {Operation::put, Operation::get, Operation::atomic,
                                               Operation::fetch_atomic, Operation::swap};

[[nodiscard]] std::string name_of(Operation operation);
[[nodiscard]] ptl_event_kind_t target_event(Operation operation);
[[nodiscard]] ptl_event_kind_t overflow_event(Operation operation);
// The options by which an entry permits the operation (spec table 4-7).
[[nodiscard]] unsigned needed_options(Operation operation);
[[nodiscard]] bool sends(Operation operation);    // posts SEND at the initiator
[[nodiscard]] bool acked(Operation operation);    // may be acknowledged
[[nodiscard]] bool replied(Operation operation);  // posts REPLY at the initiator
[[nodiscard]] bool atomic(Operation operation);

// Starts the operation; the atomic ones add (or swap) 64-bit integers.
void start(const InitiatorSide& initiator, Operation operation, const Request& request,
           Place place = Place::current());
// Waits for SEND, and for ACK (if requested) or REPLY with this result; returns the last two.
ptl_event_t finish(const InitiatorSide& initiator, Operation operation, const Request& request,
                   ptl_ni_fail_t result = PTL_NI_OK, Place place = Place::current());
ptl_event_t perform(const InitiatorSide& initiator, Operation operation, const Request& request,
                    ptl_ni_fail_t result = PTL_NI_OK, Place place = Place::current());

// All fields that a target event of a successful operation defines (spec table 3-3).
struct TargetEvent {
  ptl_event_kind_t type;
  const void* start = nullptr;
  ptl_size_t rlength = 0;
  ptl_size_t mlength = 0;
  ptl_size_t remote_offset = 0;
  ptl_match_bits_t match_bits = 0;  // as sent; expected to be 0 in non-matching events
  ptl_hdr_data_t hdr_data = 0;      // not compared for gets
  void* user_ptr = nullptr;
  ptl_list_t list = PTL_PRIORITY_LIST;
  ptl_pt_index_t pt_index = default_pt_index;
};
void expect_target_event(Pair& pair, const ptl_event_t& event, const TargetEvent& expected,
                         Place place = Place::current());

}  // namespace lintel::test
