// CUDA through its driver. Memory is accessed in the context that it was allocated in, or in the
// primary context of its device where it has none (as that of virtual memory management). Message
// path: describe(), state_of().
#include <array>
#include <atomic>

#include "memory_kind/cuda_functions.h"
#include "memory_kind/driver_library.h"
#include "memory_kind/stream_driver.h"
#include "util/lock.h"
#include "util/page_size.h"

namespace lintel {

namespace {

using namespace cuda;

DevicePointer pointer_of(const void* address) { return reinterpret_cast<DevicePointer>(address); }

// See stream_driver.h.
struct CudaApi {
  static constexpr const char* name = "cuda";
  static constexpr uint8_t number = 1;
  static constexpr const char* prefix = "cu";
  static constexpr const char* makes_current = "CtxPushCurrent";
  static constexpr const char* allocates = "MemAlloc";
  static constexpr const char* pins = "MemHostRegister";
  static constexpr const char* counts = "Init";
  using Functions = cuda::Functions;
  using Stream = cuda::Stream;
  using Event = cuda::Event;

  class Current {
   public:
    Current(const Functions& call, const DeviceContext& context) noexcept
        : call_(call),
          result_(context.handle == nullptr
                      ? invalid_context
                      : call.push_context(static_cast<Context>(context.handle))) {}
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    ~Current() {
      Context popped = nullptr;
      if (result_ == success) call_.pop_context(&popped);
    }
    [[nodiscard]] Result result() const noexcept { return result_; }

   private:
    const Functions& call_;
    const Result result_;
  };

  static const char* text(const Functions& call, Result result) noexcept {
    const char* text = nullptr;
    return call.error_name(result, &text) == success && text != nullptr ? text : "unknown error";
  }
  static Result copy(const Functions& call, void* to, const void* from, size_t bytes,
                     Stream stream) noexcept {
    return call.copy_async(pointer_of(to), pointer_of(from), bytes, stream);
  }
  static Uuid uuid(const Functions& call, Device device) noexcept {
    Uuid uuid{};
    return call.device_uuid(&uuid, device) == success ? uuid : Uuid{};
  }
  static Result count_devices(const Functions& call, int* count) noexcept {
    const Result result = call.init(0);
    return result == success ? call.device_count(count) : result;
  }
  static Result allocate(const Functions& call, size_t bytes, void** out) noexcept {
    DevicePointer pointer = 0;
    const Result result = call.allocate(&pointer, bytes);
    *out = reinterpret_cast<void*>(pointer);
    return result;
  }
  // Makes synchronous calls of the program on this memory wait for their end, since others than its
  // streams read it.
  static void order_with_program(const Functions& call, uintptr_t base) noexcept {
    const unsigned on = 1;
    call.set_pointer_attribute(&on, attribute_sync_memops, base);
  }
  static Result export_memory(const Functions& call, uintptr_t base, IpcHandle* handle) noexcept {
    const Result result = call.export_memory(handle, base);
    if (result == success) order_with_program(call, base);
    return result;
  }
  static Result open_memory(const Functions& call, const IpcHandle& handle, void** base) noexcept {
    DevicePointer pointer = 0;
    const Result result = call.open_memory(&pointer, handle, ipc_lazy_peer_access);
    *base = reinterpret_cast<void*>(pointer);
    return result;
  }
};

class CudaDriver final : public StreamDriver<CudaApi> {
 public:
  using StreamDriver::StreamDriver;

  bool describe(const void* address, DeviceAllocation* out,
                DeviceContext* context) noexcept override {
    PointerAttribute attributes[] = {
        attribute_memory_type,    attribute_is_managed,  attribute_context,   attribute_buffer_id,
        attribute_device_ordinal, attribute_range_start, attribute_range_size};
    unsigned type = 0;
    unsigned is_managed = 0;
    Context own = nullptr;
    unsigned long long id = 0;
    int device = 0;
    DevicePointer start = 0;
    size_t size = 0;
    void* data[] = {&type, &is_managed, &own, &id, &device, &start, &size};
    static_assert(std::size(attributes) == std::size(data));
    const Result result =
        call_.pointer_attributes(std::size(data), attributes, data, pointer_of(address));
    // The program has not initialized the driver: then there is no memory of a device. Or it ends.
    if (result == not_initialized || result == deinitialized) return false;
    if (result != success) {
      say(result, "PointerGetAttributes", 0);
      return false;
    }
    if (type != memory_type_device || (is_managed & 0xff) != 0 || start == 0) return false;
    *out = {static_cast<uintptr_t>(start), size, id, device};
    *context = own == nullptr ? own_context(device) : DeviceContext{own, device};
    return true;
  }

  Outcome state_of(const DeviceContext& context, Event event) noexcept override {
    const Current current(call_, context);
    if (current.result() != success) return outcome_of(current.result(), CudaApi::makes_current, 0);
    return outcome_of(call_.query_event(static_cast<cuda::Event>(event)), "EventQuery", 0);
  }

  void close(void* base) noexcept override {
    in_its_context(base, [&] { call_.close_memory(pointer_of(base)); });
  }
  void release(void* base) noexcept override {
    in_its_context(base, [&] { call_.free(pointer_of(base)); });
  }

  int dmabuf(const DeviceContext& context, const DeviceAllocation& allocation,
             uintptr_t* start) noexcept override {
    if (call_.range_handle == nullptr) return -1;
    const Current current(call_, context);
    *start = page_start(allocation.base);
    const uintptr_t end = page_start(allocation.base + allocation.length + system_page_bytes() - 1);
    int descriptor = -1;
    if (current.result() != success ||
        call_.range_handle(&descriptor, *start, end - *start, range_handle_dmabuf, 0) != success)
      return -1;
    CudaApi::order_with_program(call_, allocation.base);
    return descriptor;
  }

 private:
  static constexpr int max_devices = 64;

  // The primary context.
  DeviceContext own_context(int device) noexcept override {
    if (device < 0 || device >= max_devices) return {nullptr, device};
    Context context = primary_[device].load(std::memory_order_acquire);
    if (context != nullptr) return {context, device};
    LockGuard guard(retaining_);
    context = primary_[device].load(std::memory_order_relaxed);
    if (context != nullptr) return {context, device};
    const Result result = call_.retain_primary(&context, device);
    if (result != success) {
      say(result, "DevicePrimaryCtxRetain", 0);
      return {nullptr, device};
    }
    primary_[device].store(context, std::memory_order_release);
    return {context, device};
  }
  template <typename Call>
  void in_its_context(const void* base, const Call& call) noexcept {
    DeviceAllocation allocation;
    DeviceContext context;
    if (!describe(base, &allocation, &context)) return;
    const Current current(call_, context);
    if (current.result() == success) call();
  }

  Mutex retaining_;
  std::array<std::atomic<Context>, max_devices> primary_{};
};

}  // namespace

std::unique_ptr<DeviceDriver> make_cuda_driver(DriverLibrary& library) {
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
  library.find_optional("cuDeviceGetPCIBusId", call.pci_address);
  library.find_optional("cuMemGetHandleForAddressRange", call.range_handle);
  if (!library.is_complete()) return nullptr;
  return std::make_unique<CudaDriver>(call);
}

}  // namespace lintel
