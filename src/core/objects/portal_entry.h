// One entry of a portal table: its lists, its event queue, its state (spec 3.7).
// Message path. The lock guards everything but itself. Messages to different entries are handled in
// parallel.
#pragma once

#include <cstdint>

#include "core/matching/match_list.h"
#include "core/matching/unexpected_list.h"
#include "core/objects/memory_descriptor.h"
#include "util/spin_lock.h"

namespace lintel {

struct alignas(64) PortalEntry {
  SpinLock lock;
  bool allocated = false;
  bool enabled = false;
  uint16_t index = 0;
  unsigned options = 0;
  uint32_t operations = 0;  // messages being delivered, for PtlPTDisable
  uint32_t retained = 0;    // entries off their list that headers or operations keep
  EventQueueObject* event_queue = nullptr;
  uint64_t disabled_event = 0;  // the last PTL_EVENT_PT_DISABLED, for post_into_own_slot()
  MatchList priority;
  MatchList overflow;
  UnexpectedList unexpected;

  [[nodiscard]] bool flow_controlled() const noexcept { return (options & PTL_PT_FLOWCTRL) != 0; }
};

}  // namespace lintel
