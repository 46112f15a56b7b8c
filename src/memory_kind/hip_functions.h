// The functions of HIP (libamdhip64.so) that the library calls, with the names, types and numbers
// of its binary interface. No header of ROCm is needed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory_kind/stream_numbers.h"

namespace lintel::hip {

using namespace stream_numbers;
using Stream = struct HipStream*;
using Event = struct HipEvent*;

inline constexpr PointerAttribute attribute_memory_type = 2;
inline constexpr PointerAttribute attribute_buffer_id = 7;
inline constexpr PointerAttribute attribute_is_managed = 8;
inline constexpr PointerAttribute attribute_device_ordinal = 9;

// hipMemoryTypeDevice until ROCm 5, and since ROCm 6.
inline constexpr unsigned memory_type_device_5 = 1;
inline constexpr unsigned memory_type_device_6 = 2;
inline constexpr int first_version_of_6 = 60'000'000;  // as hipRuntimeGetVersion() counts

inline constexpr int copy_default = 4;  // hipMemcpyDefault

struct Functions {
  const char* (*error_name)(Result error);
  Result (*runtime_version)(int* version);
  Result (*device_count)(int* count);
  Result (*device_name)(char* text, int bytes, int device);
  Result (*get_device)(int* device);
  Result (*set_device)(int device);
  Result (*pointer_attributes)(unsigned count, PointerAttribute* attributes, void** data,
                               void* pointer);
  Result (*address_range)(void** base, size_t* bytes, void* pointer);
  Result (*allocate)(void** pointer, size_t bytes);
  Result (*free)(void* pointer);
  Result (*copy_async)(void* to, const void* from, size_t bytes, int kind, Stream stream);
  Result (*create_stream)(Stream* stream, unsigned flags);
  Result (*synchronize_stream)(Stream stream);
  Result (*create_event)(Event* event, unsigned flags);
  Result (*record_event)(Event event, Stream stream);
  Result (*query_event)(Event event);
  Result (*register_host)(void* memory, size_t bytes, unsigned flags);
  Result (*unregister_host)(void* memory);
  Result (*export_memory)(IpcHandle* handle, void* pointer);
  Result (*open_memory)(void** pointer, IpcHandle handle, unsigned flags);
  Result (*close_memory)(void* pointer);
  // Functions of newer versions, or nullptr.
  Result (*pci_address)(char* text, int bytes, int device);
  Result (*device_uuid)(Uuid* uuid, int device);
  // A function of the HSA runtime, on which HIP is built.
  int (*export_dmabuf)(const void* pointer, size_t bytes, int* descriptor, uint64_t* offset);
};

}  // namespace lintel::hip
