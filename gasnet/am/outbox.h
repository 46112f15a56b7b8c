/* outbox.h: sends records until their targets have accepted them. Message path.
 *
 * Only an acknowledgement proves that a message was accepted. A message that flow control has
 * refused is sent again after a delay; other messages are not affected.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_AM_OUTBOX_H
#define LINTEL_GASNET_AM_OUTBOX_H

#include <atomic>
#include <vector>

#include "am/records.h"
#include "job/mutex.h"

namespace lintel::gasnet {

class Outbox {
 public:
  /** @param records  the most that may be under way. */
  explicit Outbox(uint32_t records);

  /** Sends the data of a record, if it has any, and its message. Never waits. When the record is
   * accepted, it returns to its pool. */
  void post(SendRecord* record);

  /** Processes acknowledgements and sends refused messages again. Runs no handler. Any thread.
   * @return how much was done. */
  unsigned int progress();

  /** @return how many times a target has refused a message. */
  uint64_t refusals() const { return refusals_.load(std::memory_order_relaxed); }

 private:
  struct Refused {
    SendRecord* record;
    bool is_data;
    Attempts& attempts() const {
      return is_data ? record->data_attempts : record->message_attempts;
    }
  };

  void put_data(SendRecord* record);
  void put_message(SendRecord* record);
  void put_again(const Refused& refused);
  void acknowledged(SendRecord* record, bool is_data, ptl_ni_fail_t result);
  void data_have_arrived(SendRecord* record);
  unsigned int send_refused_again();

  ptl_handle_eq_t queue_;
  ptl_handle_md_t memory_; /* all of the address space */
  std::atomic<uint64_t> refusals_{0};
  std::atomic<size_t> waiting_{0}; /* size of refused_, to be read without the lock */
  Mutex mutex_;
  std::vector<Refused> refused_ LINTEL_GASNET_GUARDED_BY(mutex_);
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_AM_OUTBOX_H
