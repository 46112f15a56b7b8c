// Resolves the handles of the application to objects of the core. Message path.
//
// Every function of the API returns PTL_NO_INIT before PtlInit, then resolves its handles
// (PTL_ARG_INVALID); stale handles and handles of another type resolve to nullptr.
#pragma once

#include "core/library/library.h"
#include "core/progress/long_call.h"
#include "portals4.h"

namespace lintel::api {

// Returns the code of a call with a handle that did not resolve, or another bad argument. Without
// PtlInit no handle resolves, so calls check for PtlInit only then.
[[nodiscard]] inline int code_of_bad_handle() noexcept {
  return library_is_initialized() ? PTL_ARG_INVALID : PTL_NO_INIT;
}

struct DescriptorOfInterface {
  NetworkInterface* interface = nullptr;
  MemoryDescriptor* descriptor = nullptr;
};

[[nodiscard]] inline DescriptorOfInterface resolve_descriptor(ptl_handle_md_t handle) noexcept {
  NetworkInterface* interface = interface_at_index_of(handle);
  if (interface == nullptr) [[unlikely]]
    return {};
  return {interface, interface->find_descriptor(handle)};
}

struct CounterOfInterface {
  NetworkInterface* interface = nullptr;
  CountingEvent* counter = nullptr;
};

[[nodiscard]] inline CounterOfInterface resolve_counter(ptl_handle_ct_t handle) noexcept {
  NetworkInterface* interface = interface_at_index_of(handle);
  if (interface == nullptr) [[unlikely]]
    return {};
  return {interface, interface->find_counter(handle)};
}

struct EventQueueOfInterface {
  NetworkInterface* interface = nullptr;
  EventQueueObject* object = nullptr;
};

[[nodiscard]] inline EventQueueOfInterface resolve_event_queue(ptl_handle_eq_t handle) noexcept {
  NetworkInterface* interface = interface_at_index_of(handle);
  if (interface == nullptr) [[unlikely]]
    return {};
  return {interface, interface->find_event_queue(handle)};
}

// An optional counter or event queue of an object: `none` resolves to nullptr. False: the handle is
// neither `none` nor one of this interface.
[[nodiscard]] inline bool resolve_optional_counter(const NetworkInterface& interface,
                                                   ptl_handle_ct_t handle,
                                                   CountingEvent** counter) noexcept {
  *counter = nullptr;
  if (handle == PTL_CT_NONE) return true;
  const CounterOfInterface found = resolve_counter(handle);
  *counter = found.counter;
  return found.counter != nullptr && found.interface == &interface;
}

[[nodiscard]] inline bool resolve_optional_event_queue(const NetworkInterface& interface,
                                                       ptl_handle_eq_t handle,
                                                       EventQueueObject** object) noexcept {
  *object = nullptr;
  if (handle == PTL_EQ_NONE) return true;
  const EventQueueOfInterface found = resolve_event_queue(handle);
  *object = found.object;
  return found.object != nullptr && found.interface == &interface;
}

// The object behind a handle of any type exists. Not on the message path.
[[nodiscard]] inline bool object_exists(NetworkInterface& interface, uint64_t handle) noexcept {
  const HandleFields fields = decode_handle(handle);
  switch (fields.type) {
    case HandleType::interface:
      return fields.index == 0 && fields.generation == 0;
    case HandleType::memory_descriptor:
      return interface.find_descriptor(handle) != nullptr;
    case HandleType::counter:
      return interface.find_counter(handle) != nullptr;
    case HandleType::event_queue:
      return interface.find_event_queue(handle) != nullptr;
    case HandleType::entry: {
      const ListEntry* entry = interface.entry_slot(fields.index);
      return entry != nullptr && generation_is_live(fields.generation) &&
             (entry->generation.load(std::memory_order_acquire) & handle_generation_mask) ==
                 fields.generation;
    }
  }
  return false;
}

}  // namespace lintel::api
