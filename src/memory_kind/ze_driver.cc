// Devices of Intel through Level Zero. Memory is accessed in a context of the library, one for each
// driver of Level Zero: those know the memory of all contexts of a process. Message path:
// describe(), start(), state_of().
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <vector>

#include "memory_kind/device_driver.h"
#include "memory_kind/driver_library.h"
#include "memory_kind/ze_functions.h"
#include "util/lock.h"
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

class ZeDriver final : public DeviceDriver {
 public:
  explicit ZeDriver(const ze::Functions& functions) : call_(functions) {}

  const char* name() const noexcept override { return "ze"; }
  uint8_t number() const noexcept override { return 3; }

  bool describe(const void* address, DeviceAllocation* out,
                DeviceContext* context) noexcept override {
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

  Queue make_queue(const DeviceContext& context, bool awaited) noexcept override {
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

  Event make_event(const DeviceContext& context) noexcept override {
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

  Outcome copy_now(const DeviceContext&, Queue queue, void* to, const void* from,
                   size_t bytes) noexcept override {
    List& list = *static_cast<List*>(queue);
    LockGuard guard(list.lock);
    return outcome_of(call_.append_copy(list.list, to, from, bytes, nullptr, 0, nullptr),
                      "zeCommandListAppendMemoryCopy", bytes);
  }

  Outcome start(const DeviceContext&, Queue queue, Event event, void* to, const void* from,
                size_t bytes) noexcept override {
    List& list = *static_cast<List*>(queue);
    const ze::Event signal = static_cast<ze::Event>(event);
    const ze::Result reset = call_.reset_event(signal);
    if (reset != ze::success) return outcome_of(reset, "zeEventHostReset", 0);
    LockGuard guard(list.lock);
    const ze::Result started = call_.append_copy(list.list, to, from, bytes, signal, 0, nullptr);
    return started == ze::success ? Outcome::running
                                  : outcome_of(started, "zeCommandListAppendMemoryCopy", bytes);
  }

  Outcome state_of(const DeviceContext&, Event event) noexcept override {
    return outcome_of(call_.query_event(static_cast<ze::Event>(event)), "zeEventQueryStatus", 0);
  }

  // Level Zero pins memory of the host by itself, for each copy.
  bool pin(const DeviceContext&, void*, size_t) noexcept override { return false; }
  void unpin(const DeviceContext&, void*) noexcept override {}

  bool export_allocation(const DeviceContext& context, const DeviceAllocation& allocation,
                         ExportedAllocation* out) noexcept override {
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
  void* open(const ExportedAllocation& exported) noexcept override {
    ze::IpcHandle handle;
    if (exported.handle_bytes != sizeof handle || !find_devices() || devices_.empty())
      return nullptr;
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

  void close(void* base) noexcept override {
    DeviceAllocation allocation;
    DeviceContext context;
    if (describe(base, &allocation, &context)) call_.close_memory(device_of(context).context, base);
  }

  int dmabuf(const DeviceContext& context, const DeviceAllocation& allocation,
             uintptr_t* start) noexcept override {
    ze::ExportDescriptor exported;
    exported.flags = ze::export_dmabuf;
    ze::MemoryProperties properties;
    properties.head.next = &exported;
    ze::Device device = nullptr;
    if (call_.memory_properties(device_of(context).context,
                                reinterpret_cast<void*>(allocation.base), &properties,
                                &device) != ze::success)
      return -1;
    *start = allocation.base;
    return exported.descriptor;
  }

  int device_count() noexcept override {
    if (call_.init(0) != ze::success || !find_devices()) return 0;
    return static_cast<int>(devices_.size());
  }

  void device_name(int device, char* text, size_t bytes) noexcept override {
    text[0] = '\0';
    ze::DeviceProperties properties;
    if (bytes == 0 || device >= device_count() ||
        call_.device_properties(devices_[device].handle, &properties) != ze::success)
      return;
    text[bytes - 1] = '\0';
    std::strncpy(text, properties.name, bytes - 1);
  }

  void pci_address(int device, char* text, size_t bytes) noexcept override {
    ze::PciProperties at;
    text[0] = '\0';
    if (call_.pci_properties != nullptr && device < device_count() &&
        call_.pci_properties(devices_[device].handle, &at) == ze::success)
      std::snprintf(text, bytes, "%04x:%02x:%02x.%x", at.domain, at.bus, at.device, at.function);
  }

  void* allocate(int device, uint64_t bytes) noexcept override {
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

  void release(void* base) noexcept override {
    DeviceAllocation allocation;
    DeviceContext context;
    if (describe(base, &allocation, &context)) call_.free(device_of(context).context, base);
  }

 private:
  // Command lists are used by one thread at a time.
  struct List {
    Mutex lock;
    ze::CommandList list = nullptr;
  };
  struct Device {
    ze::Device handle = nullptr;
    ze::Context context = nullptr;
    std::array<std::byte, 16> uuid{};
    ze::EventPool pool = nullptr;
    uint32_t events = 0;  // taken from the pool
  };

  [[nodiscard]] static Device& device_of(const DeviceContext& context) {
    return *static_cast<Device*>(context.handle);
  }

  void say(ze::Result result, const char* function, size_t bytes) noexcept {
    say_driver_fault(number(), name(), static_cast<int>(result), function, bytes,
                     result == ze::device_lost            ? "device lost"
                     : result == ze::out_of_host_memory   ? "out of host memory"
                     : result == ze::out_of_device_memory ? "out of device memory"
                     : result == ze::unsupported_feature  ? "unsupported feature"
                     : result == ze::invalid_argument     ? "invalid argument"
                                                          : "error");
  }

  [[nodiscard]] Outcome outcome_of(ze::Result result, const char* function, size_t bytes) noexcept {
    if (result == ze::success) return Outcome::done;
    if (result == ze::not_ready) return Outcome::running;
    say(result, function, bytes);
    return result == ze::invalid_argument ? Outcome::no_memory : Outcome::failed;
  }

  void read_devices() LINTEL_REQUIRES(lock_) {
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

  // Finds the devices, once. False: the program has not initialized Level Zero.
  [[nodiscard]] bool find_devices() noexcept {
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

  const ze::Functions call_;
  Mutex lock_;
  std::atomic<bool> found_{false};
  // Unchanged once `found_` is set, but for the event pools, which `lock_` guards.
  std::vector<ze::Context> contexts_;
  std::vector<Device> devices_;
};

}  // namespace

std::unique_ptr<DeviceDriver> make_ze_driver(DriverLibrary& library) {
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
  library.find_optional("zeDevicePciGetPropertiesExt", call.pci_properties);
  if (!library.is_complete()) return nullptr;
  return std::make_unique<ZeDriver>(call);
}

}  // namespace lintel
