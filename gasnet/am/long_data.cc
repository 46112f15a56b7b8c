/* long_data.cc: data whose message is missing, messages whose data are missing. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "am/long_data.h"

#include <algorithm>

namespace lintel::gasnet {

LongData::LongData(ptl_size_t events) : queue_(network().new_queue(events)) {
  network().allocate(PortalIndex::kLongData, PTL_PT_FLOWCTRL, queue_);
  arrivals_.reserve(64);
  waiting_.reserve(64);
}

bool LongData::is_complete(gex_Rank_t source, uint64_t operation, bool is_request,
                           const PutFields& fields, const void* payload) {
  const LockGuard lock(mutex_);
  const auto found = std::find_if(arrivals_.begin(), arrivals_.end(), [&](const Arrival& a) {
    return a.source == source && a.operation == operation;
  });
  if (found != arrivals_.end()) {
    *found = arrivals_.back();
    arrivals_.pop_back();
    return true;
  }
  gasneti_assert(waiting_count_.load(std::memory_order_relaxed) == waiting_.size());
  Waiting& waiting = waiting_.emplace_back();
  waiting.arrival = {source, operation};
  waiting.message.source = source;
  waiting.message.is_request = is_request;
  waiting.message.fields = fields;
  gasneti_assert(fields.payload_bytes <= sizeof waiting.message.payload);
  std::memcpy(waiting.message.payload, payload, fields.payload_bytes);
  waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
  return false;
}

bool LongData::next_arrival(Arrival* arrival) {
  ptl_event_t event;
  for (;;) {
    const int code = PtlEQGet(queue_, &event);
    if (code == PTL_EQ_EMPTY) {
      if (is_disabled_.exchange(false, std::memory_order_relaxed))
        check(PtlPTEnable(network().interface(), number_of(PortalIndex::kLongData)), "PtlPTEnable");
      return false;
    }
    check(code, "PtlEQGet");
    if (event.type == PTL_EVENT_PT_DISABLED) {
      is_disabled_.store(true, std::memory_order_relaxed);
      continue;
    }
    if (event.ni_fail_type != PTL_NI_OK)
      gasnett_fatalerror_nopos("data of rank %u arrived damaged", event.initiator.rank);
    *arrival = {event.initiator.rank, event.hdr_data};
    return true;
  }
}

bool LongData::complete(const Arrival& arrival, WaitingMessage* message) {
  const LockGuard lock(mutex_);
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& w) {
    return w.arrival.source == arrival.source && w.arrival.operation == arrival.operation;
  });
  if (found == waiting_.end()) {
    arrivals_.push_back(arrival);
    return false;
  }
  *message = found->message;
  *found = waiting_.back();
  waiting_.pop_back();
  waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
  return true;
}

}  // namespace lintel::gasnet
