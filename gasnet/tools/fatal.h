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

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_TOOLS_FATAL_H
