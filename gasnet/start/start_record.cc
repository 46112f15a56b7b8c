/* start_record.cc: comparison of records.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "start/start_record.h"

namespace lintel::gasnet {

std::string difference(const StartRecord& first, const StartRecord& other, uint32_t rank) {
  const std::string ranks = "ranks 0 and " + std::to_string(rank) + " differ: ";
  if (other.version != first.version)
    return ranks + "their libraries send messages of versions " + std::to_string(first.version) +
           " and " + std::to_string(other.version) +
           ": run all processes of a job with the same library";
  if (other.is_everything != first.is_everything)
    return ranks + "the program of one was compiled with GASNET_SEGMENT_EVERYTHING";
  if (other.host_detection != first.host_detection) return ranks + "set GASNET_HOST_DETECT for all";
  return "";
}

}  // namespace lintel::gasnet
