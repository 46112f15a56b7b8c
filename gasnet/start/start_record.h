/* start_record.h: what each process tells all others first. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_START_START_RECORD_H
#define LINTEL_GASNET_START_START_RECORD_H

#include <cstdint>
#include <string>

namespace lintel::gasnet {

/** Increased whenever processes of this library and of an older one would misunderstand each other:
 * the layouts of messages and records, match bits, portal indexes, algorithms of collectives. */
constexpr uint32_t kWireVersion = 1;

/** Crosses the wire. The version remains the first field in all versions. */
struct StartRecord {
  uint32_t version;
  uint32_t host_detection;
  uint64_t memory_bytes;      /* memory of the host; 0: the value of rank 0 */
  uint64_t environment_bytes; /* serialised */
  int32_t process_id;
  int32_t descriptor; /* descriptor of the control block */
  uint32_t neighbourhood_limit;
  uint16_t is_everything; /* the segment is all memory */
  uint16_t processors;    /* processors of the host; 0: unknown */
  uint64_t host_key;      /* key of the host */
};
static_assert(sizeof(StartRecord) == 48);

/** Why two processes cannot be of one job, or an empty text.
 * @param first  of rank 0.
 * @param other  of `rank`. */
std::string difference(const StartRecord& first, const StartRecord& other, uint32_t rank);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_START_START_RECORD_H
