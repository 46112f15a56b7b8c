/* messages.h: the active messages of this process: entries, records, credits. Message path.
 *
 * No deadlock is possible. A request needs a credit, and for each credit there is room for a reply
 * at its sender. So a reply waits, at most, until earlier replies are acknowledged. That needs no
 * handler, so a reply only polls for acknowledgements.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_AM_MESSAGES_H
#define LINTEL_GASNET_AM_MESSAGES_H

#include "am/credits.h"
#include "am/inbox.h"
#include "am/long_data.h"
#include "am/near_ring.h"
#include "am/outbox.h"
#include "am/records.h"

namespace lintel::gasnet {

struct MessageSettings {
  uint32_t credits;        /* requests under way */
  uint32_t request_events; /* places in the queue for requests */
  unsigned int request_blocks;
  size_t block_bytes;

  /** The settings of the environment. */
  static MessageSettings read();
};

class Messages {
 public:
  explicit Messages(const MessageSettings& settings);

  /** Polls the queues and rings once. @return how much was done. */
  unsigned int poll();

  /** Sends a Short through the ring of a neighbour, without a record.
   * @return false: nothing was sent. It has too many arguments, the target is no neighbour, or
   *         there is no credit or no free slot. */
  bool send_short_near(gex_Rank_t target, bool is_reply, gex_AM_Index_t handler,
                       unsigned int numargs, const gex_AM_Arg_t* arguments);
  /** A record with a credit. Polls until one is free; with GEX_FLAG_IMMEDIATE returns NULL
   * instead. */
  SendRecord* request_record(gex_Flags_t flags);
  /** A record for a reply. Runs no handler. NULL if none is free and GEX_FLAG_IMMEDIATE is set. */
  SendRecord* reply_record(gex_Flags_t flags);
  /** Returns a record that is not needed. */
  void cancel(SendRecord* record);

  /** A number for a Long whose data are sent separately. */
  uint64_t next_operation() {
    return operations_.fetch_add(1, std::memory_order_relaxed) % kOperations;
  }
  /** Sends the message, and with it collected credits of `target`. */
  void post(SendRecord* record, gex_Rank_t target, MessageHeader header,
            const gex_AM_Arg_t* arguments);
  /** Whether a neighbour has sent something small. Costs two loads. */
  bool has_near_message() const {
    return !own_rings_->replies.is_empty() || !own_rings_->requests.is_empty();
  }
  /** Processes acknowledgements. @return whether none are outstanding. */
  bool is_quiet();
  /** Polls until the data of a posted record have arrived. */
  void wait_for(const std::atomic<bool>& source_is_free);

  uint64_t refusals() const { return outbox_.refusals(); }

 private:
  static void handle_request_event(const ptl_event_t& event);
  static void handle_reply_event(const ptl_event_t& event);
  void handle_request(gex_Rank_t source, const PutFields& fields, void* payload);
  void handle_reply(gex_Rank_t source, const PutFields& fields, void* payload);
  unsigned int poll_long_data();
  void handle(gex_Rank_t source, bool is_request, const PutFields& fields, void* payload);
  unsigned int poll_near();
  bool post_near(SendRecord& record);
  /** NULL if the rank is no neighbour. */
  NearRings* near_rings_of(gex_Rank_t rank) const {
    const gex_Rank_t index = rank - near_first_;
    return index < near_rings_.size() ? near_rings_[index] : nullptr;
  }
  bool send_credits();

  Outbox outbox_;
  RecordPool requests_;
  RecordPool replies_;
  Credits credits_;
  CreditsToReturn returns_;
  Inbox request_inbox_;
  Inbox reply_inbox_;
  LongData long_data_;
  std::atomic<uint64_t> operations_{0};
  std::atomic<unsigned int> polls_{0};
  NearRings* own_rings_;
  /* Rings by rank, beginning with the first neighbour; NULL for ranks that are no neighbours. */
  gex_Rank_t near_first_;
  std::vector<NearRings*> near_rings_;
};

Messages& messages();

/** Set-up path. */
void start_messages();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_AM_MESSAGES_H
