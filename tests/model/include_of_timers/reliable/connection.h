// Stands in for src/reliable/connection.h in the model of timers: what these use of a connection.
#pragma once

#include <cstdint>

#include "util/spin_lock.h"

namespace lintel {

struct Connection;
struct ConnectionHook {
  Connection* next = nullptr;
  bool linked = false;
};
struct Connection {
  SpinLock lock;
  ConnectionHook with_timer;
  uint64_t due_ns = UINT64_MAX;  // under the lock
  bool has_fired = false;        // poller
};

}  // namespace lintel
