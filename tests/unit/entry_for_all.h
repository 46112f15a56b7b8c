// The description of an entry that takes requests of every process.
#pragma once

#include <portals4.h>

namespace lintel::test {

[[nodiscard]] inline ptl_me_t entry_for_all(void* start, ptl_size_t length, unsigned options,
                                            ptl_handle_ct_t counter = PTL_CT_NONE) noexcept {
  ptl_me_t entry{};
  entry.start = start;
  entry.length = length;
  entry.ct_handle = counter;
  entry.uid = PTL_UID_ANY;
  entry.options = options;
  entry.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  return entry;
}

}  // namespace lintel::test
