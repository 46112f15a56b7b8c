// Portal table entries. Set-up path.
#include "core/objects/portal_operations.h"

#include "core/objects/event_queue_use.h"
#include "portals4_lintel.h"
#include "util/lock.h"

namespace lintel {

namespace {

PortalEntry* find_allocated(NetworkInterface& interface, uint32_t pt_index) noexcept {
  PortalEntry* portal = interface.portal(pt_index);
  if (portal == nullptr) return nullptr;
  const LockGuard guard(portal->lock);
  return portal->allocated ? portal : nullptr;
}

}  // namespace

int allocate_portal(NetworkInterface& interface, unsigned options, EventQueueObject* event_queue,
                    uint32_t requested, uint32_t* pt_index) noexcept {
  const LockGuard setup(interface.setup_mutex);
  uint32_t index = requested;
  const auto largest = static_cast<uint32_t>(interface.limits().max_pt_index);
  if (requested == PTL_PT_ANY) {
    for (index = 0; index <= largest; ++index)
      if (find_allocated(interface, index) == nullptr) break;
    if (index > largest) return PTL_PT_FULL;
  } else if (find_allocated(interface, index) != nullptr) {
    return PTL_PT_IN_USE;
  }
  if ((options & PTL_LINTEL_PT_HOLD) != 0 && !interface.prepare_to_hold()) return PTL_NO_SPACE;
  PortalEntry* const portal = interface.obtain_portal(index);
  if (portal == nullptr) return PTL_NO_SPACE;
  const LockGuard guard(portal->lock);
  portal->options = options;
  portal->event_queue = event_queue;
  portal->disabled_event = 0;
  if (event_queue != nullptr) {
    use_event_queue(*event_queue);
    if (portal->flow_controlled()) event_queue->queue.add_flow_control_slot();
  }
  portal->set_enabled((options & PTL_PT_ALLOC_DISABLED) == 0);
  portal->allocated = true;
  *pt_index = index;
  return PTL_OK;
}

int free_portal(NetworkInterface& interface, uint32_t pt_index) noexcept {
  const LockGuard setup(interface.setup_mutex);
  PortalEntry* portal = find_allocated(interface, pt_index);
  if (portal == nullptr) return PTL_ARG_INVALID;
  EventQueueObject* event_queue;
  {
    const LockGuard guard(portal->lock);
    if (!portal->priority.empty() || !portal->overflow.empty() || !portal->unexpected.empty() ||
        portal->retained != 0 || portal->operations != 0)
      return PTL_PT_IN_USE;
    event_queue = portal->event_queue;
    if (event_queue != nullptr && portal->flow_controlled())
      event_queue->queue.remove_flow_control_slot();
    portal->event_queue = nullptr;
    portal->allocated = false;
    portal->set_enabled(false);
  }
  interface.note_room();  // what is held is refused
  if (event_queue != nullptr) unuse_event_queue(interface, *event_queue);
  return PTL_OK;
}

int set_portal_enabled(NetworkInterface& interface, uint32_t pt_index, bool enabled) noexcept {
  PortalEntry* portal = find_allocated(interface, pt_index);
  if (portal == nullptr) return PTL_ARG_INVALID;
  const LockGuard guard(portal->lock);
  portal->set_enabled(enabled);
  if (enabled) interface.note_room();
  return PTL_OK;
}

bool portal_is_quiet(NetworkInterface& interface, uint32_t pt_index) noexcept {
  PortalEntry& portal = *interface.portal(pt_index);
  const LockGuard guard(portal.lock);
  return portal.operations == 0;
}

}  // namespace lintel
