// Our declarations of the drivers' functions and numbers, compared with the headers of the vendors
// where those are installed. Types have other names there, so what is compared is how arguments are
// passed.
#include <type_traits>

#include <gtest/gtest.h>

#include "memory_kind/cuda_functions.h"
#include "memory_kind/hip_functions.h"
#include "memory_kind/ze_functions.h"

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif
#if __has_include(<hip/hip_runtime_api.h>)
#define __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_HCC__
#include <hip/hip_runtime_api.h>
#endif
#if __has_include(<level_zero/ze_api.h>)
#include <level_zero/ze_api.h>
#endif

namespace lintel {

namespace {

// Pointers like pointers, numbers like numbers of the same size, structures by their size.
template <typename Ours, typename Theirs>
constexpr bool is_passed_alike = (sizeof(Ours) == sizeof(Theirs)) &&
                                 (std::is_pointer_v<Ours> ==
                                  std::is_pointer_v<Theirs>)&&(std::is_class_v<Ours> ==
                                                               std::is_class_v<Theirs>);

template <typename Ours, typename Theirs>
struct Compare : std::false_type {};
template <typename OurResult, typename... OurArguments, typename TheirResult,
          typename... TheirArguments>
struct Compare<OurResult (*)(OurArguments...), TheirResult (*)(TheirArguments...)> {
  static constexpr bool same_number = sizeof...(OurArguments) == sizeof...(TheirArguments);
  template <bool = same_number>
  static constexpr bool compare() {
    if constexpr (same_number)
      return is_passed_alike<OurResult, TheirResult> &&
             (is_passed_alike<OurArguments, TheirArguments> && ...);
    return false;
  }
  static constexpr bool value = compare();
};

// `theirs`: a function of the vendor's header.
template <typename Ours, typename Theirs>
constexpr bool agree(Ours*, Theirs* theirs) {
  return Compare<Ours*, decltype(theirs)>::value;
}

#if __has_include(<cuda.h>)
TEST(DriverHeadersTest, CudaAgrees) {
  constexpr cuda::Functions ours{};
  static_assert(agree(ours.init, &cuInit));
  static_assert(agree(ours.error_name, &cuGetErrorName));
  static_assert(agree(ours.device_count, &cuDeviceGetCount));
  static_assert(agree(ours.device_name, &cuDeviceGetName));
  static_assert(agree(ours.device_uuid, &cuDeviceGetUuid));
  static_assert(agree(ours.pci_address, &cuDeviceGetPCIBusId));
  static_assert(agree(ours.retain_primary, &cuDevicePrimaryCtxRetain));
  static_assert(agree(ours.push_context, &cuCtxPushCurrent));
  static_assert(agree(ours.pop_context, &cuCtxPopCurrent));
  static_assert(agree(ours.pointer_attributes, &cuPointerGetAttributes));
  static_assert(agree(ours.set_pointer_attribute, &cuPointerSetAttribute));
  static_assert(agree(ours.allocate, &cuMemAlloc));
  static_assert(agree(ours.free, &cuMemFree));
  static_assert(agree(ours.copy_async, &cuMemcpyAsync));
  static_assert(agree(ours.create_stream, &cuStreamCreate));
  static_assert(agree(ours.synchronize_stream, &cuStreamSynchronize));
  static_assert(agree(ours.create_event, &cuEventCreate));
  static_assert(agree(ours.record_event, &cuEventRecord));
  static_assert(agree(ours.query_event, &cuEventQuery));
  static_assert(agree(ours.register_host, &cuMemHostRegister));
  static_assert(agree(ours.unregister_host, &cuMemHostUnregister));
  static_assert(agree(ours.export_memory, &cuIpcGetMemHandle));
  static_assert(agree(ours.open_memory, &cuIpcOpenMemHandle));
  static_assert(agree(ours.close_memory, &cuIpcCloseMemHandle));
  static_assert(agree(ours.range_handle, &cuMemGetHandleForAddressRange));
  const int numbers[][2] = {
      {cuda::invalid_value, CUDA_ERROR_INVALID_VALUE},
      {cuda::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY},
      {cuda::not_initialized, CUDA_ERROR_NOT_INITIALIZED},
      {cuda::deinitialized, CUDA_ERROR_DEINITIALIZED},
      {cuda::no_device, CUDA_ERROR_NO_DEVICE},
      {cuda::invalid_device, CUDA_ERROR_INVALID_DEVICE},
      {cuda::invalid_context, CUDA_ERROR_INVALID_CONTEXT},
      {cuda::peer_access_unsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED},
      {cuda::invalid_handle, CUDA_ERROR_INVALID_HANDLE},
      {cuda::not_ready, CUDA_ERROR_NOT_READY},
      {cuda::illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS},
      {cuda::context_is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED},
      {cuda::host_memory_already_registered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED},
      {cuda::not_supported, CUDA_ERROR_NOT_SUPPORTED},
      {cuda::attribute_context, CU_POINTER_ATTRIBUTE_CONTEXT},
      {cuda::attribute_memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE},
      {cuda::attribute_sync_memops, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS},
      {cuda::attribute_buffer_id, CU_POINTER_ATTRIBUTE_BUFFER_ID},
      {cuda::attribute_is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED},
      {cuda::attribute_device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL},
      {cuda::attribute_range_start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR},
      {cuda::attribute_range_size, CU_POINTER_ATTRIBUTE_RANGE_SIZE},
      {cuda::memory_type_device, CU_MEMORYTYPE_DEVICE},
      {cuda::stream_non_blocking, CU_STREAM_NON_BLOCKING},
      {cuda::event_disable_timing, CU_EVENT_DISABLE_TIMING},
      {cuda::host_register_portable, CU_MEMHOSTREGISTER_PORTABLE},
      {cuda::ipc_lazy_peer_access, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS},
      {cuda::range_handle_dmabuf, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD}};
  for (const auto& [ours_is, theirs_is] : numbers) EXPECT_EQ(ours_is, theirs_is);
}
#endif

#if __has_include(<hip/hip_runtime_api.h>)
TEST(DriverHeadersTest, HipAgrees) {
  constexpr hip::Functions ours{};
  static_assert(agree(ours.error_name, &hipGetErrorName));
  static_assert(agree(ours.runtime_version, &hipRuntimeGetVersion));
  static_assert(agree(ours.device_count, &hipGetDeviceCount));
  static_assert(agree(ours.pci_address, &hipDeviceGetPCIBusId));
  static_assert(agree(ours.device_name, &hipDeviceGetName));
  static_assert(agree(ours.get_device, &hipGetDevice));
  static_assert(agree(ours.set_device, &hipSetDevice));
  static_assert(agree(ours.pointer_attributes, &hipDrvPointerGetAttributes));
  static_assert(agree(ours.address_range, &hipMemGetAddressRange));
  // There are templates of these names, too.
  static_assert(agree(ours.allocate, static_cast<hipError_t (*)(void**, size_t)>(&hipMalloc)));
  static_assert(agree(ours.create_event, static_cast<hipError_t (*)(hipEvent_t*, unsigned)>(
                                             &hipEventCreateWithFlags)));
  static_assert(agree(ours.record_event,
                      static_cast<hipError_t (*)(hipEvent_t, hipStream_t)>(&hipEventRecord)));
  static_assert(agree(ours.free, &hipFree));
  static_assert(agree(ours.copy_async, &hipMemcpyAsync));
  static_assert(agree(ours.create_stream, &hipStreamCreateWithFlags));
  static_assert(agree(ours.synchronize_stream, &hipStreamSynchronize));
  static_assert(agree(ours.query_event, &hipEventQuery));
  static_assert(agree(ours.register_host, &hipHostRegister));
  static_assert(agree(ours.unregister_host, &hipHostUnregister));
  static_assert(agree(ours.export_memory, &hipIpcGetMemHandle));
  static_assert(agree(ours.open_memory, &hipIpcOpenMemHandle));
  static_assert(agree(ours.close_memory, &hipIpcCloseMemHandle));
  static_assert(agree(ours.device_uuid, &hipDeviceGetUuid));
  const int device_type =
      HIP_VERSION_MAJOR >= 6 ? hip::memory_type_device_6 : hip::memory_type_device_5;
  const int numbers[][2] = {
      {hip::invalid_value, hipErrorInvalidValue},
      {hip::out_of_memory, hipErrorOutOfMemory},
      {hip::not_initialized, hipErrorNotInitialized},
      {hip::deinitialized, hipErrorDeinitialized},
      {hip::no_device, hipErrorNoDevice},
      {hip::invalid_device, hipErrorInvalidDevice},
      {hip::invalid_context, hipErrorInvalidContext},
      {hip::peer_access_unsupported, hipErrorPeerAccessUnsupported},
      {hip::invalid_handle, hipErrorInvalidHandle},
      {hip::not_ready, hipErrorNotReady},
      {hip::illegal_address, hipErrorIllegalAddress},
      {hip::context_is_destroyed, hipErrorContextIsDestroyed},
      {hip::host_memory_already_registered, hipErrorHostMemoryAlreadyRegistered},
      {hip::not_supported, hipErrorNotSupported},
      {hip::attribute_memory_type, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE},
      {hip::attribute_buffer_id, HIP_POINTER_ATTRIBUTE_BUFFER_ID},
      {hip::attribute_is_managed, HIP_POINTER_ATTRIBUTE_IS_MANAGED},
      {hip::attribute_device_ordinal, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL},
      {device_type, hipMemoryTypeDevice},
      {hip::copy_default, hipMemcpyDefault},
      {hip::stream_non_blocking, hipStreamNonBlocking},
      {hip::event_disable_timing, hipEventDisableTiming},
      {hip::host_register_portable, hipHostRegisterPortable}};
  for (const auto& [ours_is, theirs_is] : numbers) EXPECT_EQ(ours_is, theirs_is);
}
#endif

#if __has_include(<level_zero/ze_api.h>)
template <typename Ours, typename Theirs>
constexpr bool has_size_of = sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs);

TEST(DriverHeadersTest, LevelZeroAgrees) {
  constexpr ze::Functions ours{};
  static_assert(agree(ours.init, &zeInit));
  static_assert(agree(ours.get_drivers, &zeDriverGet));
  static_assert(agree(ours.get_devices, &zeDeviceGet));
  static_assert(agree(ours.device_properties, &zeDeviceGetProperties));
  static_assert(agree(ours.create_context, &zeContextCreate));
  static_assert(agree(ours.memory_properties, &zeMemGetAllocProperties));
  static_assert(agree(ours.address_range, &zeMemGetAddressRange));
  static_assert(agree(ours.allocate, &zeMemAllocDevice));
  static_assert(agree(ours.free, &zeMemFree));
  static_assert(agree(ours.create_list, &zeCommandListCreateImmediate));
  static_assert(agree(ours.append_copy, &zeCommandListAppendMemoryCopy));
  static_assert(agree(ours.create_pool, &zeEventPoolCreate));
  static_assert(agree(ours.create_event, &zeEventCreate));
  static_assert(agree(ours.reset_event, &zeEventHostReset));
  static_assert(agree(ours.query_event, &zeEventQueryStatus));
  static_assert(agree(ours.export_memory, &zeMemGetIpcHandle));
  static_assert(agree(ours.open_memory, &zeMemOpenIpcHandle));
  static_assert(agree(ours.close_memory, &zeMemCloseIpcHandle));
  static_assert(agree(ours.pci_properties, &zeDevicePciGetPropertiesExt));
  static_assert(has_size_of<ze::ContextDescription, ze_context_desc_t>);
  static_assert(has_size_of<ze::QueueDescription, ze_command_queue_desc_t>);
  static_assert(has_size_of<ze::EventPoolDescription, ze_event_pool_desc_t>);
  static_assert(has_size_of<ze::EventDescription, ze_event_desc_t>);
  static_assert(has_size_of<ze::DeviceMemoryDescription, ze_device_mem_alloc_desc_t>);
  static_assert(has_size_of<ze::HostMemoryDescription, ze_host_mem_alloc_desc_t>);
  static_assert(has_size_of<ze::MemoryProperties, ze_memory_allocation_properties_t>);
  static_assert(has_size_of<ze::ExportDescriptor, ze_external_memory_export_fd_t>);
  static_assert(has_size_of<ze::DeviceProperties, ze_device_properties_t>);
  static_assert(has_size_of<ze::PciProperties, ze_pci_ext_properties_t>);
  static_assert(has_size_of<ze::IpcHandle, ze_ipc_mem_handle_t>);
  static_assert(offsetof(ze::QueueDescription, mode) == offsetof(ze_command_queue_desc_t, mode));
  static_assert(offsetof(ze::MemoryProperties, id) ==
                offsetof(ze_memory_allocation_properties_t, id));
  static_assert(offsetof(ze::ExportDescriptor, descriptor) ==
                offsetof(ze_external_memory_export_fd_t, fd));
  static_assert(offsetof(ze::DeviceProperties, uuid) == offsetof(ze_device_properties_t, uuid));
  static_assert(offsetof(ze::DeviceProperties, name) == offsetof(ze_device_properties_t, name));
  const unsigned numbers[][2] = {
      {ze::not_ready, ZE_RESULT_NOT_READY},
      {ze::device_lost, ZE_RESULT_ERROR_DEVICE_LOST},
      {ze::out_of_host_memory, ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY},
      {ze::out_of_device_memory, ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY},
      {ze::uninitialized, ZE_RESULT_ERROR_UNINITIALIZED},
      {ze::unsupported_feature, ZE_RESULT_ERROR_UNSUPPORTED_FEATURE},
      {ze::invalid_argument, ZE_RESULT_ERROR_INVALID_ARGUMENT},
      {ze::type_device_properties, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES},
      {ze::type_pci_properties, ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES},
      {ze::type_context_description, ZE_STRUCTURE_TYPE_CONTEXT_DESC},
      {ze::type_queue_description, ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC},
      {ze::type_event_pool_description, ZE_STRUCTURE_TYPE_EVENT_POOL_DESC},
      {ze::type_event_description, ZE_STRUCTURE_TYPE_EVENT_DESC},
      {ze::type_device_memory_description, ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC},
      {ze::type_host_memory_description, ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC},
      {ze::type_memory_properties, ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES},
      {ze::type_export_descriptor, ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD},
      {ze::memory_type_device, ZE_MEMORY_TYPE_DEVICE},
      {ze::queue_synchronous, ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS},
      {ze::queue_asynchronous, ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS},
      {ze::pool_host_visible, ZE_EVENT_POOL_FLAG_HOST_VISIBLE},
      {ze::scope_host, ZE_EVENT_SCOPE_FLAG_HOST},
      {ze::export_dmabuf, ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF}};
  for (const auto& [ours_is, theirs_is] : numbers) EXPECT_EQ(ours_is, theirs_is);
}
#endif

// Where no header is installed there is nothing to compare with.
TEST(DriverHeadersTest, TypesHaveTheSizesOfTheInterface) {
  static_assert(sizeof(cuda::IpcHandle) == 64 && sizeof(hip::IpcHandle) == 64 &&
                sizeof(ze::IpcHandle) == 64);
  static_assert(is_passed_alike<cuda::Stream, void*> && !is_passed_alike<int, void*>);
  static_assert(sizeof(ze::Head) == 16 && sizeof(ze::DeviceProperties) == 368);
}

}  // namespace

}  // namespace lintel
