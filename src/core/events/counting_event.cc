// Firing of triggered operations (spec 3.16).
// Message path.
#include "core/events/counting_event.h"

#include <sched.h>

#include <algorithm>

#include "util/lock.h"

namespace lintel {

void TriggerExecutor::release_chain(TriggeredOperation& first, TriggeredOperation& last) noexcept {
  for (TriggeredOperation* operation = &first;;) {
    TriggeredOperation* const next = operation->next;
    const bool done = operation == &last;
    release(*operation);
    if (done) return;
    operation = next;
  }
}

void TriggerWork::add(CountingEvent& counter) noexcept {
  counter.next_counter_ = nullptr;
  (first == nullptr ? first : last->next_counter_) = &counter;
  last = &counter;
}

// Work that is added meanwhile is done here too: that is what keeps chains from recursing.
void TriggerWork::run_unless_postponed() noexcept {
  if (running || holds != 0) return;
  running = true;
  while (first != nullptr) {
    CountingEvent& counter = *first;
    first = counter.next_counter_;
    counter.run_batch();
  }
  running = false;
}

// Executed operations on their way back to the pool, several at a time.
class CountingEvent::ReleaseBatch {
 public:
  ReleaseBatch() = default;
  ReleaseBatch(const ReleaseBatch&) = delete;
  ReleaseBatch& operator=(const ReleaseBatch&) = delete;
  ~ReleaseBatch() { flush(); }

  void add(TriggerExecutor* executor, TriggeredOperation& operation) noexcept {
    if (executor != executor_ || size_ == most) {
      flush();
      executor_ = executor;
      size_ = 0;
    }
    chain_.append(operation);
    ++size_;
  }

 private:
  static constexpr unsigned most = 16;

  void flush() noexcept {
    if (chain_.first == nullptr) return;
    executor_->release_chain(*chain_.first, *chain_.last);
    chain_ = {};
  }

  TriggerExecutor* executor_ = nullptr;
  Chain chain_;
  unsigned size_ = 0;
};

void CountingEvent::open(WaitGate* gate, TriggerExecutor* executor) noexcept {
  // The counters of a pool all have the same; a thread that moved this one in its last use may be
  // looking at them.
  if (gate_ != gate) gate_ = gate;
  if (executor_ != executor) executor_ = executor;
  success_.store(0, std::memory_order_relaxed);
  failure_.store(0, std::memory_order_relaxed);
}

void CountingEvent::attach(TriggeredOperation& operation) noexcept {
  const uint64_t threshold = operation.threshold;
  ReleaseBatch released;
  lock_.lock();
  queue_.push(operation);
  // Behind an operation with a lower threshold this one needs no check: the thread that reaches
  // that threshold also checks this one.
  if (threshold < next_threshold_.load(std::memory_order_relaxed) ||
      threshold == TriggerQueue::no_threshold) {
    next_threshold_.store(threshold, std::memory_order_seq_cst);
    const uint64_t value = success_.load(std::memory_order_seq_cst);
    if (value >= threshold) {
      Move next;
      Move reached = next_move();
      reached.value = value;
      if (fire_locked(reached, released, next)) follow(next, released);
      return;
    }
  }
  lock_.unlock();
}

// Under the lock, so that no operation is posted between the change and the taking of what the old
// value reached.
void CountingEvent::set(ptl_ct_event_t value) noexcept {
  ReleaseBatch released;
  lock_.lock();
  failure_.store(value.failure, std::memory_order_release);
  const uint64_t old = success_.exchange(value.success, std::memory_order_acq_rel);
  sets_.store(sets_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  Move reached = next_move();
  reached.value = std::max(old, value.success);
  Move next;
  if (fire_locked(reached, released, next)) follow(next, released);
  gate_->notify();
}

// A function of its own, so that changes that wake and trigger nobody save no registers.
[[gnu::noinline]] void CountingEvent::follow_up(uint64_t value, uint32_t use,
                                                uint32_t sets) noexcept {
  gate_->notify();
  if (reaches_threshold(value)) fire(value, use, sets);
}

void CountingEvent::fire(uint64_t value, uint32_t use, uint32_t sets) noexcept {
  ReleaseBatch released;
  follow({this, value, use, sets}, released);
}

// Follows a chain of counters as long as each moves just one other.
void CountingEvent::follow(Move move, ReleaseBatch& released) noexcept {
  for (bool goes_on = true; goes_on;) {
    CountingEvent& counter = *move.counter;
    counter.lock_.lock();
    goes_on = counter.fire_locked(move, released, move);
  }
}

// True: `move` reached thresholds of another counter, which the caller has to fire.
bool CountingEvent::fire_locked(Move reached_value, ReleaseBatch& released, Move& move) noexcept {
  // A value from before a set() does not reach operations that were posted later. set() has run
  // what the value reached.
  const uint64_t value = reached_value.sets == sets_.load(std::memory_order_relaxed)
                             ? reached_value.value
                             : success_.load(std::memory_order_relaxed);
  TriggeredOperation* const first =
      handle.generation() == reached_value.use ? queue_.pop_reached(value) : nullptr;
  if (first == nullptr) {  // another thread took them, or the counter was freed
    lock_.unlock();
    return false;
  }
  uint64_t next = queue_.next_threshold();
  if (next > value && !firing_ && trigger_work.holds == 0 && first->kind == TriggeredKind::ct_inc) {
    // The usual link of a chain. The other counter is moved under this lock, so that operations
    // reached later take effect later.
    next_threshold_.store(next, std::memory_order_relaxed);
    const bool goes_on = apply(*first, move);
    lock_.unlock();
    if (move.counter != nullptr) move.counter->gate_->notify();
    released.add(executor_, *first);
    return goes_on;
  }

  LINTEL_ASSERT(first->threshold <= value);
  Chain reached;
  reached.append(*first);
  while (TriggeredOperation* operation = queue_.pop_reached(value)) reached.append(*operation);
  next = queue_.next_threshold();
  next_threshold_.store(next, std::memory_order_relaxed);
  if (firing_) {
    if (ready_.first == nullptr) {
      ready_ = reached;
    } else {
      ready_.last->next = reached.first;
      ready_.last = reached.last;
    }
    lock_.unlock();
    return false;
  }
  firing_ = true;
  batch_ = reached.first;
  lock_.unlock();
  trigger_work.add(*this);
  trigger_work.run_unless_postponed();
  return false;
}

// Executes a ct_inc, except for waking those who wait for `move.counter` (null if that was freed).
// True: it reached thresholds.
bool CountingEvent::apply(const TriggeredOperation& operation, Move& move) noexcept {
  const TriggeredCount& count = operation.count;
  CountingEvent& target = *count.target;
  if (target.handle.generation() != operation.target_generation) {
    move = {};
    return false;
  }
  move = target.next_move();
  move.use = operation.target_generation;
  if (count.failure != 0) target.failure_.fetch_add(count.failure, std::memory_order_release);
  if (count.success == 0) return false;
  move.value = target.success_.fetch_add(count.success, std::memory_order_seq_cst) + count.success;
  return target.reaches_threshold(move.value);
}

// Runs what this thread took when it began to fire, then what others left here meanwhile.
void CountingEvent::run_batch() noexcept {
  LINTEL_ASSERT(batch_ != nullptr);
  ReleaseBatch released;
  TriggeredOperation* operation = batch_;
  for (;;) {
    while (operation != nullptr) {
      TriggeredOperation* const next = operation->next;
      if (operation->kind == TriggeredKind::ct_inc) {
        Move move;
        const bool goes_on = apply(*operation, move);
        if (move.counter != nullptr) move.counter->gate_->notify();
        released.add(executor_, *operation);
        if (goes_on) follow(move, released);
      } else if (operation->kind == TriggeredKind::ct_set) {
        const TriggeredCount& count = operation->count;
        if (count.target->handle.generation() == operation->target_generation)
          count.target->set({count.success, count.failure});
        released.add(executor_, *operation);
      } else {
        executor_->execute(*operation);
      }
      operation = next;
    }
    const LockGuard guard(lock_);
    LINTEL_ASSERT(firing_);
    operation = ready_.first;
    ready_ = {};
    if (operation == nullptr) {
      firing_ = false;
      return;
    }
  }
}

TriggeredOperation* CountingEvent::take_all() noexcept {
  // A thread that saw the value may rely on the execution of all operations that it reached, even
  // if the thread that moved the counter has not run them yet (spec 3.16).
  const Move now = next_move();
  fire(success_.load(std::memory_order_relaxed), now.use, now.sets);
  Chain waiting;
  lock_.lock();
  while (TriggeredOperation* operation = queue_.pop_reached(TriggerQueue::no_threshold))
    waiting.append(*operation);
  next_threshold_.store(TriggerQueue::no_threshold, std::memory_order_relaxed);
  while (firing_) {
    lock_.unlock();
    sched_yield();
    lock_.lock();
  }
  lock_.unlock();
  return waiting.first;
}

}  // namespace lintel
