/* mutex.h: a lock between the threads of a process. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_JOB_MUTEX_H
#define LINTEL_GASNET_JOB_MUTEX_H

#include <shared_mutex>
#include <type_traits>

#include "job/thread.h"
#include "tools/lock.h"

namespace lintel::gasnet {

/** In place of a mutex where calls are not concurrent. Shows a handler that the call that runs it
 * holds the lock. */
class HeldFlag {
 public:
  void lock() {
    gasneti_assert(!is_held_);
    is_held_ = true;
  }
  bool try_lock() { return !is_held_ && (is_held_ = true); }
  void unlock() {
    gasneti_assert(is_held_);
    is_held_ = false;
  }

 private:
  bool is_held_ = false;
};

/** A std::mutex where two threads may be in the library at once. */
using Mutex = CheckedMutex<std::conditional_t<kCallsAreConcurrent, std::mutex, HeldFlag>>;

/** Held by one thread that writes, or by several that read. */
class LINTEL_GASNET_CAPABILITY("mutex") SharedMutex {
 public:
  void lock() LINTEL_GASNET_ACQUIRE() { mutex_.lock(); }
  void unlock() LINTEL_GASNET_RELEASE() { mutex_.unlock(); }
  void lock_shared() LINTEL_GASNET_ACQUIRE_SHARED() { mutex_.lock_shared(); }
  bool try_lock_shared() LINTEL_GASNET_TRY_ACQUIRE_SHARED(true) { return mutex_.try_lock_shared(); }
  void unlock_shared() LINTEL_GASNET_RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

/** Holds the lock for reading as long as it lives. */
class LINTEL_GASNET_SCOPED_CAPABILITY SharedLockGuard {
 public:
  explicit SharedLockGuard(SharedMutex& mutex) LINTEL_GASNET_ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex.lock_shared();
  }
  /** The caller holds the lock already, as after try_lock_shared(). */
  SharedLockGuard(SharedMutex& mutex, std::adopt_lock_t) LINTEL_GASNET_REQUIRES_SHARED(mutex)
      : mutex_(mutex) {}
  SharedLockGuard(const SharedLockGuard&) = delete;
  SharedLockGuard& operator=(const SharedLockGuard&) = delete;
  ~SharedLockGuard() LINTEL_GASNET_RELEASE() { mutex_.unlock_shared(); }

 private:
  SharedMutex& mutex_;
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_JOB_MUTEX_H
