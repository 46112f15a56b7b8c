// The functions of Level Zero (libze_loader.so.1) that the library calls, with the names, types and
// numbers of its binary interface. No header of oneAPI is needed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lintel::ze {

using Result = unsigned;
using Driver = struct ZeDriverObject*;
using Device = struct ZeDeviceObject*;
using Context = struct ZeContextObject*;
using CommandList = struct ZeCommandListObject*;
using EventPool = struct ZeEventPoolObject*;
using Event = struct ZeEventObject*;

// Results (ZE_RESULT_...).
inline constexpr Result success = 0;
inline constexpr Result not_ready = 1;
inline constexpr Result device_lost = 0x70000001;
inline constexpr Result out_of_host_memory = 0x70000002;
inline constexpr Result out_of_device_memory = 0x70000003;
inline constexpr Result uninitialized = 0x78000001;
inline constexpr Result unsupported_feature = 0x78000003;
inline constexpr Result invalid_argument = 0x78000004;

// Structures begin with their type (ZE_STRUCTURE_TYPE_...) and a list of extensions.
struct Head {
  int type = 0;
  const void* next = nullptr;
};
inline constexpr int type_device_properties = 0x3;
inline constexpr int type_pci_properties = 0x10008;
inline constexpr int type_context_description = 0xd;
inline constexpr int type_queue_description = 0xe;
inline constexpr int type_event_pool_description = 0x10;
inline constexpr int type_event_description = 0x11;
inline constexpr int type_device_memory_description = 0x15;
inline constexpr int type_host_memory_description = 0x16;
inline constexpr int type_memory_properties = 0x17;
inline constexpr int type_export_descriptor = 0x1a;

inline constexpr int memory_type_device = 2;      // ZE_MEMORY_TYPE_DEVICE
inline constexpr int queue_synchronous = 1;       // ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS
inline constexpr int queue_asynchronous = 2;      // ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS
inline constexpr uint32_t pool_host_visible = 1;  // ZE_EVENT_POOL_FLAG_HOST_VISIBLE
inline constexpr uint32_t scope_host = 4;         // ZE_EVENT_SCOPE_FLAG_HOST
inline constexpr uint32_t export_dmabuf = 2;      // ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF

struct ContextDescription {
  Head head{type_context_description};
  uint32_t flags = 0;
};
struct QueueDescription {
  Head head{type_queue_description};
  uint32_t ordinal = 0;
  uint32_t index = 0;
  uint32_t flags = 0;
  int mode = 0;
  int priority = 0;
};
struct EventPoolDescription {
  Head head{type_event_pool_description};
  uint32_t flags = 0;
  uint32_t count = 0;
};
struct EventDescription {
  Head head{type_event_description};
  uint32_t index = 0;
  uint32_t signal = 0;
  uint32_t wait = 0;
};
struct DeviceMemoryDescription {
  Head head{type_device_memory_description};
  uint32_t flags = 0;
  uint32_t ordinal = 0;
};
struct HostMemoryDescription {
  Head head{type_host_memory_description};
  uint32_t flags = 0;
};
struct MemoryProperties {
  Head head{type_memory_properties};
  int type = 0;
  uint64_t id = 0;
  uint64_t page_bytes = 0;
};
struct ExportDescriptor {
  Head head{type_export_descriptor};
  uint32_t flags = 0;
  int descriptor = -1;
};
struct DeviceProperties {
  Head head{type_device_properties};
  int type = 0;
  uint32_t vendor = 0;
  uint32_t device = 0;
  uint32_t flags = 0;
  uint32_t subdevice = 0;
  uint32_t clock_rate = 0;
  uint64_t max_allocation = 0;
  uint32_t max_contexts = 0;
  uint32_t max_priority = 0;
  uint32_t threads = 0;
  uint32_t simd_width = 0;
  uint32_t units = 0;
  uint32_t subslices = 0;
  uint32_t slices = 0;
  uint64_t timer_resolution = 0;
  uint32_t timestamp_bits = 0;
  uint32_t kernel_timestamp_bits = 0;
  uint8_t uuid[16] = {};
  char name[256] = {};
};
struct PciProperties {
  Head head{type_pci_properties};
  uint32_t domain = 0;
  uint32_t bus = 0;
  uint32_t device = 0;
  uint32_t function = 0;
  int32_t generation = 0;
  int32_t lanes = 0;
  int64_t bytes_per_second = 0;
};
struct IpcHandle {
  char data[64];  // begins with a file descriptor of the exporter
};

struct Functions {
  Result (*init)(uint32_t flags);
  Result (*get_drivers)(uint32_t* count, Driver* drivers);
  Result (*get_devices)(Driver driver, uint32_t* count, Device* devices);
  Result (*device_properties)(Device device, DeviceProperties* properties);
  Result (*create_context)(Driver driver, const ContextDescription* description, Context* context);
  Result (*memory_properties)(Context context, const void* pointer, MemoryProperties* properties,
                              Device* device);
  Result (*address_range)(Context context, const void* pointer, void** base, size_t* bytes);
  Result (*allocate)(Context context, const DeviceMemoryDescription* description, size_t bytes,
                     size_t alignment, Device device, void** pointer);
  Result (*free)(Context context, void* pointer);
  Result (*create_list)(Context context, Device device, const QueueDescription* description,
                        CommandList* list);
  Result (*append_copy)(CommandList list, void* to, const void* from, size_t bytes, Event signal,
                        uint32_t wait_count, Event* wait);
  Result (*create_pool)(Context context, const EventPoolDescription* description,
                        uint32_t device_count, Device* devices, EventPool* pool);
  Result (*create_event)(EventPool pool, const EventDescription* description, Event* event);
  Result (*reset_event)(Event event);
  Result (*query_event)(Event event);
  Result (*export_memory)(Context context, const void* pointer, IpcHandle* handle);
  Result (*open_memory)(Context context, Device device, IpcHandle handle, uint32_t flags,
                        void** pointer);
  Result (*close_memory)(Context context, const void* pointer);
  Result (*pci_properties)(Device device, PciProperties* properties);
};

}  // namespace lintel::ze
