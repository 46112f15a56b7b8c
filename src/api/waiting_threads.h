// Threads inside PtlEQWait, PtlCTWait and the Poll functions. A thread that waits for more than a
// moment is counted at each object that it waits for, so that freeing the object can wait for the
// thread (spec 3.13.6, 3.14.3). Message path, except await_waiting_threads().
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "api/refusal.h"
#include "api/resolve.h"
#include "core/progress/wait.h"
#include "portals4.h"
#include "util/clock.h"

namespace lintel::api {

// Refuses a waiting call whose `handle` names no object, or no longer. After PtlAbort other threads
// may free the object that this one waits for: that is not a bad argument (spec 3.5.3).
[[nodiscard, gnu::cold, gnu::noinline]] inline int refuse_wait(const Call& call,
                                                               const char* argument,
                                                               ptl_handle_any_t handle,
                                                               HandleType type) noexcept {
  return library_is_initialized() && portals_aborted.load(std::memory_order_acquire)
             ? PTL_ABORTED
             : refuse_handle(call, argument, handle, type);
}

// Counts its thread, from the eighth look on until it is destroyed, at the objects that `handles`
// name in the pool of their interfaces. The handles must stay valid memory as long as it lives.
template <auto pool>
class WaitingThread {
 public:
  WaitingThread(const ptl_handle_any_t* handles, unsigned size) noexcept
      : handles_(handles), size_(size) {}
  ~WaitingThread() {
    if (looks_ >= looks_until_counted) count(-1);
  }
  WaitingThread(const WaitingThread&) = delete;
  WaitingThread& operator=(const WaitingThread&) = delete;

  void note_look() noexcept {
    if (looks_ < looks_until_counted && ++looks_ == looks_until_counted) count(+1);
  }

 private:
  static constexpr unsigned looks_until_counted = 8;

  void count(int change) noexcept {
    for (unsigned i = 0; i < size_; ++i) {
      // Looked up without its generation: it may have been freed meanwhile.
      const HandleFields fields = decode_handle(handles_[i]);
      NetworkInterface* interface = interface_of(fields);
      if (interface == nullptr || !(interface->*pool)().contains(fields.index)) continue;
      (interface->*pool)()
          .at(fields.index)
          .waiting_threads.fetch_add(static_cast<uint32_t>(change), std::memory_order_acq_rel);
    }
    // The next look reads the handle: pairs with the fence of await_waiting_threads().
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

  const ptl_handle_any_t* handles_;
  unsigned size_;
  unsigned looks_ = 0;
};

// The handle of `object` is stale already. Threads that wait see that, or that waiting was aborted,
// and leave. Collective operations allocate and free counters in each call, so it makes no system
// call unless a thread waits: both sides have a full fence, since neither runs per message.
template <typename Object>
void await_waiting_threads(const Object& object, PhysicalInterface& physical) noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  while (object.waiting_threads.load(std::memory_order_acquire) != 0) {
    physical.poller().gate().wake_all();
    sched_yield();
  }
}

inline constexpr uint64_t no_deadline = UINT64_MAX;

// The end of a timeout of PtlEQPoll or PtlCTPoll, in milliseconds as given (spec 3.13.9, 3.14.7).
[[nodiscard]] inline uint64_t deadline_after(ptl_time_t timeout_ms) noexcept {
  return timeout_ms == PTL_TIME_FOREVER ? no_deadline : now_ns() + uint64_t{timeout_ms} * 1'000'000;
}

}  // namespace lintel::api
