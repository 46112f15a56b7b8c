// Set-up path, but for the first long call of a thread.
#include "core/progress/long_call.h"

#include <sched.h>

#include <new>

#include "util/assert.h"
#include "util/asymmetric_fence.h"
#include "util/lock.h"
#include "util/never_destroyed.h"
#include "util/other_threads.h"

namespace lintel {

constinit thread_local CallMark own_call_mark;

namespace {

// The marks of all threads that have made a long call.
struct Registry {
  Mutex mutex;
  CallMark* first LINTEL_GUARDED_BY(mutex) = nullptr;
};

Registry& registry() noexcept {
  static NeverDestroyed<Registry> instance;
  return instance.get();
}

// Removes the mark from the registry before the thread, and its memory, ends. PtlNIFini does not
// wait for calls of later destructors of the thread.
struct Registration {
  ~Registration() {
    Registry& all = registry();
    const LockGuard guard(all.mutex);
    CallMark** link = &all.first;
    while (*link != nullptr && *link != &own_call_mark) link = &(*link)->next;
    if (*link != nullptr) *link = own_call_mark.next;
  }
};

// Whether the thread may still use what a call found before `entries` and `looks` were read.
bool is_within(const CallMark& mark, unsigned interface_index, unsigned shared, uint32_t entries,
               uint32_t looks) noexcept {
  const uint32_t at = mark.interface_index.load(std::memory_order_acquire);
  if (at == CallMark::none || at / shared != interface_index / shared) return false;
  if (mark.entries.load(std::memory_order_acquire) != entries) return false;
  // A wait at another interface looks at objects of this one only if it waits for both.
  return at == interface_index || mark.looks.load(std::memory_order_acquire) == looks;
}

}  // namespace

void LongCall::register_thread() noexcept {
  static thread_local Registration registration;
  static_cast<void>(&registration);
  Registry& all = registry();
  const LockGuard guard(all.mutex);
  LINTEL_ASSERT(!own_call_mark.registered);
  own_call_mark.next = all.first;
  own_call_mark.registered = true;
  all.first = &own_call_mark;
}

void LongCalls::await_calls(unsigned interface_index, unsigned shared, Poller& poller) noexcept {
  // From now on a thread has either set its mark or finds no interface.
  heavy_fence();
  // Nobody polls meanwhile: a poll in passing may sleep and has no mark.
  poller.exclusively([] { OtherThreads::let_run(shortest_long_ns); });
  Registry& all = registry();
  const LockGuard guard(all.mutex);
  for (const CallMark* mark = all.first; mark != nullptr; mark = mark->next) {
    if (mark == &own_call_mark) continue;
    const uint32_t entries = mark->entries.load(std::memory_order_acquire);
    const uint32_t looks = mark->looks.load(std::memory_order_acquire);
    while (is_within(*mark, interface_index, shared, entries, looks)) {
      poller.gate().wake_all();
      sched_yield();
    }
  }
}

// Called in a forked child, which has one thread.
void LongCalls::forget_other_threads() noexcept LINTEL_UNCHECKED_LOCKS {
  Registry& all = registry();
  new (&all.mutex) Mutex;  // a thread of the parent may have held it
  own_call_mark.next = nullptr;
  all.first = own_call_mark.registered ? &own_call_mark : nullptr;
}

}  // namespace lintel
