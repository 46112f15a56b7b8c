/* messages.h: the active messages of this process: entries, records, credits. Message path.
 *
 * No deadlock is possible: a request needs a credit, and for each credit there is room for a reply
 * at its sender. A reply therefore waits at most until earlier ones are acknowledged, which needs
 * no handler of anybody; so replying looks at acknowledgements only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_AM_MESSAGES_H
#define LINTEL_GASNET_AM_MESSAGES_H

#include "am/credits.h"
#include "am/inbox.h"
#include "am/outbox.h"
#include "am/records.h"

namespace lintel::gasnet {

struct MessageSettings {
  uint32_t credits;        /* requests under way */
  uint32_t request_events; /* places in the queue for requests */
  unsigned int request_blocks;
  size_t block_bytes;

  /** As the environment says. */
  static MessageSettings read();
};

class Messages {
 public:
  explicit Messages(const MessageSettings& settings);

  /** Looks once at everything. @return how much was done. */
  unsigned int poll();

  /** A record with a credit. Polls until there is one; with GEX_FLAG_IMMEDIATE returns NULL
   * instead. */
  SendRecord* request_record(gex_Flags_t flags);
  /** For a reply. Runs no handler; with GEX_FLAG_IMMEDIATE returns NULL if there is none. */
  SendRecord* reply_record(gex_Flags_t flags);
  /** Gives a record back that is not needed. */
  void cancel(SendRecord* record);

  /** Sends; gives credits of `target` back on this occasion. */
  void post(SendRecord* record, gex_Rank_t target, MessageHeader header,
            const gex_AM_Arg_t* arguments);
  /** Looks at acknowledgements. @return whether there are none to come. */
  bool is_quiet();
  /** Polls until the data of a posted record have arrived. */
  void wait_for(const std::atomic<bool>& source_is_free);

  uint64_t refusals() const { return outbox_.refusals(); }

 private:
  static void handle_request(const ptl_event_t& event);
  static void handle_reply(const ptl_event_t& event);
  bool send_credits();

  Outbox outbox_;
  RecordPool requests_;
  RecordPool replies_;
  Credits credits_;
  CreditsToReturn returns_;
  Inbox request_inbox_;
  Inbox reply_inbox_;
  std::atomic<unsigned int> polls_{0};
};

Messages& messages();

/** Set-up path. */
void start_messages();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_AM_MESSAGES_H
