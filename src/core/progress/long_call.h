// Calls of the interface that may sleep or take long, and how PtlNIFini waits for all calls that
// other threads have begun before. Common calls, as a short PtlPut, carry no mark: they neither
// sleep nor take longer than LongCalls::shortest_long_ns, so a thread that has slept or run for
// that time is no longer in one. Marks cost a few instructions and no locked one.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/progress/poller.h"

namespace lintel {

// State of the calls of a thread. Written by that thread.
struct CallMark {
  static constexpr uint32_t none = UINT32_MAX;

  std::atomic<uint32_t> interface_index{none};  // interface of the running call
  std::atomic<uint32_t> entries{0};             // number of long calls begun
  std::atomic<uint32_t> looks{0};               // number of looks in waits, see note_look()
  CallMark* next = nullptr;                     // guarded by the lock of the registry
  bool registered = false;
};
extern constinit thread_local CallMark own_call_mark __attribute__((tls_model("initial-exec")));

// Exists as long as the call. Calls may be nested; the outermost one is marked.
class LongCall {
 public:
  explicit LongCall(unsigned interface_index) noexcept
      : outer_(own_call_mark.interface_index.load(std::memory_order_relaxed)) {
    CallMark& mark = own_call_mark;
    if (outer_ != CallMark::none) return;
    if (!mark.registered) [[unlikely]]
      register_thread();
    mark.entries.store(mark.entries.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    mark.interface_index.store(interface_index, std::memory_order_release);
    // Before the call looks for the interface. The other side has the fence, see await_calls().
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~LongCall() { own_call_mark.interface_index.store(outer_, std::memory_order_release); }
  LongCall(const LongCall&) = delete;
  LongCall& operator=(const LongCall&) = delete;

  // The call looks its objects up again, and uses none that it has found before.
  static void note_look() noexcept {
    std::atomic<uint32_t>& looks = own_call_mark.looks;
    looks.store(looks.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

 private:
  [[gnu::cold, gnu::noinline]] static void register_thread() noexcept;

  const uint32_t outer_;
};

class LongCalls {
 public:
  static constexpr uint64_t shortest_long_ns = 1'000'000;

  // Set-up path. Calls do not find the interface any more; returns when no other thread is within
  // a call that has found it. Waiting threads are woken and leave. `shared`: the number of
  // interfaces, from a multiple of it on, that have the same poller.
  static void await_calls(unsigned interface_index, unsigned shared, Poller& poller) noexcept;
  // Called in a forked child: the other threads do not exist.
  static void forget_other_threads() noexcept;
};

}  // namespace lintel
