/* job_exit.h: the end of the job. Any context, also signal handlers.
 *
 * A process that wants to end the job writes the code into the control block of its neighbourhood.
 * In each process a thread sleeps on that word. Once it is written, the first of the neighbourhood
 * passes it on to other neighbourhoods by puts, and each process ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_EXIT_JOB_EXIT_H
#define LINTEL_GASNET_EXIT_JOB_EXIT_H

namespace lintel::gasnet {

/** Starts the thread, and catches exit() unless GASNET_CATCH_EXIT says no. */
void start_exit_watch();

/** Whether Portals is closed or about to be: what a thread meets there now does not matter. */
bool is_closing();

/** Says that the job ends with this code; the first one counts. Async-signal-safe. Returns.
 * @param by_failure  this process ends at once, and the others must not wait for it.
 * @return false before start_exit_watch(). */
bool request_exit(int code, bool by_failure = false);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_EXIT_JOB_EXIT_H
