// List entries and match list entries as the core keeps them (spec 3.11, 3.12). Both are one type:
// a list entry is a match list entry that is only taken from the head of its list.
// Message path. Guarded by the lock of the portal table entry unless a comment says otherwise.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/events/counting_event.h"
#include "core/matching/match_list.h"
#include "core/objects/memory_region.h"
#include "portals4.h"

namespace lintel {

enum class EntryState : uint8_t {
  free,
  linked,    // the entry is on its list
  unlinked,  // the entry was taken off its list; kept while operations or headers refer to it
};

struct ListEntry : MatchNode {
  std::atomic<uint32_t> next_free{0};
  std::atomic<uint32_t> generation{0};
  EntryState state = EntryState::free;
  ptl_list_t list = PTL_PRIORITY_LIST;
  uint16_t pt_index = 0;
  // A put that fits is placed at the requested offset, in memory of the host, and posts one event
  // at most.
  bool takes_plain_puts = false;
  bool unlink_announced = false;  // PTL_EVENT_AUTO_UNLINK was posted or is disabled
  ptl_uid_t uid = 0;
  unsigned options = 0;
  uint32_t operations = 0;          // messages being delivered
  uint32_t unexpected_headers = 0;  // headers that refer to this overflow entry
  uint64_t local_offset = 0;        // bytes (PTL_ME_MANAGE_LOCAL)
  uint64_t min_free = 0;            // bytes
  void* user_ptr = nullptr;
  CountingEvent* counter = nullptr;
  MemoryRegion region;
  // Generation, as in the handle, of a triggered append that is not due yet; 0: none. The thread
  // that clears it performs the append or cancels it.
  std::atomic<uint32_t> reserved_for{0};
  // Generation, as in the handle, of a former use of this slot whose end PtlMEUnlink has reported
  // to the program.
  std::atomic<uint32_t> end_told_of{0};

  [[nodiscard]] bool has(unsigned option) const noexcept { return (options & option) != 0; }
};

}  // namespace lintel
