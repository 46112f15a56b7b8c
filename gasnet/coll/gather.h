/* gather.h: each member of a team gets the records of all members. Set-up path.
 *
 * In step k each member sends its blocks to the rank that is 2^k below, by requests with internal
 * handlers. Blocks that arrive before this process has made the call are kept.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_COLL_GATHER_H
#define LINTEL_GASNET_COLL_GATHER_H

#include <cstddef>
#include <vector>

#include "tools/headers.h"

namespace lintel::gasnet {

/** Collective over the team; also a barrier.
 * @return the records of all members by rank, `bytes` each. */
std::vector<char> gather_bytes(gex_TM_t tm, const void* mine, size_t bytes);

template <typename Record>
std::vector<Record> gather(gex_TM_t tm, const Record& mine) {
  const std::vector<char> bytes = gather_bytes(tm, &mine, sizeof mine);
  std::vector<Record> records(bytes.size() / sizeof mine);
  __builtin_memcpy(records.data(), bytes.data(), bytes.size());
  return records;
}

/** Registers the internal handler. */
void start_gather();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_COLL_GATHER_H
