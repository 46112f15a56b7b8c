/* inbox.h: a portal table entry that receives messages: its queue, its blocks, flow control.
 * Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_AM_INBOX_H
#define LINTEL_GASNET_AM_INBOX_H

#include <atomic>
#include <memory>

#include "am/header.h"
#include "network/network.h"

namespace lintel::gasnet {

/** Memory for payloads, filled from its start. When it has received its last message and the
 * handlers of all its messages have returned, it is appended again. */
struct MessageBlock {
  char* start = nullptr;
  /* Bytes of messages whose handlers have returned. The bytes of all its messages are subtracted
   * when the last message is known. 0 after a change means that the block is free. */
  std::atomic<int64_t> balance{0};
};

class Inbox {
 public:
  using Handle = void (*)(const ptl_event_t& event);

  /** @param block_bytes  at least two slots. */
  Inbox(PortalIndex index, ptl_size_t events, unsigned int blocks, size_t block_bytes,
        Handle handle);

  /** Handles a few messages. Any thread; several may call it at once. @return how many. */
  unsigned int poll();

 private:
  void append(MessageBlock& block);
  void release(MessageBlock& block, const ptl_event_t& event);
  void enable_again();

  PortalIndex index_;
  Handle handle_;
  size_t block_bytes_;
  ptl_handle_eq_t queue_;
  ptl_handle_ct_t arrivals_; /* counts messages, for threads that sleep */
  std::unique_ptr<MessageBlock[]> blocks_;
  std::unique_ptr<char[]> memory_;
  std::atomic<int> appended_{0}; /* blocks that can take a message */
  std::atomic<bool> is_disabled_{false};
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_AM_INBOX_H
