/* long_data.h: pairs the data of large Longs with their messages. Message path.
 *
 * Both are under way at once and arrive in any order. They are paired by sender and operation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_AM_LONG_DATA_H
#define LINTEL_GASNET_AM_LONG_DATA_H

#include <atomic>
#include <vector>

#include "am/header.h"
#include "job/mutex.h"
#include "network/network.h"

namespace lintel::gasnet {

/** A message whose data are still under way. */
struct WaitingMessage {
  gex_Rank_t source = 0;
  bool is_request = false;
  PutFields fields;
  alignas(kAlignment) char payload[kLargestHeader] = {};
};

class LongData {
 public:
  /** @param events  places in the queue. A put without a place is refused, and sent again. */
  explicit LongData(ptl_size_t events);

  /** To be called when a message has arrived. Any thread.
   * @return true if its data have arrived; else poll() passes it to the handler later. */
  bool is_complete(gex_Rank_t source, uint64_t operation, bool is_request, const PutFields& fields,
                   const void* payload);

  /** Processes events of data that have arrived.
   * @param handle  called with each message whose data are now complete: void(WaitingMessage&).
   * @return how much was done. */
  template <typename Handle>
  unsigned int poll(Handle&& handle) {
    unsigned int done = 0;
    Arrival arrival;
    for (; done < kArrivalsAtOnce && next_arrival(&arrival); ++done) {
      WaitingMessage message;
      if (complete(arrival, &message)) handle(message);
    }
    return done;
  }
  /** Whether messages wait for data. */
  bool is_awaited() const { return waiting_count_.load(std::memory_order_relaxed) != 0; }

 private:
  static constexpr unsigned int kArrivalsAtOnce = 16;

  struct Arrival {
    gex_Rank_t source;
    uint64_t operation;
  };
  struct Waiting {
    Arrival arrival;
    WaitingMessage message;
  };

  bool next_arrival(Arrival* arrival);
  bool complete(const Arrival& arrival, WaitingMessage* message);

  ptl_handle_eq_t queue_;
  std::atomic<bool> is_disabled_{false};
  std::atomic<size_t> waiting_count_{0};
  Mutex mutex_;
  /* Vectors of few elements, which keep their memory. */
  std::vector<Arrival> arrivals_ LINTEL_GASNET_GUARDED_BY(mutex_); /* data without a message */
  std::vector<Waiting> waiting_ LINTEL_GASNET_GUARDED_BY(mutex_);
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_AM_LONG_DATA_H
