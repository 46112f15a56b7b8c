/* rank_list.cc: reading a list of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "job/rank_list.h"

#include <cstdlib>

namespace lintel::gasnet {

bool lists_rank(const char* text, gex_Rank_t rank) {
  for (const char* part = text; *part;) {
    if (*part == '*') return true;
    char* end = nullptr;
    const unsigned long first = std::strtoul(part, &end, 10);
    unsigned long last = first;
    if (end == part) return false;
    if (*end == '-') last = std::strtoul(end + 1, &end, 10);
    if (rank >= first && rank <= last) return true;
    part = *end == ',' ? end + 1 : end;
    if (*end && *end != ',') return false;
  }
  return false;
}

}  // namespace lintel::gasnet
