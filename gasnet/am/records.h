/* records.h: messages under way, each with a buffer for its payload. Message path.
 *
 * A record is in use until the target has accepted the message, so that it can be sent again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_AM_RECORDS_H
#define LINTEL_GASNET_AM_RECORDS_H

#include <atomic>
#include <cstddef>
#include <memory>
#include <type_traits>

#include "am/header.h"
#include "network/network.h"

namespace lintel::gasnet {

class RecordPool;

/** The retransmissions of a put that flow control has refused. */
struct Attempts {
  unsigned int refusals = 0;
  gasnett_tick_t send_again_at = 0;
};

struct SendRecord {
  RecordPool* pool = nullptr;
  std::atomic<uint32_t> next_free{0};
  char* buffer = nullptr; /* kSlotBytes */
  gex_Rank_t target = 0;
  PutFields fields;

  /* Data of a Long that a separate put brings to the segment of the target. */
  const void* data = nullptr; /* NULL if there are none or if they have arrived */
  size_t data_bytes = 0;
  ptl_size_t data_offset = 0;
  uint64_t operation = 0;                      /* identifies the data at the target */
  void* data_copy = nullptr;                   /* freed when the data have arrived */
  std::atomic<bool>* source_is_free = nullptr; /* set when the data have arrived; may be NULL */

  std::atomic<unsigned int> puts{0}; /* puts that the target has not accepted yet */
  Attempts message_attempts;
  Attempts data_attempts;
};

static_assert(std::is_trivially_destructible_v<SendRecord>);

/** Records for one portal table entry. Any thread, without a lock. */
class RecordPool {
 public:
  RecordPool(PortalIndex index, uint32_t count);

  PortalIndex index() const { return index_; }
  /** @return NULL if all are in use. */
  SendRecord* take();
  /** Whether none is in use. Exact if no thread takes any meanwhile. */
  bool are_all_free() const;
  void give_back(SendRecord* record);

 private:
  SendRecord& record(uint64_t number) const {
    return reinterpret_cast<SendRecord*>(records_.get())[number];
  }

  PortalIndex index_;
  uint32_t count_;
  /* Memory of records. A record is made when it is first taken: no page is touched before. */
  std::unique_ptr<std::byte[]> records_;
  std::unique_ptr<char[]> buffers_;
  std::atomic<uint32_t> made_{0};
  /* Number of the first free record, counted from 1. The upper half changes with every exchange, to
   * detect that a record was taken and returned in between. */
  std::atomic<uint64_t> free_{0};
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_AM_RECORDS_H
