/* fatal.h: how fatal errors end the process.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_TOOLS_FATAL_H
#define LINTEL_GASNET_TOOLS_FATAL_H

namespace lintel::gasnet {

/** Text that identifies the process in messages, such as "(rank 3 of 8)"; empty without a job.
 * @param text  must remain valid. */
void set_process_label(const char* text);
const char* process_label();

/** Writes a text of at most 2 KiB with one call, so that messages of several processes do not mix.
 * Neither allocates nor locks. */
[[gnu::format(printf, 2, 3)]] void write_message(int descriptor, const char* format, ...);

/** Looks whether GASNET_FREEZE_ON_ERROR is set. Set-up path. */
void read_freeze_on_error();
/** gasnett_freezeForDebuggerErr() as the variable was when it was read: signal handlers cannot look
 * at the environment. */
void freeze_on_error();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_TOOLS_FATAL_H
