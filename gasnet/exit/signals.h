/* signals.h: signals that end the process or write a backtrace. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_EXIT_SIGNALS_H
#define LINTEL_GASNET_EXIT_SIGNALS_H

namespace lintel::gasnet {

/** Installs handlers of faults, except those in GASNET_NO_CATCH_SIGNAL. A handler prints the
 * signal, writes a backtrace if that is enabled, and ends the job. To be called before the Portals
 * library is initialised: the handler of that library then runs first. */
void catch_signals();

/** Installs handlers of the signals in GASNET_FREEZE_SIGNAL and GASNET_BACKTRACE_SIGNAL. */
void catch_requested_signals();

/** The number of "SIGSEGV", "SEGV", "segv" or "11"; 0 for anything else. */
int signal_number(const char* name);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_EXIT_SIGNALS_H
