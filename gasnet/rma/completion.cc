/* completion.cc: testing events and waiting for them, implicit operations, access regions. Message
 * path.
 *
 * A test that fails does not change the event. A test runs no handlers; a wait polls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <bit>
#include <utility>

#include "job/thread.h"
#include "network/poll.h"
#include "rma/event.h"

namespace lintel::gasnet {
namespace {

constexpr uintptr_t kLeafBit = 1;

bool is_leaf(gex_Event_t event) { return (std::bit_cast<uintptr_t>(event) & kLeafBit) != 0; }

gasneti_event* root_of(gex_Event_t event) {
  return std::bit_cast<gasneti_event*>(std::bit_cast<uintptr_t>(event) & ~kLeafBit);
}

/** @return true if the event is complete; a root has been released then. */
bool finish(gex_Event_t event, EventPool& pool) {
  if (!root_of(event)->is_complete()) return false;
  if (!is_leaf(event)) EventPool::release(*event, pool);
  return true;
}

/** Result of a test of an array of events. */
struct Outcome {
  size_t completed = 0;
  size_t pending = 0;
};

/** Marks the complete events of an array. An array may have a leaf and its root in any order, so
 * roots are released only when all leaves have been tested. */
Outcome finish_each(gex_Event_t* events, size_t count) {
  Outcome outcome;
  gasneti_event* complete_roots = nullptr;
  for (const bool leaves : {false, true}) {
    for (size_t i = 0; i < count; ++i) {
      const gex_Event_t event = events[i];
      if (event == GEX_EVENT_INVALID || is_leaf(event) != leaves) continue;
      if (!root_of(event)->is_complete()) {
        ++outcome.pending;
        continue;
      }
      if (!leaves) {
        event->next = complete_roots;
        complete_roots = event;
      }
      events[i] = GEX_EVENT_INVALID;
      ++outcome.completed;
    }
  }
  EventPool& pool = this_threads_events().pool;
  while (complete_roots) {
    gasneti_event& event = *complete_roots;
    complete_roots = event.next;
    EventPool::release(event, pool);
  }
  return outcome;
}

bool some_completed(gex_Event_t* events, size_t count) {
  const Outcome outcome = finish_each(events, count);
  return outcome.completed != 0 || outcome.pending == 0;
}

bool all_completed(gex_Event_t* events, size_t count) {
  return finish_each(events, count).pending == 0;
}

/** Polls in a wait without events. The program may make no other call that runs handlers. */
void poll_once() {
  const ThreadState& thread = this_thread();
  if (!thread.in_request && !thread.in_reply) run_poll_functions();
}

/** Waits until `is_over`, a test of an array of events, returns true. */
template <typename IsOver>
void wait_for_each(const gex_Event_t* events, size_t count, IsOver is_over) {
  if (is_over()) return poll_once();
  Wait wait;
  while (!is_over()) {
    if (!wait.poll()) continue;
    for (size_t i = 0; i < count; ++i)
      if (events[i] != GEX_EVENT_INVALID) wait.add(*root_of(events[i]));
    wait.pause();
  }
}

bool is_complete(const gasneti_event* event) { return !event || event->is_complete(); }

bool implicit_completed(gex_EC_t mask) {
  const ThreadEvents& events = this_threads_events();
  if (events.region)
    gasnett_fatalerror_nopos("gex_NBI_Test or gex_NBI_Wait was called in an access region");
  return (!(mask & GEX_EC_GET) || is_complete(events.gets)) &&
         (!(mask & GEX_EC_PUT) || is_complete(events.puts)) &&
         (!(mask & GEX_EC_RMW) || is_complete(events.updates)) &&
         (!(mask & (GEX_EC_PUT | GEX_EC_LC)) || is_complete(events.group_puts));
}

}  // namespace
}  // namespace lintel::gasnet

using namespace lintel::gasnet;

int gex_Event_Test(gex_Event_t event) {
  check_may_communicate("gex_Event_Test");
  if (event == GEX_EVENT_INVALID || finish(event, this_threads_events().pool)) return GASNET_OK;
  return GASNET_ERR_NOT_READY;
}

void gex_Event_Wait(gex_Event_t event) {
  if (event == GEX_EVENT_INVALID) return poll_once();
  check_may_communicate("gex_Event_Wait");
  EventPool& pool = this_threads_events().pool;
  bool has_polled = false;
  for (unsigned int looks = root_of(event)->looks_before_poll(); looks != 0; --looks) {
    if (finish(event, pool)) return has_polled ? void() : poll_once();
    // The poll takes about as long as the message that ends the wait.
    if (std::exchange(has_polled, true))
      gasnett_spinloop_hint();
    else
      poll_once();
  }
  wait_for_each(&event, 1, [&] { return finish(event, pool); });
}

int gex_Event_TestSome(gex_Event_t* pevent, size_t numevents, gex_Flags_t /*flags*/) {
  check_may_communicate("gex_Event_TestSome");
  return some_completed(pevent, numevents) ? GASNET_OK : GASNET_ERR_NOT_READY;
}

void gex_Event_WaitSome(gex_Event_t* pevent, size_t numevents, gex_Flags_t /*flags*/) {
  check_may_communicate("gex_Event_WaitSome");
  wait_for_each(pevent, numevents, [=] { return some_completed(pevent, numevents); });
}

int gex_Event_TestAll(gex_Event_t* pevent, size_t numevents, gex_Flags_t /*flags*/) {
  check_may_communicate("gex_Event_TestAll");
  return all_completed(pevent, numevents) ? GASNET_OK : GASNET_ERR_NOT_READY;
}

void gex_Event_WaitAll(gex_Event_t* pevent, size_t numevents, gex_Flags_t /*flags*/) {
  check_may_communicate("gex_Event_WaitAll");
  wait_for_each(pevent, numevents, [=] { return all_completed(pevent, numevents); });
}

gex_Event_t gex_Event_QueryLeaf(gex_Event_t root, gex_EC_t /*event_category*/) {
  if (root == GEX_EVENT_INVALID) return root;
  return std::bit_cast<gex_Event_t>(std::bit_cast<uintptr_t>(root) | kLeafBit);
}

int gex_NBI_Test(gex_EC_t event_mask, gex_Flags_t /*flags*/) {
  check_may_communicate("gex_NBI_Test");
  return implicit_completed(event_mask) ? GASNET_OK : GASNET_ERR_NOT_READY;
}

void gex_NBI_Wait(gex_EC_t event_mask, gex_Flags_t /*flags*/) {
  check_may_communicate("gex_NBI_Wait");
  const ThreadEvents& events = this_threads_events();
  if (implicit_completed(event_mask)) return poll_once();
  Wait wait;
  while (!implicit_completed(event_mask)) {
    if (!wait.poll()) continue;
    for (const gasneti_event* const event :
         {events.gets, events.puts, events.updates, events.group_puts})
      if (!is_complete(event)) wait.add(*event);
    wait.pause();
  }
}

void gex_NBI_BeginAccessRegion(gex_Flags_t /*flags*/) {
  check_may_communicate("gex_NBI_BeginAccessRegion");
  ThreadEvents& events = this_threads_events();
  if (events.region) gasnett_fatalerror_nopos("gex_NBI_BeginAccessRegion: regions do not nest");
  events.region = &events.pool.take_always();
}

gex_Event_t gex_NBI_EndAccessRegion(gex_Flags_t /*flags*/) {
  check_may_communicate("gex_NBI_EndAccessRegion");
  ThreadEvents& events = this_threads_events();
  if (!events.region) gasnett_fatalerror_nopos("gex_NBI_EndAccessRegion: there is no region");
  const gex_Event_t event = events.region;
  events.region = nullptr;
  return event;
}
