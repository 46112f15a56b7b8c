// From the handles of the application to the objects of the core. Message path.
//
// Every function of the API starts with library_is_initialized() (PTL_NO_INIT) and then resolves its
// handles (PTL_ARG_INVALID); stale handles and handles of another type resolve to nullptr.
#pragma once

#include "core/objects/library.h"
#include "portals4.h"

namespace lintel::api {

struct DescriptorOfInterface {
  NetworkInterface* interface = nullptr;
  MemoryDescriptor* descriptor = nullptr;
};

[[nodiscard]] inline DescriptorOfInterface resolve_descriptor(ptl_handle_md_t handle) noexcept {
  const HandleFields fields = decode_handle(handle);
  if (fields.type != HandleType::memory_descriptor) [[unlikely]]
    return {};
  NetworkInterface* interface = interface_of(fields);
  if (interface == nullptr) [[unlikely]]
    return {};
  return {interface, interface->find_descriptor(fields)};
}

struct CounterOfInterface {
  NetworkInterface* interface = nullptr;
  CountingEvent* counter = nullptr;
};

[[nodiscard]] inline CounterOfInterface resolve_counter(ptl_handle_ct_t handle) noexcept {
  const HandleFields fields = decode_handle(handle);
  if (fields.type != HandleType::counter) [[unlikely]]
    return {};
  NetworkInterface* interface = interface_of(fields);
  if (interface == nullptr) [[unlikely]]
    return {};
  return {interface, interface->find_counter(fields)};
}

struct EventQueueOfInterface {
  NetworkInterface* interface = nullptr;
  EventQueueObject* object = nullptr;
};

[[nodiscard]] inline EventQueueOfInterface resolve_event_queue(ptl_handle_eq_t handle) noexcept {
  const HandleFields fields = decode_handle(handle);
  if (fields.type != HandleType::event_queue) [[unlikely]]
    return {};
  NetworkInterface* interface = interface_of(fields);
  if (interface == nullptr) [[unlikely]]
    return {};
  return {interface, interface->find_event_queue(fields)};
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

}  // namespace lintel::api
