// Devices of Intel through Level Zero. Message path: describe(), start(), state_of().
#include "memory_kind/ze_driver.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "memory_kind/driver_faults.h"
#include "util/new_descriptor.h"

namespace lintel {

namespace {

constexpr uint32_t events_per_device = 1024;
constexpr size_t alignment = 4096;

// A descriptor of another process of this user.
Descriptor descriptor_of(uint32_t process, int number) {
  const Descriptor target =
      above_standard(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(process), 0)));
  if (!target.is_open()) return {};
  return above_standard(static_cast<int>(syscall(SYS_pidfd_getfd, target.get(), number, 0)));
}

}  // namespace

std::unique_ptr<DeviceDriver> ZeDriver::make(DriverLibrary& library) {
  ze::Functions call{};
  library.find("zeInit", call.init);
  library.find("zeDriverGet", call.get_drivers);
  library.find("zeDeviceGet", call.get_devices);
  library.find("zeDeviceGetProperties", call.device_properties);
  library.find("zeContextCreate", call.create_context);
  library.find("zeMemGetAllocProperties", call.memory_properties);
  library.find("zeMemGetAddressRange", call.address_range);
  library.find("zeMemAllocDevice", call.allocate);
  library.find("zeMemFree", call.free);
  library.find("zeCommandListCreateImmediate", call.create_list);
  library.find("zeCommandListAppendMemoryCopy", call.append_copy);
  library.find("zeEventPoolCreate", call.create_pool);
  library.find("zeEventCreate", call.create_event);
  library.find("zeEventHostReset", call.reset_event);
  library.find("zeEventQueryStatus", call.query_event);
  library.find("zeMemGetIpcHandle", call.export_memory);
  library.find("zeMemOpenIpcHandle", call.open_memory);
  library.find("zeMemCloseIpcHandle", call.close_memory);
  if (!library.is_complete()) return nullptr;
  return std::unique_ptr<DeviceDriver>(new ZeDriver(call));
}

void ZeDriver::say(ze::Result result, const char* function, size_t bytes) noexcept {
  say_driver_fault(number(), name(), static_cast<int>(result), function, bytes,
                   result == ze::device_lost            ? "device lost"
                   : result == ze::out_of_host_memory   ? "out of host memory"
                   : result == ze::out_of_device_memory ? "out of device memory"
                   : result == ze::unsupported_feature  ? "unsupported feature"
                   : result == ze::invalid_argument     ? "invalid argument"
                                                        : "error");
}

DeviceDriver::Outcome ZeDriver::outcome_of(ze::Result result, const char* function,
                                           size_t bytes) noexcept {
  if (result == ze::success) return Outcome::done;
  if (result == ze::not_ready) return Outcome::running;
  say(result, function, bytes);
  return result == ze::invalid_argument ? Outcome::no_memory : Outcome::failed;
}

void ZeDriver::read_devices() {
  uint32_t driver_count = 0;
  if (call_.get_drivers(&driver_count, nullptr) != ze::success) return;
  std::vector<ze::Driver> drivers(driver_count);
  if (call_.get_drivers(&driver_count, drivers.data()) != ze::success) return;
  for (const ze::Driver driver : drivers) {
    const ze::ContextDescription description;
    ze::Context context = nullptr;
    uint32_t count = 0;
    if (call_.create_context(driver, &description, &context) != ze::success ||
        call_.get_devices(driver, &count, nullptr) != ze::success)
      continue;
    std::vector<ze::Device> handles(count);
    if (call_.get_devices(driver, &count, handles.data()) != ze::success) continue;
    contexts_.push_back(context);
    for (const ze::Device handle : handles) {
      Device device;
      device.handle = handle;
      device.context = context;
      ze::DeviceProperties properties;
      if (call_.device_properties(handle, &properties) == ze::success)
        std::memcpy(device.uuid.data(), properties.uuid, sizeof properties.uuid);
      devices_.push_back(device);
    }
  }
  found_.store(true, std::memory_order_release);
}

bool ZeDriver::find_devices() noexcept {
  if (found_.load(std::memory_order_acquire)) return true;
  LockGuard guard(lock_);
  try {
    if (!found_.load(std::memory_order_relaxed)) read_devices();
  } catch (const std::bad_alloc&) {  // the next call tries again
    contexts_.clear();
    devices_.clear();
  }
  return found_.load(std::memory_order_relaxed);
}

bool ZeDriver::describe(const void* address, DeviceAllocation* out,
                        DeviceContext* context) noexcept {
  if (!find_devices()) return false;
  for (const ze::Context each : contexts_) {
    ze::MemoryProperties properties;
    ze::Device device = nullptr;
    if (call_.memory_properties(each, address, &properties, &device) != ze::success ||
        properties.type != ze::memory_type_device)
      continue;
    void* base = nullptr;
    size_t bytes = 0;
    if (call_.address_range(each, address, &base, &bytes) != ze::success) return false;
    for (size_t i = 0; i < devices_.size(); ++i)
      if (devices_[i].handle == device) {
        *out = {reinterpret_cast<uintptr_t>(base), bytes, properties.id, static_cast<int>(i)};
        *context = {&devices_[i], static_cast<int>(i)};
        return true;
      }
  }
  return false;
}

DeviceDriver::Queue ZeDriver::make_queue(const DeviceContext& context, bool awaited) noexcept {
  const Device& device = device_of(context);
  ze::QueueDescription description;
  description.mode = awaited ? ze::queue_synchronous : ze::queue_asynchronous;
  List* const list = new (std::nothrow) List;
  if (list == nullptr) return nullptr;
  const ze::Result result =
      call_.create_list(device.context, device.handle, &description, &list->list);
  if (result == ze::success) return list;
  say(result, "zeCommandListCreateImmediate", 0);
  delete list;
  return nullptr;
}

DeviceDriver::Event ZeDriver::make_event(const DeviceContext& context) noexcept {
  Device& device = device_of(context);
  LockGuard guard(lock_);
  if (device.pool == nullptr) {
    ze::EventPoolDescription description;
    description.flags = ze::pool_host_visible;
    description.count = events_per_device;
    const ze::Result result =
        call_.create_pool(device.context, &description, 1, &device.handle, &device.pool);
    if (result != ze::success) {
      say(result, "zeEventPoolCreate", 0);
      device.pool = nullptr;
      return nullptr;
    }
  }
  if (device.events == events_per_device) return nullptr;
  ze::EventDescription description;
  description.index = device.events;
  description.signal = ze::scope_host;
  description.wait = ze::scope_host;
  ze::Event event = nullptr;
  const ze::Result result = call_.create_event(device.pool, &description, &event);
  if (result != ze::success) {
    say(result, "zeEventCreate", 0);
    return nullptr;
  }
  ++device.events;
  return event;
}

DeviceDriver::Outcome ZeDriver::copy_now(const DeviceContext&, Queue queue, void* to,
                                         const void* from, size_t bytes) noexcept {
  List& list = *static_cast<List*>(queue);
  LockGuard guard(list.lock);
  return outcome_of(call_.append_copy(list.list, to, from, bytes, nullptr, 0, nullptr),
                    "zeCommandListAppendMemoryCopy", bytes);
}

DeviceDriver::Outcome ZeDriver::start(const DeviceContext&, Queue queue, Event event, void* to,
                                      const void* from, size_t bytes) noexcept {
  List& list = *static_cast<List*>(queue);
  const ze::Event signal = static_cast<ze::Event>(event);
  const ze::Result reset = call_.reset_event(signal);
  if (reset != ze::success) return outcome_of(reset, "zeEventHostReset", 0);
  LockGuard guard(list.lock);
  const ze::Result started = call_.append_copy(list.list, to, from, bytes, signal, 0, nullptr);
  return started == ze::success ? Outcome::running
                                : outcome_of(started, "zeCommandListAppendMemoryCopy", bytes);
}

DeviceDriver::Outcome ZeDriver::state_of(const DeviceContext&, Event event) noexcept {
  return outcome_of(call_.query_event(static_cast<ze::Event>(event)), "zeEventQueryStatus", 0);
}

bool ZeDriver::export_allocation(const DeviceContext& context, const DeviceAllocation& allocation,
                                 ExportedAllocation* out) noexcept {
  const Device& device = device_of(context);
  ze::IpcHandle handle;
  static_assert(sizeof handle == sizeof out->handle && sizeof device.uuid == sizeof out->device);
  if (call_.export_memory(device.context, reinterpret_cast<void*>(allocation.base), &handle) !=
      ze::success)
    return false;
  std::memcpy(out->handle.data(), &handle, sizeof handle);
  out->device = device.uuid;
  out->handle_bytes = sizeof handle;
  return true;
}

// The descriptor in the handle is one of the exporter; the driver needs one of this process.
void* ZeDriver::open(const ExportedAllocation& exported) noexcept {
  ze::IpcHandle handle;
  if (exported.handle_bytes != sizeof handle || !find_devices() || devices_.empty()) return nullptr;
  std::memcpy(&handle, exported.handle.data(), sizeof handle);
  int number = -1;
  std::memcpy(&number, handle.data, sizeof number);
  const Descriptor descriptor = descriptor_of(exported.process, number);
  if (!descriptor.is_open()) return nullptr;
  number = descriptor.get();
  std::memcpy(handle.data, &number, sizeof number);
  const Device* device = &devices_.front();
  for (const Device& each : devices_)
    if (each.uuid == exported.device) device = &each;
  void* base = nullptr;
  const ze::Result result = call_.open_memory(device->context, device->handle, handle, 0, &base);
  if (result == ze::success) return base;
  say(result, "zeMemOpenIpcHandle", exported.length);
  return nullptr;
}

void ZeDriver::close(void* base) noexcept {
  DeviceAllocation allocation;
  DeviceContext context;
  if (describe(base, &allocation, &context)) call_.close_memory(device_of(context).context, base);
}

int ZeDriver::dmabuf(const DeviceContext& context, const DeviceAllocation& allocation,
                     uintptr_t* start) noexcept {
  ze::ExportDescriptor exported;
  exported.flags = ze::export_dmabuf;
  ze::MemoryProperties properties;
  properties.head.next = &exported;
  ze::Device device = nullptr;
  if (call_.memory_properties(device_of(context).context, reinterpret_cast<void*>(allocation.base),
                              &properties, &device) != ze::success)
    return -1;
  *start = allocation.base;
  return exported.descriptor;
}

int ZeDriver::device_count() noexcept {
  if (call_.init(0) != ze::success || !find_devices()) return 0;
  return static_cast<int>(devices_.size());
}

void ZeDriver::device_name(int device, char* text, size_t bytes) noexcept {
  text[0] = '\0';
  ze::DeviceProperties properties;
  if (bytes == 0 || device >= device_count() ||
      call_.device_properties(devices_[device].handle, &properties) != ze::success)
    return;
  text[bytes - 1] = '\0';
  std::strncpy(text, properties.name, bytes - 1);
}

void* ZeDriver::allocate(int device, uint64_t bytes) noexcept {
  if (device < 0 || device >= device_count()) return nullptr;
  const Device& chosen = devices_[device];
  const ze::DeviceMemoryDescription description;
  void* pointer = nullptr;
  const ze::Result result =
      call_.allocate(chosen.context, &description, bytes, alignment, chosen.handle, &pointer);
  if (result == ze::success) return pointer;
  say(result, "zeMemAllocDevice", bytes);
  return nullptr;
}

void ZeDriver::release(void* base) noexcept {
  DeviceAllocation allocation;
  DeviceContext context;
  if (describe(base, &allocation, &context)) call_.free(device_of(context).context, base);
}

}  // namespace lintel
