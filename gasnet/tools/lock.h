/* lock.h: locks whose use the compiler checks. For locks of one thread mode see job/mutex.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_TOOLS_LOCK_H
#define LINTEL_GASNET_TOOLS_LOCK_H

#include <mutex>

#include "tools/thread_annotations.h"

namespace lintel::gasnet {

template <typename Underlying>
class LINTEL_GASNET_CAPABILITY("mutex") CheckedMutex {
 public:
  void lock() LINTEL_GASNET_ACQUIRE() { mutex_.lock(); }
  bool try_lock() LINTEL_GASNET_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() LINTEL_GASNET_RELEASE() { mutex_.unlock(); }

 private:
  Underlying mutex_;
};

/** For any thread in all modes, also those that no client knows. */
using ProcessMutex = CheckedMutex<std::mutex>;

/** Holds the lock as long as it lives. */
template <typename Lock>
class LINTEL_GASNET_SCOPED_CAPABILITY LockGuard {
 public:
  explicit LockGuard(Lock& lock) LINTEL_GASNET_ACQUIRE(lock) : lock_(lock) { lock.lock(); }
  /** The caller holds the lock already, as after try_lock(). */
  LockGuard(Lock& lock, std::adopt_lock_t) LINTEL_GASNET_REQUIRES(lock) : lock_(lock) {}
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;
  ~LockGuard() LINTEL_GASNET_RELEASE() { lock_.unlock(); }

 private:
  Lock& lock_;
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_TOOLS_LOCK_H
