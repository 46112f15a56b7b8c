// Counters of one physical interface, readable as status registers and printed with PTL_STATS=1.
// Message path: every counter has one writer at a time, so that counting is an ordinary addition.
#pragma once

#include <cstdint>

#include "transport/message.h"
#include "util/counter.h"

namespace lintel {

struct TrafficCounters {
  Counter messages[message_kinds];
  Counter bytes[message_kinds];
  void count(MessageKind kind, uint64_t payload_bytes) noexcept {
    messages[static_cast<unsigned>(kind)].increment();
    bytes[static_cast<unsigned>(kind)].add(payload_bytes);
  }
};

struct PollCounters {
  SharedCounter sleeps;
  SharedCounter wakeups;
};

}  // namespace lintel
