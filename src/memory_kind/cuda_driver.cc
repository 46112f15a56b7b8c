// CUDA through its driver. Message path: describe(), start(), state_of().
#include "memory_kind/cuda_driver.h"

#include <cstring>

#include "memory_kind/driver_faults.h"
#include "util/page_size.h"

namespace lintel {

namespace {

using namespace cuda;

DevicePointer pointer_of(const void* address) { return reinterpret_cast<DevicePointer>(address); }
void* address_of(DevicePointer pointer) { return reinterpret_cast<void*>(pointer); }
Context context_of(const DeviceContext& context) { return static_cast<Context>(context.handle); }

}  // namespace

class CudaDriver::Current {
 public:
  Current(const CudaDriver& driver, Context context) noexcept
      : driver_(driver),
        result_(context == nullptr ? invalid_context : driver.call_.push_context(context)) {}
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    Context popped = nullptr;
    if (result_ == success) driver_.call_.pop_context(&popped);
  }
  [[nodiscard]] Result result() const noexcept { return result_; }

 private:
  const CudaDriver& driver_;
  const Result result_;
};

std::unique_ptr<DeviceDriver> CudaDriver::make(DriverLibrary& library) {
  Functions call{};
  library.find("cuInit", call.init);
  library.find("cuGetErrorName", call.error_name);
  library.find("cuDeviceGetCount", call.device_count);
  library.find("cuDeviceGetName", call.device_name);
  library.find("cuDeviceGetUuid", call.device_uuid);
  library.find("cuDevicePrimaryCtxRetain", call.retain_primary);
  library.find("cuCtxPushCurrent_v2", call.push_context);
  library.find("cuCtxPopCurrent_v2", call.pop_context);
  library.find("cuPointerGetAttributes", call.pointer_attributes);
  library.find("cuPointerSetAttribute", call.set_pointer_attribute);
  library.find("cuMemAlloc_v2", call.allocate);
  library.find("cuMemFree_v2", call.free);
  library.find("cuMemcpyAsync", call.copy_async);
  library.find("cuStreamCreate", call.create_stream);
  library.find("cuStreamSynchronize", call.synchronize_stream);
  library.find("cuEventCreate", call.create_event);
  library.find("cuEventRecord", call.record_event);
  library.find("cuEventQuery", call.query_event);
  library.find("cuMemHostRegister_v2", call.register_host);
  library.find("cuMemHostUnregister", call.unregister_host);
  library.find("cuIpcGetMemHandle", call.export_memory);
  library.find("cuIpcOpenMemHandle_v2", call.open_memory);
  library.find("cuIpcCloseMemHandle", call.close_memory);
  library.find_optional("cuMemGetHandleForAddressRange", call.range_handle);
  if (!library.is_complete()) return nullptr;
  return std::unique_ptr<DeviceDriver>(new CudaDriver(call));
}

void CudaDriver::say(Result result, const char* function, size_t bytes) noexcept {
  const char* text = nullptr;
  if (call_.error_name(result, &text) != success || text == nullptr) text = "unknown error";
  say_driver_fault(number(), name(), result, function, bytes, text);
}

DeviceDriver::Outcome CudaDriver::outcome_of(Result result, const char* function,
                                             size_t bytes) noexcept {
  switch (result) {
    case success:
      return Outcome::done;
    case not_ready:
      return Outcome::running;
    case invalid_context:
    case invalid_handle:
    case context_is_destroyed:
      return Outcome::stale;
    case invalid_value:
      say(result, function, bytes);
      return Outcome::no_memory;
    case deinitialized:  // the process ends
      return Outcome::failed;
    default:
      say(result, function, bytes);
      return Outcome::failed;
  }
}

bool CudaDriver::describe(const void* address, DeviceAllocation* out,
                          DeviceContext* context) noexcept {
  PointerAttribute attributes[] = {
      attribute_memory_type,    attribute_is_managed,  attribute_context,   attribute_buffer_id,
      attribute_device_ordinal, attribute_range_start, attribute_range_size};
  unsigned type = 0;
  unsigned is_managed = 0;
  Context own_context = nullptr;
  unsigned long long id = 0;
  int device = 0;
  DevicePointer start = 0;
  size_t size = 0;
  void* data[] = {&type, &is_managed, &own_context, &id, &device, &start, &size};
  static_assert(std::size(attributes) == std::size(data));
  const Result result =
      call_.pointer_attributes(std::size(data), attributes, data, pointer_of(address));
  // The program has not initialized the driver: then there is no memory of a device. Or it ends.
  if (result == not_initialized || result == deinitialized) return false;
  if (result != success) {
    say(result, "cuPointerGetAttributes", 0);
    return false;
  }
  if (type != memory_type_device || (is_managed & 0xff) != 0 || start == 0) return false;
  *out = {static_cast<uintptr_t>(start), size, id, device};
  if (own_context == nullptr) own_context = primary_context(device);
  *context = {own_context, device};
  return true;
}

Context CudaDriver::primary_context(int device) noexcept {
  if (device < 0 || device >= max_devices) return nullptr;
  Context context = primary_[device].load(std::memory_order_acquire);
  if (context != nullptr) return context;
  LockGuard guard(retaining_);
  context = primary_[device].load(std::memory_order_relaxed);
  if (context != nullptr) return context;
  const Result result = call_.retain_primary(&context, device);
  if (result != success) {
    say(result, "cuDevicePrimaryCtxRetain", 0);
    return nullptr;
  }
  primary_[device].store(context, std::memory_order_release);
  return context;
}

DeviceDriver::Queue CudaDriver::make_queue(const DeviceContext& context, bool) noexcept {
  const Current current(*this, context_of(context));
  Stream stream = nullptr;
  Result result = current.result();
  // It does not wait for the kernels of the program, nor they for it.
  if (result == success) result = call_.create_stream(&stream, stream_non_blocking);
  if (result == success) return stream;
  say(result, "cuStreamCreate", 0);
  return nullptr;
}

DeviceDriver::Event CudaDriver::make_event(const DeviceContext& context) noexcept {
  const Current current(*this, context_of(context));
  cuda::Event event = nullptr;
  Result result = current.result();
  if (result == success) result = call_.create_event(&event, event_disable_timing);
  if (result == success) return event;
  say(result, "cuEventCreate", 0);
  return nullptr;
}

DeviceDriver::Outcome CudaDriver::copy_now(const DeviceContext& context, Queue queue, void* to,
                                           const void* from, size_t bytes) noexcept {
  const Current current(*this, context_of(context));
  if (current.result() != success) return outcome_of(current.result(), "cuCtxPushCurrent", 0);
  auto* const stream = static_cast<Stream>(queue);
  const Result started = call_.copy_async(pointer_of(to), pointer_of(from), bytes, stream);
  if (started != success) return outcome_of(started, "cuMemcpyAsync", bytes);
  return outcome_of(call_.synchronize_stream(stream), "cuStreamSynchronize", bytes);
}

DeviceDriver::Outcome CudaDriver::start(const DeviceContext& context, Queue queue, Event event,
                                        void* to, const void* from, size_t bytes) noexcept {
  const Current current(*this, context_of(context));
  if (current.result() != success) return outcome_of(current.result(), "cuCtxPushCurrent", 0);
  auto* const stream = static_cast<Stream>(queue);
  const Result started = call_.copy_async(pointer_of(to), pointer_of(from), bytes, stream);
  if (started != success) return outcome_of(started, "cuMemcpyAsync", bytes);
  const Result recorded = call_.record_event(static_cast<cuda::Event>(event), stream);
  return recorded == success ? Outcome::running : outcome_of(recorded, "cuEventRecord", bytes);
}

DeviceDriver::Outcome CudaDriver::state_of(const DeviceContext& context, Event event) noexcept {
  const Current current(*this, context_of(context));
  if (current.result() != success) return outcome_of(current.result(), "cuCtxPushCurrent", 0);
  return outcome_of(call_.query_event(static_cast<cuda::Event>(event)), "cuEventQuery", 0);
}

bool CudaDriver::pin(const DeviceContext& context, void* host, size_t bytes) noexcept {
  const Current current(*this, context_of(context));
  Result result = current.result();
  if (result == success) result = call_.register_host(host, bytes, host_register_portable);
  if (result == success) return true;
  say(result, "cuMemHostRegister", bytes);
  return false;
}

void CudaDriver::unpin(const DeviceContext& context, void* host) noexcept {
  const Current current(*this, context_of(context));
  if (current.result() == success) call_.unregister_host(host);
}

void CudaDriver::order_with_program(const DeviceAllocation& allocation) noexcept {
  const unsigned on = 1;
  call_.set_pointer_attribute(&on, attribute_sync_memops, allocation.base);
}

bool CudaDriver::export_allocation(const DeviceContext& context, const DeviceAllocation& allocation,
                                   ExportedAllocation* out) noexcept {
  const Current current(*this, context_of(context));
  if (current.result() != success) return false;
  IpcHandle handle;
  static_assert(sizeof handle == sizeof out->handle);
  Uuid uuid;
  static_assert(sizeof uuid == sizeof out->device);
  // Memory of virtual memory management and of pools has no such handle.
  if (call_.export_memory(&handle, allocation.base) != success ||
      call_.device_uuid(&uuid, allocation.device) != success)
    return false;
  order_with_program(allocation);
  std::memcpy(out->handle.data(), &handle, sizeof handle);
  std::memcpy(out->device.data(), &uuid, sizeof uuid);
  out->handle_bytes = sizeof handle;
  return true;
}

// Maps it in the primary context of the exporter's device if this process sees that device, else of
// the first one, which then reads it as a peer.
void* CudaDriver::open(const ExportedAllocation& exported) noexcept {
  IpcHandle handle;
  if (exported.handle_bytes != sizeof handle) return nullptr;
  std::memcpy(&handle, exported.handle.data(), sizeof handle);
  const int count = device_count();
  if (count == 0) return nullptr;
  int device = 0;
  for (int i = 0; i < count; ++i) {
    Uuid uuid;
    if (call_.device_uuid(&uuid, i) == success &&
        std::memcmp(&uuid, exported.device.data(), sizeof uuid) == 0)
      device = i;
  }
  const Current current(*this, primary_context(device));
  if (current.result() != success) return nullptr;
  DevicePointer base = 0;
  const Result result = call_.open_memory(&base, handle, ipc_lazy_peer_access);
  if (result == success) return address_of(base);
  say(result, "cuIpcOpenMemHandle", exported.length);
  return nullptr;
}

void CudaDriver::close(void* base) noexcept {
  DeviceAllocation allocation;
  DeviceContext context;
  if (!describe(base, &allocation, &context)) return;
  const Current current(*this, context_of(context));
  if (current.result() == success) call_.close_memory(pointer_of(base));
}

int CudaDriver::dmabuf(const DeviceContext& context, const DeviceAllocation& allocation,
                       uintptr_t* start) noexcept {
  if (call_.range_handle == nullptr) return -1;
  const Current current(*this, context_of(context));
  if (current.result() != success) return -1;
  *start = page_start(allocation.base);
  const uintptr_t end = page_start(allocation.base + allocation.length + system_page_bytes() - 1);
  int descriptor = -1;
  if (call_.range_handle(&descriptor, *start, end - *start, range_handle_dmabuf, 0) != success)
    return -1;
  order_with_program(allocation);
  return descriptor;
}

int CudaDriver::device_count() noexcept {
  int count = 0;
  Result result = call_.init(0);
  if (result == success) result = call_.device_count(&count);
  if (result == success) return count;
  if (result != no_device) say(result, "cuInit", 0);
  return 0;
}

void CudaDriver::device_name(int device, char* text, size_t bytes) noexcept {
  text[0] = '\0';
  if (device_count() > device) call_.device_name(text, static_cast<int>(bytes), device);
}

void* CudaDriver::allocate(int device, uint64_t bytes) noexcept {
  if (device < 0 || device >= device_count()) return nullptr;
  const Current current(*this, primary_context(device));
  DevicePointer pointer = 0;
  Result result = current.result();
  if (result == success) result = call_.allocate(&pointer, bytes);
  if (result == success) return address_of(pointer);
  say(result, "cuMemAlloc", bytes);
  return nullptr;
}

void CudaDriver::release(void* base) noexcept {
  DeviceAllocation allocation;
  DeviceContext context;
  if (!describe(base, &allocation, &context)) return;
  const Current current(*this, context_of(context));
  if (current.result() == success) call_.free(pointer_of(base));
}

}  // namespace lintel
