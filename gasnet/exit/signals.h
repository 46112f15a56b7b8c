/* signals.h: signals that end the process or ask for a backtrace. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_EXIT_SIGNALS_H
#define LINTEL_GASNET_EXIT_SIGNALS_H

namespace lintel::gasnet {

/** Catches faults, but for GASNET_NO_CATCH_SIGNAL: says which it was, writes a backtrace if that is
 * enabled, and ends the job. Before the Portals library is initialised, whose own handler of faults
 * then comes first. */
void catch_signals();

/** Those that GASNET_FREEZE_SIGNAL and GASNET_BACKTRACE_SIGNAL name. */
void catch_requested_signals();

/** The number of "SIGSEGV", "SEGV", "segv" or "11"; 0 for anything else. */
int signal_number(const char* name);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_EXIT_SIGNALS_H
