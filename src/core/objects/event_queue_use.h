// The life of event queue objects: they outlast PtlEQFree while anything may still post to them.
// Set-up path.
#pragma once

#include "core/objects/network_interface.h"

namespace lintel {

// A memory descriptor or portal table entry posts to it from now on.
inline void use_event_queue(EventQueueObject& object) noexcept {
  object.users.fetch_add(1, std::memory_order_relaxed);
}

// Recycles the object when it was freed by the application and nothing uses it any more.
inline void recycle_if_unused(NetworkInterface& interface, EventQueueObject& object) noexcept {
  bool expected = true;
  if (object.users.load(std::memory_order_acquire) == 0 &&
      object.freed.compare_exchange_strong(expected, false, std::memory_order_acq_rel)) {
    object.queue.reset();
    interface.event_queues().release(object);
  }
}

inline void unuse_event_queue(NetworkInterface& interface, EventQueueObject& object) noexcept {
  object.users.fetch_sub(1, std::memory_order_acq_rel);
  recycle_if_unused(interface, object);
}

}  // namespace lintel
