// Devices of AMD through HIP. Message path: describe(), start(), state_of().
#include "memory_kind/hip_driver.h"

#include <cstring>

#include "memory_kind/driver_faults.h"

namespace lintel {

namespace {

using namespace hip;

void* writable(const void* address) { return const_cast<void*>(address); }

}  // namespace

class HipDriver::Current {
 public:
  Current(const HipDriver& driver, int device) noexcept : driver_(driver) {
    result_ = driver.call_.get_device(&before_);
    if (result_ == success && before_ != device) {
      result_ = driver.call_.set_device(device);
      changed_ = result_ == success;
    }
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    if (changed_) driver_.call_.set_device(before_);
  }
  [[nodiscard]] Result result() const noexcept { return result_; }

 private:
  const HipDriver& driver_;
  int before_ = 0;
  bool changed_ = false;
  Result result_;
};

std::unique_ptr<DeviceDriver> HipDriver::make(DriverLibrary& library) {
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
  library.find_optional("hipDeviceGetUuid", call.device_uuid);
  library.find_optional("hsa_amd_portable_export_dmabuf", call.export_dmabuf);
  if (!library.is_complete()) return nullptr;
  int version = 0;
  if (call.runtime_version(&version) != success) version = 0;
  return std::unique_ptr<DeviceDriver>(new HipDriver(
      call, version >= first_version_of_6 ? memory_type_device_6 : memory_type_device_5));
}

void HipDriver::say(Result result, const char* function, size_t bytes) noexcept {
  say_driver_fault(number(), name(), result, function, bytes, call_.error_name(result));
}

DeviceDriver::Outcome HipDriver::outcome_of(Result result, const char* function,
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

bool HipDriver::describe(const void* address, DeviceAllocation* out,
                         DeviceContext* context) noexcept {
  PointerAttribute attributes[] = {attribute_memory_type, attribute_is_managed, attribute_buffer_id,
                                   attribute_device_ordinal};
  // For memory that it does not know, HIP may leave them as they are.
  unsigned type = ~0u;
  uint64_t is_managed = 0;
  uint64_t id = 0;
  int device = -1;
  void* data[] = {&type, &is_managed, &id, &device};
  static_assert(std::size(attributes) == std::size(data));
  if (call_.pointer_attributes(std::size(data), attributes, data, writable(address)) != success ||
      type != memory_type_device_ || (is_managed & 0xff) != 0 || device < 0)
    return false;
  void* base = nullptr;
  size_t bytes = 0;
  if (call_.address_range(&base, &bytes, writable(address)) != success) return false;
  *out = {reinterpret_cast<uintptr_t>(base), bytes, id, device};
  *context = {nullptr, device};
  return true;
}

DeviceDriver::Queue HipDriver::make_queue(const DeviceContext& context, bool) noexcept {
  const Current current(*this, context.device);
  Stream stream = nullptr;
  Result result = current.result();
  // It does not wait for the kernels of the program, nor they for it.
  if (result == success) result = call_.create_stream(&stream, stream_non_blocking);
  if (result == success) return stream;
  say(result, "hipStreamCreate", 0);
  return nullptr;
}

DeviceDriver::Event HipDriver::make_event(const DeviceContext& context) noexcept {
  const Current current(*this, context.device);
  hip::Event event = nullptr;
  Result result = current.result();
  if (result == success) result = call_.create_event(&event, event_disable_timing);
  if (result == success) return event;
  say(result, "hipEventCreate", 0);
  return nullptr;
}

DeviceDriver::Outcome HipDriver::copy_now(const DeviceContext& context, Queue queue, void* to,
                                          const void* from, size_t bytes) noexcept {
  const Current current(*this, context.device);
  if (current.result() != success) return outcome_of(current.result(), "hipSetDevice", 0);
  auto* const stream = static_cast<Stream>(queue);
  const Result started = call_.copy_async(to, from, bytes, copy_default, stream);
  if (started != success) return outcome_of(started, "hipMemcpyAsync", bytes);
  return outcome_of(call_.synchronize_stream(stream), "hipStreamSynchronize", bytes);
}

DeviceDriver::Outcome HipDriver::start(const DeviceContext& context, Queue queue, Event event,
                                       void* to, const void* from, size_t bytes) noexcept {
  const Current current(*this, context.device);
  if (current.result() != success) return outcome_of(current.result(), "hipSetDevice", 0);
  auto* const stream = static_cast<Stream>(queue);
  const Result started = call_.copy_async(to, from, bytes, copy_default, stream);
  if (started != success) return outcome_of(started, "hipMemcpyAsync", bytes);
  const Result recorded = call_.record_event(static_cast<hip::Event>(event), stream);
  return recorded == success ? Outcome::running : outcome_of(recorded, "hipEventRecord", bytes);
}

DeviceDriver::Outcome HipDriver::state_of(const DeviceContext&, Event event) noexcept {
  return outcome_of(call_.query_event(static_cast<hip::Event>(event)), "hipEventQuery", 0);
}

bool HipDriver::pin(const DeviceContext& context, void* host, size_t bytes) noexcept {
  const Current current(*this, context.device);
  Result result = current.result();
  if (result == success) result = call_.register_host(host, bytes, host_register_portable);
  if (result == success) return true;
  say(result, "hipHostRegister", bytes);
  return false;
}

void HipDriver::unpin(const DeviceContext& context, void* host) noexcept {
  const Current current(*this, context.device);
  if (current.result() == success) call_.unregister_host(host);
}

// All zero where the driver is too old to have them.
Uuid HipDriver::uuid_of(int device) const noexcept {
  Uuid uuid{};
  if (call_.device_uuid != nullptr && call_.device_uuid(&uuid, device) != success) return {};
  return uuid;
}

bool HipDriver::export_allocation(const DeviceContext& context, const DeviceAllocation& allocation,
                                  ExportedAllocation* out) noexcept {
  const Current current(*this, context.device);
  IpcHandle handle;
  static_assert(sizeof handle == sizeof out->handle && sizeof(Uuid) == sizeof out->device);
  if (current.result() != success ||
      call_.export_memory(&handle, reinterpret_cast<void*>(allocation.base)) != success)
    return false;
  const Uuid uuid = uuid_of(allocation.device);
  std::memcpy(out->handle.data(), &handle, sizeof handle);
  std::memcpy(out->device.data(), &uuid, sizeof uuid);
  out->handle_bytes = sizeof handle;
  return true;
}

// Maps it on the exporter's device if this process sees that device, else on the first one, which
// then reads it as a peer.
void* HipDriver::open(const ExportedAllocation& exported) noexcept {
  IpcHandle handle;
  if (exported.handle_bytes != sizeof handle) return nullptr;
  std::memcpy(&handle, exported.handle.data(), sizeof handle);
  int device = 0;
  for (int i = device_count() - 1; i >= 0; --i) {
    const Uuid uuid = uuid_of(i);
    if (std::memcmp(&uuid, exported.device.data(), sizeof uuid) == 0) device = i;
  }
  const Current current(*this, device);
  if (current.result() != success) return nullptr;
  // hipIpcMemLazyEnablePeerAccess, the only flag, is 1 or, in older versions, 0.
  void* base = nullptr;
  Result result = call_.open_memory(&base, handle, 1);
  if (result == invalid_value) result = call_.open_memory(&base, handle, 0);
  if (result == success) return base;
  say(result, "hipIpcOpenMemHandle", exported.length);
  return nullptr;
}

void HipDriver::close(void* base) noexcept { call_.close_memory(base); }

int HipDriver::dmabuf(const DeviceContext&, const DeviceAllocation& allocation,
                      uintptr_t* start) noexcept {
  int descriptor = -1;
  uint64_t offset = 0;
  if (call_.export_dmabuf == nullptr ||
      call_.export_dmabuf(reinterpret_cast<void*>(allocation.base), allocation.length, &descriptor,
                          &offset) != 0)
    return -1;
  *start = allocation.base - offset;
  return descriptor;
}

int HipDriver::device_count() noexcept {
  int count = 0;
  const Result result = call_.device_count(&count);
  if (result == success) return count;
  if (result != no_device) say(result, "hipGetDeviceCount", 0);
  return 0;
}

void HipDriver::device_name(int device, char* text, size_t bytes) noexcept {
  text[0] = '\0';
  if (device_count() > device) call_.device_name(text, static_cast<int>(bytes), device);
}

void* HipDriver::allocate(int device, uint64_t bytes) noexcept {
  if (device < 0 || device >= device_count()) return nullptr;
  const Current current(*this, device);
  void* pointer = nullptr;
  Result result = current.result();
  if (result == success) result = call_.allocate(&pointer, bytes);
  if (result == success) return pointer;
  say(result, "hipMalloc", bytes);
  return nullptr;
}

void HipDriver::release(void* base) noexcept { call_.free(base); }

}  // namespace lintel
