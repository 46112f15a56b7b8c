/* poll.h: the only place where the library makes progress. Message path.
 *
 * A room that has queues or counters to poll registers a function. All waits of the library go
 * through poll() or wait_hint(). Handlers of active messages run in poll().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_NETWORK_POLL_H
#define LINTEL_GASNET_NETWORK_POLL_H

#include <portals4.h>

#include <cstdint>

namespace lintel::gasnet {

/** Polls once, without waiting, and returns how much it did. Several threads may run it at once
 * (PAR).
 */
using PollFunction = unsigned int (*)();

/** Set-up path: before the end of gex_Client_Init. At most eight. */
void add_poll_function(PollFunction function);

/** Returns, after a few loads, whether poll() would find something. wait_hint() calls it again and
 * again, since a whole poll() takes longer than a message between neighbours. */
using QuickLook = bool (*)();

/** Set-up path, as add_poll_function(). */
void set_quick_look(QuickLook look);

/** Returns whether everything that a room has sent has been answered. Called by the thread that
 * ends the process, while other threads may be in the library. */
using QuietFunction = bool (*)();

/** Set-up path, as add_poll_function(). */
void add_quiet_function(QuietFunction function);
bool is_quiet();

/** Threads that call poll() from now on never return: the process ends, and starts nothing more. */
void stop_threads_that_poll();
/** The calling thread never returns. */
[[noreturn]] void stop_this_thread();
/** Calls stop_this_thread() after stop_threads_that_poll(). Failures do not matter then. */
void stop_if_process_ends();

/** Calls all poll functions. @return how much was done. */
unsigned int run_poll_functions();
/** The same. Where a yield is expensive, the result is 0 only if Portals has nothing to do, too. */
unsigned int poll();

/** To be called in a loop that waits for a condition, after poll().
 * @param done  the result of poll(). After many calls without work the processor is yielded. */
void wait_hint(unsigned int done);

/** Set-up path. Adds a counter of messages that only poll() handles. At most four. */
void add_arrival_counter(ptl_handle_ct_t counter);

/** A threshold of a counter that ends a wait. */
struct AwaitedCount {
  ptl_handle_ct_t counter;
  ptl_size_t threshold;
};
constexpr unsigned int kMostAwaited = 8;

/** Whether more processes than processors share the host, and all messages come through Portals. A
 * thread that waits for a count sleeps then, since with yields it would run again and again. */
bool sleeps_while_waiting();

/** To be called before a yield or a sleep if sleeps_while_waiting(), after run_poll_functions()
 * returned 0. Has Portals poll until a poll finds nothing, which takes less time than poll() does.
 * @param size  at most kMostAwaited; 0: the thread does not wait for counts.
 * @return true as soon as a message for poll() has arrived or one of the counts is reached; without
 *         counts, as soon as Portals has done something. */
bool look_for_one(const AwaitedCount* awaited, unsigned int size);
/** To be called after that. Sleeps in Portals until then, for a millisecond at most.
 * @param size  at least 1. */
void sleep_until_one(const AwaitedCount* awaited, unsigned int size);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_NETWORK_POLL_H
