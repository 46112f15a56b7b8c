// Counting events (spec 3.14). Message path, except PtlCTAlloc and PtlCTFree.
#include <sched.h>

#include "api/refusal.h"
#include "api/resolve.h"
#include "api/waiting_threads.h"
#include "core/objects/list_operations.h"
#include "core/progress/wait.h"
#include "portals4.h"

using namespace lintel;
using namespace lintel::api;

namespace {

// PtlCTGet should cost little more than two loads (implementation note 14). But a program may call
// only PtlCTGet, in a loop. So it polls every now and then. The first poll comes early, since the
// program may look rarely.
constexpr unsigned gets_per_poll = 32;
constexpr unsigned first_gets = 8;
constexpr uint64_t rare_get_ns = 50'000;
struct GetPolls {
  unsigned until_poll = first_gets;
  unsigned between = first_gets;
  uint64_t last_ns = 0;
};
__attribute__((tls_model("initial-exec"))) thread_local GetPolls get_polls;

constexpr Call ct_alloc{"PtlCTAlloc", "spec 3.14.2"};
constexpr Call ct_free{"PtlCTFree", "spec 3.14.3"};
constexpr Call ct_cancel_triggered{"PtlCTCancelTriggered", "spec 3.14.4"};
constexpr Call ct_get{"PtlCTGet", "spec 3.14.5"};
constexpr Call ct_wait{"PtlCTWait", "spec 3.14.6"};
constexpr Call ct_poll{"PtlCTPoll", "spec 3.14.7"};
constexpr Call ct_set{"PtlCTSet", "spec 3.14.8"};
constexpr Call ct_inc{"PtlCTInc", "spec 3.14.9"};

// Triggered operations that will never run go back to their pool.
void discard(NetworkInterface& interface, TriggeredOperation& operation) noexcept {
  if (operation.kind == TriggeredKind::me_append)
    cancel_reserved(interface, decode_handle(operation.entry.handle));
  interface.executor()->release(operation);
}

void cancel_triggered(NetworkInterface& interface, CountingEvent& counter) noexcept {
  counter.cancel_all(
      [&interface](TriggeredOperation& operation) { discard(interface, operation); });
}

// The wait of one thread for one counter or several.
class CounterWait {
 public:
  CounterWait(const ptl_handle_ct_t* handles, const ptl_size_t* tests, unsigned size,
              ptl_ct_event_t* event) noexcept
      : handles_(handles), tests_(tests), size_(size), event_(event), thread_(handles, size) {}

  // Checks each counter once. The wait is over when one has reached its test, counts a failure, or
  // was freed (spec 3.14.6, 3.14.7).
  bool look() noexcept {
    LongCall::note_look();
    thread_.note_look();
    for (unsigned i = 0; i < size_; ++i) {
      const CounterOfInterface found = resolve_counter(handles_[i]);
      which_ = i;
      if (found.counter == nullptr) [[unlikely]] {
        code_ = PTL_ARG_INVALID;
        return true;
      }
      const ptl_ct_event_t value = found.counter->get();
      if (value.success >= tests_[i] || value.failure != 0) {
        *event_ = value;
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] int code() const noexcept { return code_; }
  [[nodiscard]] unsigned which() const noexcept { return which_; }

 private:
  const ptl_handle_ct_t* handles_;
  const ptl_size_t* tests_;
  unsigned size_;
  ptl_ct_event_t* event_;
  WaitingThread<&NetworkInterface::counters> thread_;
  unsigned which_ = 0;
  int code_ = PTL_OK;
};

// Polls for calls of PtlCTGet. Without a progress thread a program that calls rarely polls each
// time.
[[gnu::cold, gnu::noinline]] void poll_for_gets(PhysicalInterface& physical) noexcept {
  PassingPolls& polls = physical.passing_polls();
  unsigned next = gets_per_poll;
  if (polls.checks_peers()) {
    const uint64_t now = now_ns();
    next = now - get_polls.last_ns > get_polls.between * rare_get_ns ? 1 : first_gets;
    get_polls.last_ns = now;
  }
  get_polls.until_poll = get_polls.between = next;
  polls.poll();
}

// Counts a call that returns at once and may be repeated in a loop. Some of them poll.
void note_get(PhysicalInterface& physical) noexcept {
  if (--get_polls.until_poll == 0) [[unlikely]]
    poll_for_gets(physical);
}

void await_announced_counts(const CountingEvent& counter) noexcept {
  while (counter.announced_counts.load(std::memory_order_acquire) != 0) sched_yield();
}

// Refuses a call of PtlCTWait whose handle names no counter, or whose `event` is NULL.
[[gnu::cold, gnu::noinline]] int refuse_count(ptl_handle_ct_t handle,
                                              const CountingEvent* counter) noexcept {
  return counter == nullptr ? refuse_wait(ct_wait, "ct_handle", handle, HandleType::counter)
                            : refuse_null(ct_wait, "event");
}

[[gnu::noinline]] int wait_for_count(PhysicalInterface& physical, ptl_handle_ct_t handle,
                                     ptl_size_t test, ptl_ct_event_t* event) noexcept {
  const LongCall call(interface_index_of(handle));
  CounterWait wait(&handle, &test, 1, event);
  if (!physical.wait_until([&wait] { return wait.look(); }, no_deadline)) return PTL_ABORTED;
  return wait.code() == PTL_ARG_INVALID
             ? refuse_wait(ct_wait, "ct_handle", handle, HandleType::counter)
             : wait.code();
}

// PtlCTWait() of a counter with a failure. Other operations may still have to end.
[[gnu::noinline]] int return_failure(PhysicalInterface& physical, ptl_ct_event_t value,
                                     ptl_ct_event_t* event) noexcept {
  note_get(physical);
  *event = value;
  return PTL_OK;
}

// The wait of a thread that polls, for one counter, which may be freed meanwhile. PtlNIFini waits
// for its end.
struct BriefCounterWait {
  const CountingEvent& counter;
  ptl_size_t test;
  ptl_ct_event_t* event;

  [[nodiscard, gnu::always_inline]] bool begin() const noexcept { return true; }
  [[nodiscard, gnu::always_inline]] bool is_over() const noexcept {
    const ptl_ct_event_t value = counter.get();
    if (value.success < test) return false;
    *event = value;
    return true;
  }
  [[nodiscard, gnu::always_inline]] bool end() const noexcept { return false; }
};

[[gnu::noinline]] int poll_for_count(PhysicalInterface& physical, const CountingEvent& counter,
                                     ptl_handle_ct_t handle, ptl_size_t test,
                                     ptl_ct_event_t* event) noexcept {
  return physical.poller().poll_briefly(BriefCounterWait{counter, test, event}) &&
                 counter.handle.is(handle)
             ? PTL_OK
             : wait_for_count(physical, handle, test, event);
}

}  // namespace

extern "C" {

int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t* ct_handle) noexcept {
  const LongCall call(interface_index_of(ni_handle));
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return refuse_interface_handle(ct_alloc, ni_handle);
  if (ct_handle == nullptr) return refuse_null(ct_alloc, "ct_handle");
  const uint32_t index = interface->counters().allocate();
  if (index == Arena<CountingEvent>::no_index)
    return refuse(PTL_NO_SPACE, ct_alloc, "max_cts",
                  static_cast<uint64_t>(interface->limits().max_cts),
                  "that many counting events exist, or there is no memory");
  CountingEvent& counter = interface->counters().at(index);
  counter.open(&interface->physical().poller().gate(), interface->executor());
  *ct_handle = counter.handle.begin(
      interface->handle_family(HandleType::counter, interface->counters(), counter));
  return PTL_OK;
}

int PtlCTFree(ptl_handle_ct_t ct_handle) noexcept {
  const LongCall call(interface_index_of(ct_handle));
  const CounterOfInterface found = resolve_counter(ct_handle);
  if (found.counter == nullptr || !found.counter->handle.end(ct_handle))
    return refuse_handle(ct_free, "ct_handle", ct_handle, HandleType::counter);
  cancel_triggered(*found.interface, *found.counter);
  await_waiting_threads(*found.counter, found.interface->physical());
  // A count that is on its way must not reach the next counter in this place.
  await_announced_counts(*found.counter);
  found.interface->physical().poller().token().finish_round();
  found.interface->counters().release(*found.counter);
  return PTL_OK;
}

int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle) noexcept {
  const LongCall call(interface_index_of(ct_handle));
  const CounterOfInterface found = resolve_counter(ct_handle);
  if (found.counter == nullptr)
    return refuse_handle(ct_cancel_triggered, "ct_handle", ct_handle, HandleType::counter);
  cancel_triggered(*found.interface, *found.counter);
  return PTL_OK;
}

int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t* event) noexcept {
  const CounterOfInterface found = resolve_counter(ct_handle);
  if (found.counter == nullptr) [[unlikely]]
    return refuse_handle(ct_get, "ct_handle", ct_handle, HandleType::counter);
  if (event == nullptr) return refuse_null(ct_get, "event");
  note_get(found.interface->physical());
  *event = found.counter->get();
  return PTL_OK;
}

int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t* event) noexcept {
  const CounterOfInterface found = resolve_counter(ct_handle);
  if (found.counter == nullptr || event == nullptr) [[unlikely]]
    return refuse_count(ct_handle, found.counter);
  if (portals_aborted.load(std::memory_order_acquire)) return PTL_ABORTED;
  const ptl_ct_event_t value = found.counter->get();
  if (value.success >= test) [[likely]] {
    *event = value;
    return PTL_OK;
  }
  if (value.failure != 0) [[unlikely]]
    return return_failure(found.interface->physical(), value, event);
  return poll_for_count(found.interface->physical(), *found.counter, ct_handle, test, event);
}

int PtlCTPoll(const ptl_handle_ct_t* ct_handles, const ptl_size_t* tests, unsigned int size,
              ptl_time_t timeout, ptl_ct_event_t* event, unsigned int* which) noexcept {
  if (!library_is_initialized()) return refuse_before_init(ct_poll);
  if (ct_handles == nullptr) return refuse_null(ct_poll, "ct_handles");
  if (tests == nullptr) return refuse_null(ct_poll, "tests");
  if (size == 0) return refuse_size(ct_poll, size);
  if (event == nullptr) return refuse_null(ct_poll, "event");
  if (which == nullptr) return refuse_null(ct_poll, "which");
  if (portals_aborted.load(std::memory_order_acquire)) return PTL_ABORTED;
  const LongCall call(interface_index_of(ct_handles[0]));
  PhysicalInterface* physical = nullptr;
  for (unsigned i = 0; i < size; ++i) {
    const CounterOfInterface found = resolve_counter(ct_handles[i]);
    if (found.counter == nullptr ||
        (physical != nullptr && physical != &found.interface->physical()))
      return refuse_wait(ct_poll, "a handle of ct_handles", ct_handles[i], HandleType::counter);
    physical = &found.interface->physical();
  }
  CounterWait wait(ct_handles, tests, size, event);
  bool over = wait.look();
  if (over) {
    note_get(*physical);
  } else if (timeout == 0) {
    over = physical->passing_polls().poll_now() && wait.look();
  } else {
    over = physical->wait_until([&wait] { return wait.look(); }, deadline_after(timeout));
    if (!over && portals_aborted.load(std::memory_order_acquire)) return PTL_ABORTED;
  }
  if (!over) return PTL_CT_NONE_REACHED;
  *which = wait.which();
  return wait.code() == PTL_ARG_INVALID ? refuse_wait(ct_poll, "a handle of ct_handles",
                                                      ct_handles[wait.which()], HandleType::counter)
                                        : wait.code();
}

int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct) noexcept {
  const CounterOfInterface found = resolve_counter(ct_handle);
  if (found.counter == nullptr)
    return refuse_handle(ct_set, "ct_handle", ct_handle, HandleType::counter);
  found.counter->set(new_ct);
  return PTL_OK;
}

int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment) noexcept {
  const CounterOfInterface found = resolve_counter(ct_handle);
  if (found.counter == nullptr) [[unlikely]]
    return refuse_handle(ct_inc, "ct_handle", ct_handle, HandleType::counter);
  if (increment.success != 0 && increment.failure != 0) [[unlikely]]
    return refuse(PTL_ARG_INVALID, ct_inc, "increment.failure", increment.failure, one_field);
  if (increment.failure != 0) {
    found.counter->add_failure(increment.failure);
  } else {
    found.counter->add_success(increment.success);
  }
  return PTL_OK;
}

}  // extern "C"
