// The objects that user pointers of events name. Message path.
#pragma once

#include <cstdint>

namespace lintel::ofi {

// Whom the user pointer of an event names.
enum class OwnerKind : uint8_t {
  receive,        // an Operation
  multi_receive,  // an Operation: a buffer for several messages
  send,           // an Operation: one event when its memory is free, or when it is acknowledged
  long_send,      // an Operation: the message waits for its receiver
  fetch,          // an Operation: a receive that gets the data of a long message
  multi_fetch,    // the same for a part of a multi_receive, which is its context
  peek,           // an Operation
  memory,         // an Operation: read, write, atomic
  probe,          // an Operation: asks whether a peer lives, whose name is in `tag`
  block,          // a Block of unexpected messages
  region,         // a MemoryRegion
  counter,        // a CounterAlarm
};

// The common start of all that user pointers name.
struct EventOwner {
  OwnerKind kind;
};

}  // namespace lintel::ofi
