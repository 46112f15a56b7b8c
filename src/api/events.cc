// Event queues (spec 3.13). Message path, except PtlEQAlloc and PtlEQFree.
#include <sched.h>

#include <atomic>

#include "api/refusal.h"
#include "api/resolve.h"
#include "api/waiting_threads.h"
#include "core/objects/event_queue_use.h"
#include "core/progress/wait.h"
#include "portals4.h"
#include "portals4_lintel.h"
#include "util/log.h"

using namespace lintel;
using namespace lintel::api;

namespace {

constexpr Call eq_alloc{"PtlEQAlloc", "spec 3.13.5"};
constexpr Call eq_free{"PtlEQFree", "spec 3.13.6"};
constexpr Call eq_get{"PtlEQGet", "spec 3.13.7"};
constexpr Call eq_get_many{"PtlLintelEQGetMany", "portals4_lintel.h"};
constexpr Call eq_wait{"PtlEQWait", "spec 3.13.8"};
constexpr Call eq_poll{"PtlEQPoll", "spec 3.13.9"};

int code_of(GetStatus status) noexcept {
  return status == GetStatus::ok        ? PTL_OK
         : status == GetStatus::dropped ? PTL_EQ_DROPPED
                                        : PTL_EQ_EMPTY;
}

// Takes the oldest event of the first queue that has one.
// PTL_OK or PTL_EQ_DROPPED: there was one. PTL_EQ_EMPTY: there was none.
// PTL_ARG_INVALID: a handle is bad, or of another physical interface. Handles behind a queue with
// an event are not checked.
[[gnu::noinline]] int take_event(const ptl_handle_eq_t* handles, unsigned size, ptl_event_t* event,
                                 unsigned* which) noexcept {
  const PhysicalInterface* physical = nullptr;
  for (unsigned i = 0; i < size; ++i) {
    const EventQueueOfInterface found = resolve_event_queue(handles[i]);
    if (found.object == nullptr) return PTL_ARG_INVALID;
    const GetStatus status = found.object->queue.get(event);
    if (status != GetStatus::empty) {
      *which = i;
      return code_of(status);
    }
    if (i != 0 && physical != &found.interface->physical()) return PTL_ARG_INVALID;
    physical = &found.interface->physical();
  }
  return PTL_EQ_EMPTY;
}

// The wait of one thread for one queue or several.
class QueueWait {
 public:
  QueueWait(const ptl_handle_eq_t* handles, unsigned size, ptl_event_t* event) noexcept
      : handles_(handles), size_(size), event_(event), thread_(handles, size) {}

  // Takes an event if there is one. True: the wait is over, with the result in code() and which().
  bool look() noexcept {
    LongCall::note_look();
    thread_.note_look();
    code_ = take_event(handles_, size_, event_, &which_);
    return code_ != PTL_EQ_EMPTY;
  }
  [[nodiscard]] int code() const noexcept { return code_; }
  [[nodiscard]] unsigned which() const noexcept { return which_; }

 private:
  const ptl_handle_eq_t* handles_;
  unsigned size_;
  ptl_event_t* event_;
  WaitingThread<&NetworkInterface::event_queues> thread_;
  int code_ = PTL_EQ_EMPTY;
  unsigned which_ = 0;
};

// PtlEQWait() when the queue is empty or the oldest event is not to be had at once.
[[gnu::noinline]] int wait_for_event(PhysicalInterface& physical, ptl_handle_eq_t handle,
                                     ptl_event_t* event) noexcept {
  const LongCall call(interface_index_of(handle));
  QueueWait wait(&handle, 1, event);
  if (!wait.look() && !physical.wait_until([&wait] { return wait.look(); }, no_deadline))
    return PTL_ABORTED;
  return wait.code() == PTL_ARG_INVALID
             ? refuse_wait(eq_wait, "eq_handle", handle, HandleType::event_queue)
             : wait.code();
}

// The wait of a thread that polls, for one queue. PtlEQFree waits for its end.
struct BriefQueueWait {
  EventQueueObject& object;
  ptl_handle_eq_t handle;
  ptl_event_t* event;

  [[nodiscard, gnu::always_inline]] bool begin() const noexcept LINTEL_REQUIRES(polling) {
    object.queue.await(event);
    if (object.handle.is(handle)) [[likely]]
      return true;
    static_cast<void>(object.queue.end_await());
    return false;
  }
  [[nodiscard, gnu::always_inline]] bool is_over() const noexcept LINTEL_REQUIRES(polling) {
    return !object.queue.is_awaited() ||
           (object.handle.is(handle) && object.queue.try_get(event) == GetStatus::ok);
  }
  [[nodiscard, gnu::always_inline]] bool end() const noexcept LINTEL_REQUIRES(polling) {
    return object.queue.end_await();
  }
};

[[gnu::noinline]] int poll_for_event(PhysicalInterface& physical, EventQueueObject& object,
                                     ptl_handle_eq_t handle, ptl_event_t* event) noexcept {
  return physical.poller().poll_briefly(BriefQueueWait{object, handle, event})
             ? PTL_OK
             : wait_for_event(physical, handle, event);
}

// PtlEQGet() when the queue is empty and a look needs a poll.
[[gnu::noinline]] int poll_for_get(PassingPolls& polls, EventQueueObject& object,
                                   ptl_handle_eq_t handle, ptl_event_t* event) noexcept {
  return polls.poll(object.queue.round_seen, BriefQueueWait{object, handle, event}) ? PTL_OK
                                                                                    : PTL_EQ_EMPTY;
}

// PtlEQGet() when the queue is empty.
[[gnu::always_inline]] inline int get_after_poll(const EventQueueOfInterface& found,
                                                 ptl_handle_eq_t handle,
                                                 ptl_event_t* event) noexcept {
  PassingPolls& polls = found.interface->physical().passing_polls();
  return polls.spares(found.object->queue.round_seen)
             ? PTL_EQ_EMPTY
             : poll_for_get(polls, *found.object, handle, event);
}

[[gnu::cold, gnu::noinline]] int refuse_poll(const ptl_handle_eq_t* handles, unsigned size,
                                             const ptl_event_t* event,
                                             const unsigned* which) noexcept {
  if (handles == nullptr) return refuse_null(eq_poll, "eq_handles");
  if (event == nullptr) return refuse_null(eq_poll, "event");
  if (which == nullptr) return refuse_null(eq_poll, "which");
  return refuse_size(eq_poll, size);
}

// A handle is bad, or of another physical interface than those before it.
[[gnu::cold, gnu::noinline]] int refuse_queues(const ptl_handle_eq_t* handles,
                                               unsigned size) noexcept {
  unsigned bad = 0;
  while (bad + 1 < size && resolve_event_queue(handles[bad]).object != nullptr) ++bad;
  return refuse_wait(eq_poll, "a handle of eq_handles", handles[bad], HandleType::event_queue);
}

[[gnu::noinline]] int wait_for_events(PhysicalInterface& physical, const ptl_handle_eq_t* handles,
                                      unsigned size, ptl_time_t timeout, ptl_event_t* event,
                                      unsigned* which) noexcept {
  const LongCall call(interface_index_of(handles[0]));
  QueueWait wait(handles, size, event);
  const bool over = physical.wait_until([&wait] { return wait.look(); }, deadline_after(timeout));
  if (!over) return portals_aborted.load(std::memory_order_acquire) ? PTL_ABORTED : PTL_EQ_EMPTY;
  *which = wait.which();
  return wait.code() == PTL_ARG_INVALID ? refuse_queues(handles, size) : wait.code();
}

// PtlEQPoll() without timeout when a look needs a poll.
[[gnu::noinline]] int poll_in_passing(const ptl_handle_eq_t* handles, unsigned size,
                                      ptl_event_t* event, unsigned* which, PassingPolls& polls,
                                      EventQueueObject& last) noexcept {
  return polls.poll(last.queue.round_seen, AnyWork{}) ? take_event(handles, size, event, which)
                                                      : PTL_EQ_EMPTY;
}

// PtlEQPoll() when all queues are empty. `last`: the last of them.
[[gnu::noinline]] int poll_empty_queues(const ptl_handle_eq_t* handles, unsigned size,
                                        ptl_time_t timeout, ptl_event_t* event, unsigned* which,
                                        EventQueueObject& last) noexcept {
  PhysicalInterface& physical = interface_at_index_of(handles[0])->physical();
  if (timeout != 0) return wait_for_events(physical, handles, size, timeout, event, which);
  PassingPolls& polls = physical.passing_polls();
  if (polls.spares(last.queue.round_seen)) [[likely]]
    return PTL_EQ_EMPTY;
  return poll_in_passing(handles, size, event, which, polls, last);
}

// PtlEQPoll() beside its common case: bad arguments, PtlAbort, queues of several logical
// interfaces, events that were lost or are being taken by another thread.
[[gnu::noinline]] int poll_queues(const ptl_handle_eq_t* handles, unsigned size, ptl_time_t timeout,
                                  ptl_event_t* event, unsigned* which) noexcept {
  if (handles == nullptr || size == 0 || event == nullptr || which == nullptr)
    return refuse_poll(handles, size, event, which);
  if (portals_aborted.load(std::memory_order_acquire))
    return library_is_initialized() ? PTL_ABORTED : refuse_before_init(eq_poll);
  const int code = take_event(handles, size, event, which);
  if (code != PTL_EQ_EMPTY) return code == PTL_ARG_INVALID ? refuse_queues(handles, size) : code;
  const EventQueueOfInterface last = resolve_event_queue(handles[size - 1]);
  return last.object == nullptr
             ? refuse_queues(handles, size)
             : poll_empty_queues(handles, size, timeout, event, which, *last.object);
}

}  // namespace

extern "C" {

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t* eq_handle) noexcept {
  const LongCall call(interface_index_of(ni_handle));
  NetworkInterface* interface = find_interface(ni_handle);
  if (interface == nullptr) return refuse_interface_handle(eq_alloc, ni_handle);
  if (eq_handle == nullptr) return refuse_null(eq_alloc, "eq_handle");
  const uint32_t index = interface->event_queues().allocate();
  if (index == Arena<EventQueueObject>::no_index)
    return refuse(PTL_NO_SPACE, eq_alloc, "max_eqs",
                  static_cast<uint64_t>(interface->limits().max_eqs),
                  "that many event queues exist, or there is no memory");
  EventQueueObject& object = interface->event_queues().at(index);
  const unsigned slots = static_cast<unsigned>(interface->limits().max_pt_index) + 1;
  if (!object.queue.open(count, slots, &interface->physical().poller().gate())) {
    interface->event_queues().release(index);
    return refuse(PTL_NO_SPACE, eq_alloc, "count", count,
                  "there is no memory for that many events");
  }
  *eq_handle = object.handle.begin(
      interface->handle_family(HandleType::event_queue, interface->event_queues(), object));
  return PTL_OK;
}

int PtlEQFree(ptl_handle_eq_t eq_handle) noexcept {
  const LongCall call(interface_index_of(eq_handle));
  const EventQueueOfInterface found = resolve_event_queue(eq_handle);
  if (found.object == nullptr || !found.object->handle.end(eq_handle))
    return refuse_handle(eq_free, "eq_handle", eq_handle, HandleType::event_queue);
  await_waiting_threads(*found.object, found.interface->physical());
  while (found.object->queue.is_awaited()) sched_yield();  // see BriefQueueWait
  static std::atomic<bool> said{false};
  if (found.object->users.load(std::memory_order_acquire) != 0)
    log_once(said, LogLevel::warn,
             "PtlEQFree: memory descriptors or portal table entries still use the queue: their "
             "events are lost; release them first (spec 3.13.6)");
  found.object->freed.store(true, std::memory_order_release);
  recycle_if_unused(*found.interface, *found.object);
  return PTL_OK;
}

int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t* event) noexcept {
  const EventQueueOfInterface found = resolve_event_queue(eq_handle);
  if (found.object == nullptr) [[unlikely]]
    return refuse_handle(eq_get, "eq_handle", eq_handle, HandleType::event_queue);
  if (event == nullptr) return refuse_null(eq_get, "event");
  const GetStatus status = found.object->queue.try_get(event);
  if (status == GetStatus::ok) return PTL_OK;
  if (status == GetStatus::contended) [[unlikely]]
    return code_of(found.object->queue.get_slowly(event));
  return get_after_poll(found, eq_handle, event);
}

int PtlLintelEQGetMany(ptl_handle_eq_t eq_handle, ptl_event_t* events, unsigned int most,
                       unsigned int* count) noexcept {
  const EventQueueOfInterface found = resolve_event_queue(eq_handle);
  if (found.object == nullptr) [[unlikely]]
    return refuse_handle(eq_get_many, "eq_handle", eq_handle, HandleType::event_queue);
  if (events == nullptr) return refuse_null(eq_get_many, "events");
  if (count == nullptr) return refuse_null(eq_get_many, "count");
  if (most == 0) return refuse(PTL_ARG_INVALID, eq_get_many, "most", most, "must not be 0");
  const GetStatus status = found.object->queue.try_get_several(events, most, *count);
  if (status == GetStatus::ok) [[likely]]
    return PTL_OK;
  const int code = status == GetStatus::empty ? get_after_poll(found, eq_handle, events)
                                              : code_of(found.object->queue.get_slowly(events));
  *count = code == PTL_OK || code == PTL_EQ_DROPPED ? 1 : 0;
  return code;
}

int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t* event) noexcept {
  const EventQueueOfInterface found = resolve_event_queue(eq_handle);
  if (found.object == nullptr) [[unlikely]]
    return refuse_wait(eq_wait, "eq_handle", eq_handle, HandleType::event_queue);
  if (event == nullptr) return refuse_null(eq_wait, "event");
  if (portals_aborted.load(std::memory_order_acquire)) [[unlikely]]
    return PTL_ABORTED;
  return found.object->queue.try_get(event) == GetStatus::ok
             ? PTL_OK
             : poll_for_event(found.interface->physical(), *found.object, eq_handle, event);
}

int PtlEQPoll(const ptl_handle_eq_t* eq_handles, unsigned int size, ptl_time_t timeout,
              ptl_event_t* event, unsigned int* which) noexcept {
  if (eq_handles == nullptr || size == 0 || event == nullptr || which == nullptr ||
      portals_aborted.load(std::memory_order_acquire)) [[unlikely]]
    return poll_queues(eq_handles, size, timeout, event, which);
  NetworkInterface* const interface = interface_at_index_of(eq_handles[0]);
  if (interface == nullptr) [[unlikely]]
    return poll_queues(eq_handles, size, timeout, event, which);
  // All calls are the last thing that is done: the common case saves no registers.
  for (unsigned i = 0;;) {
    EventQueueObject* const object = interface->find_event_queue(eq_handles[i]);
    if (object == nullptr) [[unlikely]]
      return poll_queues(eq_handles, size, timeout, event, which);
    const GetStatus status = object->queue.try_get(event);
    if (status == GetStatus::ok) [[likely]] {
      *which = i;
      return PTL_OK;
    }
    if (status != GetStatus::empty) [[unlikely]]
      return poll_queues(eq_handles, size, timeout, event, which);
    if (++i == size) return poll_empty_queues(eq_handles, size, timeout, event, which, *object);
  }
}

}  // extern "C"
