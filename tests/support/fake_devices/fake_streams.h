// What the stand-ins for CUDA and HIP have in common: results, streams, and what devices are
// called.
#pragma once

#include <cstdio>
#include <cstring>

#include "memory_kind/stream_numbers.h"
#include "support/fake_devices/engine.h"

namespace lintel::fake_devices::streams {

using namespace stream_numbers;

inline stream_numbers::Result result_of(fake_devices::Result result) {
  switch (result) {
    case fake_devices::Result::ok:
      return success;
    case fake_devices::Result::running:
      return not_ready;
    case fake_devices::Result::no_memory:
      return out_of_memory;
    case fake_devices::Result::invalid:
      return invalid_value;
    case fake_devices::Result::lost:
      return illegal_address;
    case fake_devices::Result::no_peer:
      return peer_access_unsupported;
    case fake_devices::Result::unsupported:
      return not_supported;
    case fake_devices::Result::already:
      return host_memory_already_registered;
  }
  return invalid_value;
}

inline uintptr_t number(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
inline Queue* queue_of(void* stream) {
  static Queue* const default_stream = make_queue();
  return stream == nullptr ? default_stream : static_cast<Queue*>(stream);
}
inline Event* event_of(void* event) { return static_cast<Event*>(event); }

inline stream_numbers::Result name_of(int device, char* text, int bytes) {
  if (device >= device_count()) return invalid_device;
  std::snprintf(text, static_cast<size_t>(bytes), "Stand-in %d", device);
  return success;
}
inline stream_numbers::Result pci_address_of(int device, char* text, int bytes) {
  if (device >= device_count()) return invalid_device;
  std::snprintf(text, static_cast<size_t>(bytes), "0000:%02X:00.0", 0x3b + device);
  return success;
}
// The same in all processes.
inline stream_numbers::Result uuid_of(int device, Uuid* uuid) {
  if (device >= device_count()) return invalid_device;
  *uuid = {};
  std::memcpy(uuid->bytes, "stand-in", 8);
  std::memcpy(uuid->bytes + 8, &device, sizeof device);
  return success;
}

inline stream_numbers::Result export_to(uintptr_t base, IpcHandle* handle) {
  Handle exported{};
  const stream_numbers::Result result = result_of(export_allocation(base, &exported));
  static_assert(sizeof exported <= sizeof *handle);
  *handle = {};
  std::memcpy(handle, &exported, sizeof exported);
  return result;
}
inline stream_numbers::Result open(const IpcHandle& handle, void* owner, uintptr_t* base) {
  Handle exported{};
  std::memcpy(&exported, &handle, sizeof exported);
  return result_of(fake_devices::open(exported, owner, base));
}

}  // namespace lintel::fake_devices::streams
