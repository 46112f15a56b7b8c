// Memory descriptors and event queue objects as the core keeps them (spec 3.10, 3.13.5).
// Message path: read by every operation.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/events/counting_event.h"
#include "core/events/event_queue.h"
#include "core/objects/memory_region.h"
#include "core/request.h"
#include "portals4.h"
#include "util/counter.h"

namespace lintel {

struct Peer;

struct alignas(64) EventQueueObject {
  std::atomic<uint32_t> next_free{0};
  // Memory descriptors and portal table entries that post here; the ring is reused only when the
  // application has freed the queue and none is left.
  std::atomic<uint32_t> users{0};
  std::atomic<uint32_t> waiting_threads{
      0};  // inside PtlEQWait or PtlEQPoll; PtlEQFree waits for them
  std::atomic<bool> freed{false};
  LiveHandle handle;
  EventQueue queue;
};

struct alignas(64) MemoryDescriptor {
  LiveHandle handle;
  std::atomic<uint32_t> next_free{0};
  unsigned options = 0;
  // Operations that still need the memory: started, without PTL_EVENT_SEND or PTL_EVENT_REPLY
  // (spec 3.10.4).
  std::atomic<uint32_t> pending{0};
  EventQueueObject* event_queue = nullptr;
  CountingEvent* counter = nullptr;
  // The peer that the last operation went to: spares most operations a look into the peer table.
  std::atomic<Peer*> recent_peer{nullptr};
  MemoryRegion region;
  SharedCounter* dropped = nullptr;  // InterfaceStatus::dropped of its interface

  // Whether an event or a count reports that a message was sent.
  [[nodiscard]] bool reports_send() const noexcept {
    return (event_queue != nullptr && (options & PTL_MD_EVENT_SEND_DISABLE) == 0) ||
           (options & PTL_MD_EVENT_CT_SEND) != 0;
  }
};

[[nodiscard]] inline DescriptorReference reference_to(MemoryDescriptor* descriptor) noexcept {
  return {descriptor, descriptor == nullptr ? 0 : descriptor->handle.generation()};
}

inline MemoryDescriptor* DescriptorReference::resolve() const noexcept {
  return descriptor != nullptr && descriptor->handle.generation() == generation ? descriptor
                                                                                : nullptr;
}

}  // namespace lintel
