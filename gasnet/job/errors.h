/* errors.h: calls that fail with a return code.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_JOB_ERRORS_H
#define LINTEL_GASNET_JOB_ERRORS_H

namespace lintel::gasnet {

/** Prints why a call failed, if gex_System_SetVerboseErrors allows it.
 * @return `code`. */
int report_error(int code, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_JOB_ERRORS_H
