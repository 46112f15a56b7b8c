// The log lines of failed calls of drivers. Fault path.
#include "memory_kind/driver_faults.h"

#include <cstdio>

#include "util/clock.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/never_destroyed.h"

namespace lintel {

namespace {

struct Said {
  Mutex lock;
  SaidRecently recently;
};

Said& said() {
  static NeverDestroyed<Said> said;
  return said.get();
}

}  // namespace

void say_driver_fault(uint8_t kind, const char* driver, int error, const char* function,
                      size_t bytes, const char* text) noexcept {
  {
    Said& before = said();
    LockGuard guard(before.lock);
    const uint64_t key = uint64_t{kind} << 32 | static_cast<uint32_t>(error);
    if (!before.recently.is_due(key, now_ns())) return;
  }
  char length[40] = "";
  if (bytes != 0) std::snprintf(length, sizeof length, " of %zu bytes", bytes);
  log_message(LogLevel::error, "the driver of an accelerator failed: %s, %s%s: %s (%d)", driver,
              function, length, text, error);
}

}  // namespace lintel
