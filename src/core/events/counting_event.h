// Counting events and the firing of triggered operations (spec 3.14, 3.16).
// Message path. A counter without triggered operations costs one locked instruction and one compare
// per change; reading it, two loads.
//
// When a change brings `success` to or above thresholds, the changing thread takes all operations
// reached, in order, and runs them; a thread that finds another one running the operations of the
// same counter hands its own over and leaves. Operations that move further counters put those on a
// list of the thread in place of recursing.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/events/live_handle.h"
#include "core/events/trigger_queue.h"
#include "core/events/triggered_operation.h"
#include "core/events/wait_gate.h"
#include "portals4.h"
#include "util/assert.h"
#include "util/spin_lock.h"

namespace lintel {

class alignas(128) CountingEvent {
 public:
  // Belong to the owner of the pool.
  std::atomic<uint32_t> next_free{0};
  std::atomic<uint32_t> waiting_threads{0};  // PtlCTFree waits for them to leave
  LiveHandle handle;
  std::atomic<uint16_t> announced_counts{0};  // PtlCTFree waits for them to be added

  CountingEvent() = default;
  CountingEvent(const CountingEvent&) = delete;
  CountingEvent& operator=(const CountingEvent&) = delete;

  // Set-up path: both counts zero, nothing pending. Both arguments must outlive the use of the
  // counter. To be called before each use of a pooled object; cancel_all() ends the use.
  void open(WaitGate* gate, TriggerExecutor* executor) noexcept;

  // PtlCTGet. A thread that sees a count sees the memory of the operations counted.
  [[nodiscard]] ptl_ct_event_t get() const noexcept {
    return {success_.load(std::memory_order_acquire), failure_.load(std::memory_order_acquire)};
  }
  // Returns whether PtlCTWait would return now.
  [[nodiscard]] bool reached(ptl_size_t test) const noexcept {
    return success_.load(std::memory_order_acquire) >= test ||
           failure_.load(std::memory_order_acquire) != 0;
  }

  // Modulo 2^64 (spec 3.14). Any thread; fires what is reached before it returns, or leaves that to
  // the thread that is firing, or to the end of the TriggerHold.
  void add_success(uint64_t n) noexcept {
    // Parts of a Move one by one: a whole one would lie in memory. The addition orders the loads:
    // its store follows them, and set() acquires it.
    const uint32_t use = handle.generation();
    const uint32_t sets = sets_.load(std::memory_order_relaxed);
    const uint64_t value = success_.fetch_add(n, std::memory_order_seq_cst) + n;
    if (gate_->someone_sleeps() || reaches_threshold(value)) [[unlikely]]
      follow_up(value, use, sets);
  }
  void add_failure(uint64_t n) noexcept {
    failure_.fetch_add(n, std::memory_order_release);
    gate_->notify();
  }
  // PtlCTSet; may lower the counter. Triggers as add_success() does, and what the old value reached
  // is not lost either.
  void set(ptl_ct_event_t value) noexcept;

  // Waits for operation.threshold; if that is reached already, fires the operation as add_success()
  // would. The object belongs to the counter until it is given to the executor or to cancel_all().
  void attach(TriggeredOperation& operation) noexcept;

  // PtlCTCancelTriggered, PtlCTFree: removes every operation that is waiting and hands each to
  // `discard(TriggeredOperation&)`. Operations that were reached before are not touched, but have
  // been executed when this returns. Not to be called from an executor or within a TriggerHold.
  template <typename Discard>
  void cancel_all(Discard&& discard) noexcept {
    for (TriggeredOperation* operation = take_all(); operation != nullptr;) {
      TriggeredOperation* const next = operation->next;
      discard(*operation);
      operation = next;
    }
  }

 private:
  friend struct TriggerWork;
  struct Chain {
    TriggeredOperation* first = nullptr;
    TriggeredOperation* last = nullptr;
    void append(TriggeredOperation& operation) noexcept {
      operation.next = nullptr;
      (first == nullptr ? first : last->next) = &operation;
      last = &operation;
    }
  };
  // A counter that was moved, and its new value. A thread that sees the new value may set or free
  // the counter and post other operations before the thread that moved it runs the operations.
  // `use` and `sets` detect that.
  struct Move {
    CountingEvent* counter;
    uint64_t value;
    uint32_t use;   // generation when it was moved
    uint32_t sets;  // sets_ when it was moved, or before
  };
  [[nodiscard]] Move next_move() noexcept {
    return {this, 0, handle.generation(), sets_.load(std::memory_order_acquire)};
  }
  class ReleaseBatch;

  // The locked change before it and attach()'s locked store of the threshold before its look at the
  // value make sure that one of the two threads sees the other.
  [[nodiscard]] bool reaches_threshold(uint64_t value) const noexcept {
    return value >= next_threshold_.load(std::memory_order_seq_cst);
  }
  void follow_up(uint64_t value, uint32_t use, uint32_t sets) noexcept;
  void fire(uint64_t value, uint32_t use, uint32_t sets) noexcept;
  static void follow(Move move, ReleaseBatch& released) noexcept;
  [[nodiscard]] bool fire_locked(Move reached_value, ReleaseBatch& released, Move& move) noexcept
      LINTEL_RELEASE(lock_);
  [[nodiscard]] static bool apply(const TriggeredOperation& operation, Move& move) noexcept;
  void run_batch() noexcept;
  [[nodiscard]] TriggeredOperation* take_all() noexcept;

  SpinLock lock_;
  // Some thread runs, or is going to run, batch_ and then ready_.
  bool firing_ LINTEL_GUARDED_BY(lock_) = false;
  std::atomic<uint32_t> sets_{0};  // calls of set(); written under the lock
  std::atomic<uint64_t> success_{0};
  std::atomic<uint64_t> failure_{0};
  // Lowest threshold waiting; never higher than that while the lock is free.
  std::atomic<uint64_t> next_threshold_{TriggerQueue::no_threshold};
  WaitGate* gate_ = nullptr;
  TriggerExecutor* executor_ = nullptr;
  TriggerQueue queue_ LINTEL_GUARDED_BY(lock_);
  Chain ready_ LINTEL_GUARDED_BY(lock_);   // reached while another thread was firing
  TriggeredOperation* batch_ = nullptr;    // belongs to the firing thread
  CountingEvent* next_counter_ = nullptr;  // link of the list of the firing thread
};
static_assert(sizeof(CountingEvent) == 128);

// A count that follows an event. It is announced before the event is posted, until the count was
// added. A thread that takes the event may call PtlCTFree at once, which waits for such counts.
// A round of polling needs no announcement: PtlCTFree waits for the end of the round, too.
class CountAnnouncement {
 public:
  // `counter` is nullptr if nothing will be counted.
  explicit CountAnnouncement(CountingEvent* counter) noexcept : counter_(counter) {
    // Posting the event releases this.
    if (counter_ != nullptr) counter_->announced_counts.fetch_add(1, std::memory_order_relaxed);
  }
  ~CountAnnouncement() {
    if (counter_ == nullptr) return;
    [[maybe_unused]] const uint16_t announced =
        counter_->announced_counts.fetch_sub(1, std::memory_order_release);
    LINTEL_ASSERT(announced != 0);
  }
  CountAnnouncement(const CountAnnouncement&) = delete;
  CountAnnouncement& operator=(const CountAnnouncement&) = delete;

 private:
  CountingEvent* counter_;
};

// Counters whose operations this thread has to run, in the order in which they were reached.
struct TriggerWork {
  CountingEvent* first = nullptr;
  CountingEvent* last = nullptr;
  unsigned holds = 0;
  bool running = false;

  void add(CountingEvent& counter) noexcept;
  void run_unless_postponed() noexcept;
};

// Initial-exec: no call into the dynamic linker on the message path.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local TriggerWork trigger_work;

// Postpones triggered operations. While an object exists on a thread, operations that this thread's
// changes of counters reach are collected and not run. The end of the outermost object runs them.
// Used by callers that hold a lock which the executor may need.
class TriggerHold {
 public:
  TriggerHold() noexcept { ++trigger_work.holds; }
  ~TriggerHold() {
    LINTEL_ASSERT(trigger_work.holds != 0);
    if (--trigger_work.holds == 0 && trigger_work.first != nullptr) [[unlikely]]
      trigger_work.run_unless_postponed();
  }
  TriggerHold(const TriggerHold&) = delete;
  TriggerHold& operator=(const TriggerHold&) = delete;
};

}  // namespace lintel
