/* mutex.h: a lock between the threads of a process. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_JOB_MUTEX_H
#define LINTEL_GASNET_JOB_MUTEX_H

#include <mutex>

#include "job/thread.h"

namespace lintel::gasnet {

/** A std::mutex where two threads may be in the library at once. Otherwise it only shows a handler
 * that the call that runs it holds the lock. */
#ifdef GASNET_PAR
using Mutex = std::mutex;
#else
class Mutex {
 public:
  void lock() {
    gasneti_assert(!is_locked_);
    is_locked_ = true;
  }
  bool try_lock() { return !is_locked_ && (is_locked_ = true); }
  void unlock() { is_locked_ = false; }

 private:
  bool is_locked_ = false;
};
#endif

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_JOB_MUTEX_H
