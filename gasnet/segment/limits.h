/* limits.h: how large a segment may be (GASNET_MAX_SEGSIZE). Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_SEGMENT_LIMITS_H
#define LINTEL_GASNET_SEGMENT_LIMITS_H

#include <cstdint>

namespace lintel::gasnet {

/** The memory that the processes of this host can use: that of the machine or of the control
 * group. */
uint64_t memory_of_host();

/** The largest segment of a process.
 * @param text            "512MB", "0.5" or "3/4" (of the memory), with "/P" (for a process) or "/H"
 *                        (shared by those of the host) behind it. "/P" if it has neither.
 * @param memory_bytes    of the host.
 * @param processes       of the job on the host.
 * @return bytes, a multiple of pages and at least one page; 0 if the text is not valid. */
uint64_t parse_segment_limit(const char* text, uint64_t memory_bytes, unsigned int processes);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_SEGMENT_LIMITS_H
