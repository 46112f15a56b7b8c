// CountingEvent: an operation is executed once, whether its counter is moved before, while or after
// it is posted.
#include "core/events/counting_event.h"

#include "program.h"

namespace lintel::model {
namespace {

// An executor runs one operation of a counter at a time, so plain counts do.
struct Counting : TriggerExecutor {
  WaitGate gate;
  CountingEvent counter;
  CountingEvent other;
  TriggeredOperation operations[2];
  int data = 0;
  unsigned executed[2]{};
  unsigned discarded[2]{};

  Counting() {
    fence_detail::registered.store(true, std::memory_order_relaxed);
    gate.set_doorbell(nullptr);
    keep_per_thread({&trigger_work, sizeof trigger_work});
    counter.open(&gate, this);
    other.open(&gate, this);
    operations[0].threshold = 1;
    operations[1].threshold = 2;
  }
  void execute(TriggeredOperation& operation) noexcept override {
    ++executed[&operation - operations];
  }
  void release(TriggeredOperation& operation) noexcept override { execute(operation); }

  void add_one() { counter.add_success(1); }
  void add_two() {
    counter.add_success(1);
    counter.add_success(1);
  }
  void attach_first() { counter.attach(operations[0]); }
  void attach_and_add() {
    counter.attach(operations[0]);
    counter.add_success(1);
  }
  void attach_both() {
    counter.attach(operations[1]);
    counter.attach(operations[0]);
  }
  void attach_increment() {
    operations[0].kind = TriggeredKind::ct_inc;
    operations[0].target_generation = other.handle.generation();
    operations[0].count = {&other, 1, 0};
    counter.attach(operations[0]);
  }
  void attach_to_other() {
    operations[1].threshold = 1;
    other.attach(operations[1]);
  }
  void set_one() { counter.set({1, 0}); }
  void cancel() {
    counter.cancel_all(
        [this](TriggeredOperation& operation) { ++discarded[&operation - operations]; });
  }
  // The thread that counted must not execute what is posted for a later value or life.
  void set_zero_and_attach() {
    counter.set({0, 0});
    counter.attach(operations[0]);
  }
  void free_and_reuse() {
    while (!counter.reached(1)) {
    }
    require(counter.handle.end(handle), "the handle is live");
    cancel();
    counter.open(&gate, this);
    handle = counter.handle.begin(0);
    counter.attach(operations[0]);
  }
  // A thread that has seen the value relies on the execution of what the value reached.
  void wait_and_cancel() {
    while (!counter.reached(1)) {
    }
    cancel();
    require(executed[0] == 1, "the operation was executed");
  }
  uint64_t handle = counter.handle.begin(0);
  void nothing_executed() { require(executed[0] == 0, "the value was never reached"); }
  // A thread that sees a count sees the memory of what was counted.
  void count_data() {
    data = 7;
    counter.add_success(1);
  }
  void fail_data() {
    data = 7;
    counter.add_failure(1);
  }
  void set_data() {
    data = 7;
    counter.set({1, 0});
  }
  void set_failure() {
    data = 7;
    counter.set({0, 1});
  }
  void wait() {
    while (!counter.reached(1)) {
    }
    require(data == 7, "what was counted is there");
  }
  void get() {
    for (;;) {
      const ptl_ct_event_t value = counter.get();
      if (value.success != 0 || value.failure != 0) break;
    }
    require(data == 7, "what was counted is there");
  }

  void first_once() { require(executed[0] == 1, "the operation was executed once"); }
  void both_once() {
    require(executed[0] == 1 && executed[1] == 1, "each operation was executed once");
  }
  void as_counted() {
    require(executed[0] == counter.get().success, "what the counter reached was executed");
  }
  void executed_or_discarded() {
    require(executed[0] + discarded[0] == 1, "the operation was executed or discarded");
  }
};

struct Counted : Counting {
  Counted() { counter.add_success(1); }
};

// PtlCTFree waits for counts that were announced before the event was posted.
struct Announced {
  WaitGate gate;
  CountingEvent counter;
  std::atomic<uint32_t> event{0};
  Announced() {
    fence_detail::registered.store(true, std::memory_order_relaxed);
    gate.set_doorbell(nullptr);
    counter.open(&gate, nullptr);
  }
  void post_and_count() {
    const CountAnnouncement announcement(&counter);
    event.store(1, std::memory_order_release);
    counter.add_success(1);
  }
  void free() {
    if (event.load(std::memory_order_acquire) == 0) return;
    while (counter.announced_counts.load(std::memory_order_acquire) != 0) {
    }
    require(counter.get().success == 1, "the count was added");
  }
};

}  // namespace

Protocol counting_event() {
  using C = Counting;
  return {
      "CountingEvent",
      {"core/events/counting_event"},
      {share<C>("count, attach", {&C::add_one, &C::attach_first}, &C::first_once),
       share<C>("two counts, two attached", {&C::add_two, &C::attach_both}, &C::both_once),
       share<C>("two that count, attach", {&C::add_one, &C::add_one, &C::attach_first},
                &C::first_once),
       share<C>("chain", {&C::add_one, &C::attach_increment, &C::attach_to_other}, &C::both_once),
       share<C>("set, attach", {&C::set_one, &C::attach_first}, &C::first_once),
       share<C>("count, set, attach", {&C::add_one, &C::set_zero_and_attach}, &C::as_counted),
       share<C>("count, free, attach", {&C::add_one, &C::free_and_reuse}, &C::as_counted),
       share<C>("attach and count, wait and cancel", {&C::attach_and_add, &C::wait_and_cancel},
                &C::first_once),
       share<C>("count, attach, cancel", {&C::add_one, &C::attach_first, &C::cancel},
                &C::executed_or_discarded),
       share<Counted>("set, attach, cancel", {&Counted::set_zero_and_attach, &Counted::cancel},
                      &Counted::nothing_executed),
       share<C>("count, wait", {&C::count_data, &C::wait}),
       share<C>("failure, wait", {&C::fail_data, &C::wait}),
       share<C>("set, wait", {&C::set_data, &C::wait}),
       share<C>("set to failure, get", {&C::set_failure, &C::get}),
       share<C>("count, get", {&C::count_data, &C::get}),
       share<Announced>("announced", {&Announced::post_and_count, &Announced::free})}};
}

}  // namespace lintel::model
