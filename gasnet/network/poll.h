/* poll.h: the one place where progress is made. Message path.
 *
 * Who has queues or counters to look at registers a function. All waiting in the library goes
 * through poll() or wait_hint(); handlers of active messages run in it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_NETWORK_POLL_H
#define LINTEL_GASNET_NETWORK_POLL_H

#include <portals4.h>

#include <cstdint>

namespace lintel::gasnet {

/** Looks once, without waiting, and returns how much it did. Several threads may be in it at once
 * (PAR).
 */
using PollFunction = unsigned int (*)();

/** Set-up path: before the end of gex_Client_Init. At most eight. */
void add_poll_function(PollFunction function);

/** Says by a few loads whether poll() would find something. wait_hint() asks it again and again,
 * since a whole poll() takes longer than a message between neighbours. */
using QuickLook = bool (*)();

/** Set-up path, as add_poll_function(). */
void set_quick_look(QuickLook look);

/** Says whether nothing that a room has sent awaits an answer. By the thread that ends the process,
 * while others may be in the library. */
using QuietFunction = bool (*)();

/** Set-up path, as add_poll_function(). */
void add_quiet_function(QuietFunction function);
bool is_quiet();

/** Threads that call poll() from now on stay in it: the process ends, and starts nothing more. */
void stop_threads_that_poll();
/** The calling thread stays here. */
[[noreturn]] void stop_this_thread();
/** It does so after stop_threads_that_poll(): what failed does not matter then. */
void stop_if_process_ends();
/** How many have been stopped by either. */
uint32_t stopped_threads();

/** Calls all poll functions. @return how much was done. */
unsigned int poll();

/** To be called in a loop that waits for something, after poll().
 * @param done  what poll() returned; after many calls without work the processor is yielded. */
void wait_hint(unsigned int done);

/** Set-up path. A counter of messages that only poll() handles. At most four. */
void add_arrival_counter(ptl_handle_ct_t counter);

/** A count that ends a wait. */
struct AwaitedCount {
  ptl_handle_ct_t counter;
  ptl_size_t threshold;
};
constexpr unsigned int kMostAwaited = 8;

/** Whether more processes than processors share the host, and all messages come through Portals. A
 * thread that waits for a count sleeps then: one that yields would run again and again. */
bool sleeps_while_waiting();

/** In the place of wait_hint() where sleeps_while_waiting(), and after a poll() without work: waits
 * in Portals for a message or for one of the counts, and for a millisecond at most.
 * @param size  at most kMostAwaited. */
void sleep_until_one(const AwaitedCount* awaited, unsigned int size);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_NETWORK_POLL_H
