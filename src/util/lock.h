// Locks whose use the compiler checks: a mutex, and a guard of it or of any other lock.
#pragma once

#include <mutex>

#include "util/thread_annotations.h"

namespace lintel {

template <typename Underlying>
class LINTEL_CAPABILITY("mutex") CheckedMutex {
 public:
  void lock() LINTEL_ACQUIRE() { mutex_.lock(); }
  void unlock() LINTEL_RELEASE() { mutex_.unlock(); }

 private:
  Underlying mutex_;
};
using Mutex = CheckedMutex<std::mutex>;
using RecursiveMutex = CheckedMutex<std::recursive_mutex>;

// Holds the lock as long as it lives.
template <typename Lock>
class LINTEL_SCOPED_CAPABILITY LockGuard {
 public:
  explicit LockGuard(Lock& lock) LINTEL_ACQUIRE(lock) : lock_(lock) { lock.lock(); }
  // The caller holds the lock already.
  LockGuard(Lock& lock, std::adopt_lock_t) LINTEL_REQUIRES(lock) : lock_(lock) {}
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;
  ~LockGuard() LINTEL_RELEASE() { lock_.unlock(); }

 private:
  Lock& lock_;
};

}  // namespace lintel
