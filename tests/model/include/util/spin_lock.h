// Stands in for src/util/spin_lock.h in the models of other protocols, so that these have fewer
// executions: a thread takes the lock as one operation, or waits. The real one has a model of its
// own. Nothing of this may exist outside of its callers, since that model has functions of these
// names.
#pragma once

#include <atomic>

#include "util/assert.h"
#include "util/thread_annotations.h"

namespace lintel {

namespace model {
void await_lock(std::atomic<bool>& held);
}

class LINTEL_CAPABILITY("lock") SpinLock {
 public:
  [[gnu::always_inline]] void lock() noexcept LINTEL_ACQUIRE() { model::await_lock(held_); }
  [[nodiscard, gnu::always_inline]] bool try_lock() noexcept LINTEL_TRY_ACQUIRE(true) {
    return !held_.exchange(true, std::memory_order_acquire);
  }
  [[gnu::always_inline]] void unlock() noexcept LINTEL_RELEASE() {
    held_.store(false, std::memory_order_release);
  }
  [[gnu::always_inline]] void assert_held() const noexcept LINTEL_ASSERT_CAPABILITY(this) {
    LINTEL_ASSERT(held_.load(std::memory_order_relaxed));
  }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace lintel
