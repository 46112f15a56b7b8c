// The functions of the CUDA driver (libcuda.so.1) that the library calls, with the names, types and
// numbers of its binary interface. No header of CUDA is needed. Of functions with several versions
// the symbol is that of the second, where there is one.
#pragma once

#include <cstddef>

#include "memory_kind/stream_numbers.h"

namespace lintel::cuda {

using namespace stream_numbers;
using Device = int;
using DevicePointer = unsigned long long;
using Context = struct CudaContext*;
using Stream = struct CudaStream*;
using Event = struct CudaEvent*;

inline constexpr PointerAttribute attribute_context = 1;
inline constexpr PointerAttribute attribute_memory_type = 2;
inline constexpr PointerAttribute attribute_sync_memops = 6;
inline constexpr PointerAttribute attribute_buffer_id = 7;
inline constexpr PointerAttribute attribute_is_managed = 8;
inline constexpr PointerAttribute attribute_device_ordinal = 9;
inline constexpr PointerAttribute attribute_range_start = 11;
inline constexpr PointerAttribute attribute_range_size = 12;

inline constexpr unsigned memory_type_device = 2;    // CU_MEMORYTYPE_DEVICE
inline constexpr unsigned ipc_lazy_peer_access = 1;  // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
inline constexpr int range_handle_dmabuf = 1;        // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD

struct Functions {
  Result (*init)(unsigned flags);
  Result (*error_name)(Result error, const char** text);
  Result (*device_count)(int* count);
  Result (*device_name)(char* text, int bytes, Device device);
  Result (*device_uuid)(Uuid* uuid, Device device);
  Result (*retain_primary)(Context* context, Device device);
  Result (*push_context)(Context context);
  Result (*pop_context)(Context* context);
  Result (*pointer_attributes)(unsigned count, PointerAttribute* attributes, void** data,
                               DevicePointer pointer);
  Result (*set_pointer_attribute)(const void* value, PointerAttribute attribute,
                                  DevicePointer pointer);
  Result (*allocate)(DevicePointer* pointer, size_t bytes);
  Result (*free)(DevicePointer pointer);
  Result (*copy_async)(DevicePointer to, DevicePointer from, size_t bytes, Stream stream);
  Result (*create_stream)(Stream* stream, unsigned flags);
  Result (*synchronize_stream)(Stream stream);
  Result (*create_event)(Event* event, unsigned flags);
  Result (*record_event)(Event event, Stream stream);
  Result (*query_event)(Event event);
  Result (*register_host)(void* memory, size_t bytes, unsigned flags);
  Result (*unregister_host)(void* memory);
  Result (*export_memory)(IpcHandle* handle, DevicePointer pointer);
  Result (*open_memory)(DevicePointer* pointer, IpcHandle handle, unsigned flags);
  Result (*close_memory)(DevicePointer pointer);
  Result (*pci_address)(char* text, int bytes, Device device);
  // nullptr in drivers before 11.7.
  Result (*range_handle)(void* handle, DevicePointer pointer, size_t bytes, int type,
                         unsigned long long flags);
};

}  // namespace lintel::cuda
