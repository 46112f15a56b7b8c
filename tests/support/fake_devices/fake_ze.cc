// A stand-in for Level Zero, libze_loader.so.1: the functions that the library and its tests call,
// over devices without hardware (engine.h). One driver. Like the loader, it refuses everything
// before zeInit().
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "memory_kind/ze_functions.h"
#include "support/fake_devices/engine.h"

namespace lintel::ze {

struct ZeDriverObject {};
struct ZeDeviceObject {
  int number = 0;
};
struct ZeContextObject {};
struct ZeCommandListObject {
  fake_devices::Queue* queue;
  bool synchronous;
};
struct ZeEventPoolObject {};

namespace {

namespace fake = fake_devices;

constexpr uint32_t max_devices = 16;
std::atomic<bool> is_initialized{false};
ZeDriverObject driver;
std::array<ZeDeviceObject, max_devices> devices;

Result result_of(fake::Result result) {
  switch (result) {
    case fake::Result::ok:
      return success;
    case fake::Result::running:
      return not_ready;
    case fake::Result::no_memory:
      return out_of_device_memory;
    case fake::Result::lost:
      return device_lost;
    case fake::Result::unsupported:
    case fake::Result::no_peer:
      return unsupported_feature;
    case fake::Result::invalid:
    case fake::Result::already:
      return invalid_argument;
  }
  return invalid_argument;
}

uintptr_t number(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
fake::Event* event_of(Event event) { return reinterpret_cast<fake::Event*>(event); }

// A handle of the driver: the descriptor, and what tells a wrong file apart.
struct Exported {
  int descriptor;
  int device;
  uint64_t inode;
  uint64_t bytes;
};

}  // namespace

}  // namespace lintel::ze

using namespace lintel::ze;

#pragma GCC visibility push(default)
extern "C" {

Result zeInit(uint32_t) {
  for (uint32_t i = 0; i < max_devices; ++i) devices[i].number = static_cast<int>(i);
  is_initialized = true;
  return success;
}

Result zeDriverGet(uint32_t* count, Driver* drivers) {
  if (!is_initialized) return uninitialized;
  if (drivers != nullptr && *count > 0) drivers[0] = &driver;
  *count = 1;
  return success;
}

Result zeDeviceGet(Driver, uint32_t* count, Device* found) {
  const auto all = static_cast<uint32_t>(fake::device_count());
  for (uint32_t i = 0; found != nullptr && i < *count && i < all; ++i) found[i] = &devices[i];
  *count = all;
  return success;
}

Result zeDeviceGetProperties(Device device, DeviceProperties* properties) {
  std::memcpy(properties->uuid, "stand-in", 8);
  std::memcpy(properties->uuid + 8, &device->number, sizeof device->number);
  std::snprintf(properties->name, sizeof properties->name, "Stand-in %d", device->number);
  return success;
}

Result zeDevicePciGetPropertiesExt(Device device, PciProperties* properties) {
  properties->bus = static_cast<uint32_t>(0x3b + device->number);
  return success;
}

Result zeContextCreate(Driver, const ContextDescription*, Context* context) {
  *context = new ZeContextObject;
  return success;
}

Result zeMemGetAllocProperties(Context, const void* pointer, MemoryProperties* properties,
                               Device* device) {
  if (fake::is_lost()) return device_lost;
  fake::Allocation found{};
  properties->type = 0;
  if (!fake::find(number(pointer), &found)) return success;
  constexpr int memory_type_shared = 3;
  properties->type = fake::is_managed(number(pointer)) ? memory_type_shared : memory_type_device;
  properties->id = found.id;
  *device = &devices[found.device];
  auto* const exported = static_cast<ExportDescriptor*>(const_cast<void*>(properties->head.next));
  if (exported == nullptr) return success;
  return result_of(fake::file_of(found.base, &exported->descriptor));
}

Result zeMemGetAddressRange(Context, const void* pointer, void** base, size_t* bytes) {
  fake::Allocation found{};
  if (!fake::find(number(pointer), &found)) return invalid_argument;
  *base = reinterpret_cast<void*>(found.base);
  *bytes = found.bytes;
  return success;
}

Result zeMemAllocDevice(Context, const DeviceMemoryDescription*, size_t bytes, size_t,
                        Device device, void** pointer) {
  uintptr_t base = 0;
  const Result result = result_of(fake::allocate(device->number, bytes, nullptr, &base));
  *pointer = reinterpret_cast<void*>(base);
  return result;
}

Result zeMemAllocShared(Context context, const DeviceMemoryDescription* description,
                        const HostMemoryDescription*, size_t bytes, size_t alignment, Device device,
                        void** pointer) {
  const Result result = zeMemAllocDevice(context, description, bytes, alignment, device, pointer);
  return result == success && !fake::mark_managed(number(*pointer)) ? unsupported_feature : result;
}

Result zeMemFree(Context, void* pointer) { return result_of(fake::release(number(pointer))); }

Result zeCommandListCreateImmediate(Context, Device, const QueueDescription* description,
                                    CommandList* list) {
  *list = new ZeCommandListObject{fake::make_queue(), description->mode == queue_synchronous};
  return success;
}

Result zeCommandListAppendMemoryCopy(CommandList list, void* to, const void* from, size_t bytes,
                                     Event signal, uint32_t, Event*) {
  Result result = result_of(fake::copy(list->queue, number(to), number(from), bytes));
  if (result == success && signal != nullptr)
    result = result_of(fake::record(list->queue, event_of(signal)));
  return result == success && list->synchronous ? result_of(fake::wait(list->queue)) : result;
}

Result zeEventPoolCreate(Context, const EventPoolDescription*, uint32_t, Device*, EventPool* pool) {
  *pool = new ZeEventPoolObject;
  return success;
}

Result zeEventCreate(EventPool, const EventDescription*, Event* event) {
  *event = reinterpret_cast<Event>(fake::make_event());
  return success;
}

Result zeEventHostReset(Event) { return fake::is_lost() ? device_lost : success; }

Result zeEventQueryStatus(Event event) { return result_of(fake::state_of(event_of(event))); }

Result zeMemGetIpcHandle(Context, const void* pointer, IpcHandle* handle) {
  fake::Handle exported{};
  const Result result = result_of(fake::export_allocation(number(pointer), &exported));
  const Exported written{exported.descriptor, exported.device, exported.inode, exported.bytes};
  static_assert(sizeof written <= sizeof *handle);
  *handle = {};
  std::memcpy(handle, &written, sizeof written);
  return result;
}

Result zeMemOpenIpcHandle(Context, Device, IpcHandle handle, uint32_t, void** pointer) {
  Exported written{};
  std::memcpy(&written, &handle, sizeof written);
  const fake::Handle exported{fake::this_process, written.descriptor, written.inode, written.bytes,
                              written.device};
  uintptr_t base = 0;
  const Result result = result_of(fake::open(exported, nullptr, &base));
  *pointer = reinterpret_cast<void*>(base);
  return result;
}

Result zeMemCloseIpcHandle(Context, const void* pointer) {
  return result_of(fake::close(number(pointer)));
}
}
#pragma GCC visibility pop
