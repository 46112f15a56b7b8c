// Devices of AMD through HIP. A device has one context. Message path: describe(), state_of().
#include "memory_kind/driver_library.h"
#include "memory_kind/hip_functions.h"
#include "memory_kind/stream_driver.h"

namespace lintel {

namespace {

using namespace hip;

// See stream_driver.h.
struct HipApi {
  static constexpr const char* name = "hip";
  static constexpr uint8_t number = 2;
  static constexpr const char* prefix = "hip";
  static constexpr const char* makes_current = "SetDevice";
  static constexpr const char* allocates = "Malloc";
  static constexpr const char* pins = "HostRegister";
  static constexpr const char* counts = "GetDeviceCount";
  using Functions = hip::Functions;
  using Stream = hip::Stream;
  using Event = hip::Event;

  class Current {
   public:
    Current(const Functions& call, const DeviceContext& context) noexcept : call_(call) {
      result_ = call.get_device(&before_);
      if (result_ == success && before_ != context.device) {
        result_ = call.set_device(context.device);
        changed_ = result_ == success;
      }
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    ~Current() {
      if (changed_) call_.set_device(before_);
    }
    [[nodiscard]] Result result() const noexcept { return result_; }

   private:
    const Functions& call_;
    int before_ = 0;
    bool changed_ = false;
    Result result_;
  };

  static const char* text(const Functions& call, Result result) noexcept {
    return call.error_name(result);
  }
  static Result copy(const Functions& call, void* to, const void* from, size_t bytes,
                     Stream stream) noexcept {
    return call.copy_async(to, from, bytes, copy_default, stream);
  }
  // Zeros where HIP is too old to have them.
  static Uuid uuid(const Functions& call, int device) noexcept {
    Uuid uuid{};
    return call.device_uuid != nullptr && call.device_uuid(&uuid, device) == success ? uuid
                                                                                     : Uuid{};
  }
  static Result count_devices(const Functions& call, int* count) noexcept {
    return call.device_count(count);
  }
  static Result allocate(const Functions& call, size_t bytes, void** out) noexcept {
    return call.allocate(out, bytes);
  }
  static Result export_memory(const Functions& call, uintptr_t base, IpcHandle* handle) noexcept {
    return call.export_memory(handle, reinterpret_cast<void*>(base));
  }
  // hipIpcMemLazyEnablePeerAccess, the only flag, is 1 or, in older versions, 0.
  static Result open_memory(const Functions& call, const IpcHandle& handle, void** base) noexcept {
    const Result result = call.open_memory(base, handle, 1);
    return result == invalid_value ? call.open_memory(base, handle, 0) : result;
  }
};

class HipDriver final : public StreamDriver<HipApi> {
 public:
  HipDriver(const Functions& functions, unsigned memory_type_device)
      : StreamDriver(functions), memory_type_device_(memory_type_device) {}

  bool describe(const void* address, DeviceAllocation* out,
                DeviceContext* context) noexcept override {
    PointerAttribute attributes[] = {attribute_memory_type, attribute_is_managed,
                                     attribute_buffer_id, attribute_device_ordinal};
    // For memory that it does not know, HIP may leave them as they are.
    unsigned type = ~0u;
    uint64_t is_managed = 0;
    uint64_t id = 0;
    int device = -1;
    void* data[] = {&type, &is_managed, &id, &device};
    static_assert(std::size(attributes) == std::size(data));
    auto* const pointer = const_cast<void*>(address);
    void* base = nullptr;
    size_t bytes = 0;
    if (call_.pointer_attributes(std::size(data), attributes, data, pointer) != success ||
        type != memory_type_device_ || (is_managed & 0xff) != 0 || device < 0 ||
        call_.address_range(&base, &bytes, pointer) != success)
      return false;
    *out = {reinterpret_cast<uintptr_t>(base), bytes, id, device};
    *context = own_context(device);
    return true;
  }

  Outcome state_of(const DeviceContext&, Event event) noexcept override {
    return outcome_of(call_.query_event(static_cast<hip::Event>(event)), "EventQuery", 0);
  }

  void close(void* base) noexcept override { call_.close_memory(base); }
  void release(void* base) noexcept override { call_.free(base); }

  int dmabuf(const DeviceContext&, const DeviceAllocation& allocation,
             uintptr_t* start) noexcept override {
    int descriptor = -1;
    uint64_t offset = 0;
    if (call_.export_dmabuf == nullptr ||
        call_.export_dmabuf(reinterpret_cast<void*>(allocation.base), allocation.length,
                            &descriptor, &offset) != 0)
      return -1;
    *start = allocation.base - offset;
    return descriptor;
  }

 private:
  DeviceContext own_context(int device) noexcept override { return {nullptr, device}; }

  const unsigned memory_type_device_;
};

}  // namespace

std::unique_ptr<DeviceDriver> make_hip_driver(DriverLibrary& library) {
  Functions call{};
  library.find("hipGetErrorName", call.error_name);
  library.find("hipRuntimeGetVersion", call.runtime_version);
  library.find("hipGetDeviceCount", call.device_count);
  library.find("hipDeviceGetName", call.device_name);
  library.find("hipGetDevice", call.get_device);
  library.find("hipSetDevice", call.set_device);
  library.find("hipDrvPointerGetAttributes", call.pointer_attributes);
  library.find("hipMemGetAddressRange", call.address_range);
  library.find("hipMalloc", call.allocate);
  library.find("hipFree", call.free);
  library.find("hipMemcpyAsync", call.copy_async);
  library.find("hipStreamCreateWithFlags", call.create_stream);
  library.find("hipStreamSynchronize", call.synchronize_stream);
  library.find("hipEventCreateWithFlags", call.create_event);
  library.find("hipEventRecord", call.record_event);
  library.find("hipEventQuery", call.query_event);
  library.find("hipHostRegister", call.register_host);
  library.find("hipHostUnregister", call.unregister_host);
  library.find("hipIpcGetMemHandle", call.export_memory);
  library.find("hipIpcOpenMemHandle", call.open_memory);
  library.find("hipIpcCloseMemHandle", call.close_memory);
  library.find_optional("hipDeviceGetPCIBusId", call.pci_address);
  library.find_optional("hipDeviceGetUuid", call.device_uuid);
  library.find_optional("hsa_amd_portable_export_dmabuf", call.export_dmabuf);
  if (!library.is_complete()) return nullptr;
  int version = 0;
  if (call.runtime_version(&version) != success) version = 0;
  return std::make_unique<HipDriver>(
      call, version >= first_version_of_6 ? memory_type_device_6 : memory_type_device_5);
}

}  // namespace lintel
