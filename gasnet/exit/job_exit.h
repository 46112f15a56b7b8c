/* job_exit.h: the end of the job. Any context, also signal handlers.
 *
 * A process that ends the job writes the exit code into the control block of its neighbourhood. In
 * each process a thread sleeps on that word. Once it is written, the first process of the
 * neighbourhood puts it to other neighbourhoods, and each process ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_EXIT_JOB_EXIT_H
#define LINTEL_GASNET_EXIT_JOB_EXIT_H

namespace lintel::gasnet {

/** Starts the thread. Also intercepts exit(), unless GASNET_CATCH_EXIT is 0. */
void start_exit_watch();

/** Whether Portals is closed or about to be. Errors of calls of Portals do not matter then. */
bool is_closing();

/** Ends the job with this code; the first call in the job decides. Async-signal-safe. Returns.
 * @param by_failure  this process ends at once, and the others must not wait for it.
 * @return false if start_exit_watch() was not called yet. */
bool request_exit(int code, bool by_failure = false);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_EXIT_JOB_EXIT_H
