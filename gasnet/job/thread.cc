/* thread.cc: places for threads, and what threads must not do. Connection path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "job/thread.h"

#include <atomic>
#include <vector>

#include "tools/lock.h"

namespace lintel::gasnet {

uint64_t max_threads() {
#ifdef GASNET_SEQ
  return 1;
#else
  static const uint64_t count = [] {
    const int64_t asked =
        gasnett_getenv_int_withdefault("GASNET_MAX_THREADS", GASNETI_MAX_THREADS, 0);
    if (asked < 1 || asked > 65535)
      gasnett_fatalerror_nopos("GASNET_MAX_THREADS=%lld: give 1 to 65535",
                               static_cast<long long>(asked));
    return static_cast<uint64_t>(asked);
  }();
  return count;
#endif
}

#ifdef GASNET_SEQ

ThreadState& this_thread() {
  static ThreadState state;
  return state;
}

namespace {
std::atomic<uint32_t> g_running{1};
}

void retire_this_thread() { g_running.store(0, std::memory_order_release); }

#else

namespace {

std::atomic<uint32_t> g_running{0};
thread_local constinit bool t_runs = false;

/** Each is used again after its thread has ended. */
class Places {
 public:
  uint32_t take() {
    const LockGuard lock(mutex_);
    if (!free_.empty()) {
      const uint32_t place = free_.back();
      free_.pop_back();
      return place;
    }
    if (used_ >= max_threads())
      gasnett_fatalerror_nopos("more than %llu threads call GASNet: raise GASNET_MAX_THREADS",
                               static_cast<unsigned long long>(max_threads()));
    return used_++;
  }
  void give_back(uint32_t place) {
    const LockGuard lock(mutex_);
    gasneti_assert(place < used_ && free_.size() < used_);
    free_.push_back(place);
  }

 private:
  ProcessMutex mutex_;
  std::vector<uint32_t> free_ LINTEL_GASNET_GUARDED_BY(mutex_);
  uint32_t used_ LINTEL_GASNET_GUARDED_BY(mutex_) = 0;
};
Places& places() {
  static Places& instance = *new Places;
  return instance;
}

struct Registered : ThreadState {
  Registered() {
    t_runs = true;
    g_running.fetch_add(1, std::memory_order_relaxed);
    index = places().take();
  }
  ~Registered() {
    retire_this_thread();
    places().give_back(index);
  }
};

}  // namespace

ThreadState& this_thread() {
  static thread_local Registered state;
  return state;
}

// Calls of this thread happen before all that follows a call of running_threads() that does not
// count it.
void retire_this_thread() {
  if (!t_runs) return;
  t_runs = false;
  g_running.fetch_sub(1, std::memory_order_release);
}

#endif

uint32_t running_threads() { return g_running.load(std::memory_order_acquire); }

#ifdef GASNET_DEBUG

void check_may_communicate(const char* call) {
  const ThreadState& state = this_thread();
  const char* context = state.in_request || state.in_reply ? "in a handler of an active message"
                        : state.is_prepared                ? "between prepare and commit"
                        : state.held_locks > 0             ? "while a handler-safe lock is held"
                                                           : nullptr;
  if (context) gasnett_fatalerror_nopos("%s was called %s, where it is not allowed", call, context);
}

void check_may_reply(const char* call, bool has_replied) {
  const ThreadState& state = this_thread();
  const char* context = !state.in_request      ? "outside the handler of a request"
                        : state.held_locks > 0 ? "while a handler-safe lock is held"
                        : state.is_prepared    ? "between prepare and commit"
                        : has_replied          ? "a second time in one handler"
                                               : nullptr;
  if (context) gasnett_fatalerror_nopos("%s was called %s, where it is not allowed", call, context);
}

void check_end_of_handler(unsigned int handler) {
  const ThreadState& state = this_thread();
  if (state.held_locks > 0)
    gasnett_fatalerror_nopos("handler %u has returned while it holds a handler-safe lock", handler);
  if (state.is_prepared)
    gasnett_fatalerror_nopos("handler %u has returned between prepare and commit", handler);
}

#endif

}  // namespace lintel::gasnet

#ifdef GASNET_DEBUG
void gasneti_hsl_counted(int change) {
  int& held = lintel::gasnet::this_thread().held_locks;
  held += change;
  if (held < 0)
    gasnett_fatalerror_nopos("a handler-safe lock is unlocked by a thread that holds none");
}
#endif
