// A stand-in for the CUDA driver, libcuda.so.1: the functions that the library and its tests call,
// over devices without hardware (engine.h). One primary context per device, and further ones by
// cuCtxCreate(). Like the driver, it refuses everything before cuInit().
#include <array>
#include <atomic>
#include <vector>

#include "memory_kind/cuda_functions.h"
#include "support/fake_devices/fake_streams.h"

namespace lintel::cuda {

struct CudaContext {
  int device = 0;
  bool destroyed = false;
};

namespace {

namespace fake = fake_devices;
using fake::streams::event_of, fake::streams::queue_of, fake::streams::result_of;

constexpr int max_devices = 16;
std::array<CudaContext, max_devices> primary;
std::atomic<bool> is_initialized{false};
thread_local std::vector<Context> stack;

// What most functions need: the driver is initialized, and a context is current.
Result ready() {
  if (!is_initialized) return not_initialized;
  if (stack.empty() || stack.back() == nullptr) return invalid_context;
  return stack.back()->destroyed ? context_is_destroyed : success;
}

Result copy_and_wait(DevicePointer to, DevicePointer from, size_t bytes) {
  const Result result = result_of(fake::copy(queue_of(nullptr), to, from, bytes));
  return result == success ? result_of(fake::wait(queue_of(nullptr))) : result;
}

}  // namespace

}  // namespace lintel::cuda

using namespace lintel::cuda;

#pragma GCC visibility push(default)
extern "C" {

Result cuInit(unsigned) {
  for (int i = 0; i < max_devices; ++i) primary[i].device = i;
  if (fake::device_count() == 0) return no_device;
  is_initialized = true;
  return success;
}

Result cuGetErrorName(Result error, const char** text) {
  static constexpr struct {
    Result error;
    const char* text;
  } names[] = {{success, "CUDA_SUCCESS"},
               {invalid_value, "CUDA_ERROR_INVALID_VALUE"},
               {out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY"},
               {not_initialized, "CUDA_ERROR_NOT_INITIALIZED"},
               {no_device, "CUDA_ERROR_NO_DEVICE"},
               {invalid_device, "CUDA_ERROR_INVALID_DEVICE"},
               {invalid_context, "CUDA_ERROR_INVALID_CONTEXT"},
               {peer_access_unsupported, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
               {not_ready, "CUDA_ERROR_NOT_READY"},
               {illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS"},
               {context_is_destroyed, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
               {host_memory_already_registered, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
               {not_supported, "CUDA_ERROR_NOT_SUPPORTED"}};
  for (const auto& name : names)
    if (name.error == error) {
      *text = name.text;
      return success;
    }
  return invalid_value;
}

Result cuDeviceGetCount(int* count) {
  *count = fake::device_count();
  return is_initialized ? success : not_initialized;
}

Result cuDeviceGet(Device* device, int ordinal) {
  *device = ordinal;
  return ordinal < fake::device_count() ? success : invalid_device;
}

Result cuDeviceGetName(char* text, int bytes, Device device) {
  return fake::streams::name_of(device, text, bytes);
}

Result cuDeviceGetPCIBusId(char* text, int bytes, Device device) {
  return fake::streams::pci_address_of(device, text, bytes);
}

Result cuDeviceGetUuid(Uuid* uuid, Device device) { return fake::streams::uuid_of(device, uuid); }

Result cuDevicePrimaryCtxRetain(Context* context, Device device) {
  if (!is_initialized) return not_initialized;
  if (device < 0 || device >= fake::device_count()) return invalid_device;
  *context = &primary[device];
  return success;
}

Result cuCtxCreate_v2(Context* context, unsigned, Device device) {
  if (!is_initialized) return not_initialized;
  *context = new CudaContext{device, false};
  stack.push_back(*context);
  return success;
}

Result cuCtxDestroy_v2(Context context) {
  context->destroyed = true;
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  return success;
}

Result cuCtxSetCurrent(Context context) {
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(context);
  return is_initialized ? success : not_initialized;
}

Result cuCtxPushCurrent_v2(Context context) {
  if (!is_initialized) return not_initialized;
  if (context == nullptr) return invalid_context;
  if (context->destroyed) return context_is_destroyed;
  stack.push_back(context);
  return success;
}

Result cuCtxPopCurrent_v2(Context* context) {
  if (stack.empty()) return invalid_context;
  *context = stack.back();
  stack.pop_back();
  return success;
}

Result cuCtxSynchronize() {
  const Result result = ready();
  return result == success ? result_of(fake::wait(queue_of(nullptr))) : result;
}

// As the driver: succeeds with zeros for memory that it does not know.
Result cuPointerGetAttributes(unsigned count, PointerAttribute* attributes, void** data,
                              DevicePointer pointer) {
  if (!is_initialized) return not_initialized;
  if (fake::is_lost()) return illegal_address;
  fake::Allocation found{};
  const bool is_found = fake::find(pointer, &found);
  const bool is_managed = is_found && fake::is_managed(pointer);
  for (unsigned i = 0; i < count; ++i) switch (attributes[i]) {
      case attribute_context:
        *static_cast<void**>(data[i]) = is_found ? found.owner : nullptr;
        break;
      case attribute_memory_type:
        *static_cast<unsigned*>(data[i]) = is_found ? memory_type_device : 0;
        break;
      case attribute_buffer_id:
        *static_cast<unsigned long long*>(data[i]) = found.id;
        break;
      case attribute_is_managed:  // a bool in an unsigned
        *static_cast<unsigned*>(data[i]) = is_managed;
        break;
      case attribute_device_ordinal:
        *static_cast<int*>(data[i]) = is_found ? found.device : -2;
        break;
      case attribute_range_start:
        *static_cast<DevicePointer*>(data[i]) = found.base;
        break;
      case attribute_range_size:
        *static_cast<size_t*>(data[i]) = found.bytes;
        break;
      default:
        return invalid_value;
    }
  return success;
}

Result cuPointerSetAttribute(const void*, PointerAttribute attribute, DevicePointer pointer) {
  fake::Allocation found{};
  return attribute == attribute_sync_memops && fake::find(pointer, &found) ? success
                                                                           : invalid_value;
}

Result cuMemAlloc_v2(DevicePointer* pointer, size_t bytes) {
  if (const Result result = ready(); result != success) return result;
  uintptr_t base = 0;
  const Context context = stack.back();
  const Result result = result_of(fake::allocate(context->device, bytes, context, &base));
  *pointer = base;
  return result;
}

Result cuMemAllocManaged(DevicePointer* pointer, size_t bytes, unsigned) {
  const Result result = cuMemAlloc_v2(pointer, bytes);
  return result == success && !fake::mark_managed(*pointer) ? not_supported : result;
}

Result cuMemFree_v2(DevicePointer pointer) {
  const Result result = ready();
  return result == success ? result_of(fake::release(pointer)) : result;
}

Result cuMemcpyAsync(DevicePointer to, DevicePointer from, size_t bytes, Stream stream) {
  const Result result = ready();
  return result == success ? result_of(fake::copy(queue_of(stream), to, from, bytes)) : result;
}

Result cuMemcpy(DevicePointer to, DevicePointer from, size_t bytes) {
  const Result result = ready();
  return result == success ? copy_and_wait(to, from, bytes) : result;
}

Result cuMemcpyHtoD_v2(DevicePointer to, const void* from, size_t bytes) {
  return cuMemcpy(to, reinterpret_cast<DevicePointer>(from), bytes);
}

Result cuMemcpyDtoH_v2(void* to, DevicePointer from, size_t bytes) {
  return cuMemcpy(reinterpret_cast<DevicePointer>(to), from, bytes);
}

Result cuMemcpyDtoD_v2(DevicePointer to, DevicePointer from, size_t bytes) {
  return cuMemcpy(to, from, bytes);
}

Result cuStreamCreate(Stream* stream, unsigned) {
  if (const Result result = ready(); result != success) return result;
  *stream = reinterpret_cast<Stream>(fake::make_queue());
  return success;
}

Result cuStreamSynchronize(Stream stream) {
  const Result result = ready();
  return result == success ? result_of(fake::wait(queue_of(stream))) : result;
}

Result cuEventCreate(Event* event, unsigned) {
  if (const Result result = ready(); result != success) return result;
  *event = reinterpret_cast<Event>(fake::make_event());
  return success;
}

Result cuEventRecord(Event event, Stream stream) {
  const Result result = ready();
  return result == success ? result_of(fake::record(queue_of(stream), event_of(event))) : result;
}

Result cuEventQuery(Event event) {
  const Result result = ready();
  return result == success ? result_of(fake::state_of(event_of(event))) : result;
}

Result cuMemHostRegister_v2(void* memory, size_t bytes, unsigned) {
  const Result result = ready();
  return result == success ? result_of(fake::pin(reinterpret_cast<uintptr_t>(memory), bytes))
                           : result;
}

Result cuMemHostUnregister(void* memory) {
  const Result result = ready();
  return result == success ? result_of(fake::unpin(reinterpret_cast<uintptr_t>(memory))) : result;
}

Result cuIpcGetMemHandle(IpcHandle* handle, DevicePointer pointer) {
  const Result result = ready();
  return result == success ? fake::streams::export_to(pointer, handle) : result;
}

Result cuIpcOpenMemHandle_v2(DevicePointer* pointer, IpcHandle handle, unsigned) {
  if (const Result result = ready(); result != success) return result;
  uintptr_t base = 0;
  const Result result = fake::streams::open(handle, stack.back(), &base);
  *pointer = base;
  return result;
}

Result cuIpcCloseMemHandle(DevicePointer pointer) {
  const Result result = ready();
  return result == success ? result_of(fake::close(pointer)) : result;
}

Result cuMemGetHandleForAddressRange(void* handle, DevicePointer pointer, size_t bytes, int type,
                                     unsigned long long) {
  if (const Result result = ready(); result != success) return result;
  constexpr size_t page = 4096;
  fake::Allocation found{};
  // Whole pages; the file has the whole allocation.
  if (type != range_handle_dmabuf || pointer % page != 0 || bytes % page != 0 ||
      !fake::find(pointer, &found) || pointer != found.base || bytes - found.bytes >= page)
    return invalid_value;
  return result_of(fake::file_of(pointer, static_cast<int*>(handle)));
}
}
#pragma GCC visibility pop
