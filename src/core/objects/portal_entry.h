// One entry of a portal table: its lists, its event queue, its state (spec 3.7).
// Message path. Messages to different entries are handled in parallel.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/matching/match_list.h"
#include "core/matching/unexpected_list.h"
#include "core/objects/memory_descriptor.h"
#include "portals4_lintel.h"
#include "util/spin_lock.h"
#include "util/thread_annotations.h"

namespace lintel {

struct alignas(64) PortalEntry {
  SpinLock lock;
  bool allocated LINTEL_GUARDED_BY(lock) = false;
  bool enabled LINTEL_GUARDED_BY(lock) = false;
  bool takes_plain_puts LINTEL_GUARDED_BY(lock) = false;  // enabled, and no messages are held
  uint16_t index = 0;
  unsigned options LINTEL_GUARDED_BY(lock) = 0;
  // Messages being delivered, for PtlPTDisable.
  uint32_t operations LINTEL_GUARDED_BY(lock) = 0;
  // Entries off their list that headers or operations keep.
  uint32_t retained LINTEL_GUARDED_BY(lock) = 0;
  EventQueueObject* event_queue LINTEL_GUARDED_BY(lock) = nullptr;
  // The last PTL_EVENT_PT_DISABLED, for post_into_own_slot().
  uint64_t disabled_event LINTEL_GUARDED_BY(lock) = 0;
  // Initiators of which messages are held.
  uint32_t held_initiators LINTEL_GUARDED_BY(lock) = 0;
  MatchList priority LINTEL_GUARDED_BY(lock);
  MatchList overflow LINTEL_GUARDED_BY(lock);
  UnexpectedList unexpected LINTEL_GUARDED_BY(lock);
  // Entries that plain puts have used up, linked by next_in_list. The next appends take them
  // without a locked instruction. Changed under the lock.
  std::atomic<MatchNode*> spare_entries{nullptr};

  [[nodiscard]] bool flow_controlled() const noexcept LINTEL_REQUIRES(lock) {
    return (options & PTL_PT_FLOWCTRL) != 0;
  }
  [[nodiscard]] bool holds_messages() const noexcept LINTEL_REQUIRES(lock) {
    return (options & PTL_LINTEL_PT_HOLD) != 0;
  }
  void set_enabled(bool now) noexcept LINTEL_REQUIRES(lock) {
    enabled = now;
    takes_plain_puts = enabled && held_initiators == 0;
  }
  void set_held_initiators(uint32_t now) noexcept LINTEL_REQUIRES(lock) {
    held_initiators = now;
    takes_plain_puts = enabled && held_initiators == 0;
  }
};

}  // namespace lintel
