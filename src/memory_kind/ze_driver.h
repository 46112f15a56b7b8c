// Devices of Intel through Level Zero. Memory is accessed in a context of the library, one for each
// driver of Level Zero: those know the memory of all contexts of a process.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "memory_kind/device_driver.h"
#include "memory_kind/driver_library.h"
#include "memory_kind/ze_functions.h"
#include "util/lock.h"

namespace lintel {

class ZeDriver final : public DeviceDriver {
 public:
  static constexpr const char* library_names[] = {"libze_loader.so.1"};

  // nullptr: the library lacks a function; its reason() says which.
  [[nodiscard]] static std::unique_ptr<DeviceDriver> make(DriverLibrary& library);

  const char* name() const noexcept override { return "ze"; }
  uint8_t number() const noexcept override { return 3; }
  bool describe(const void* address, DeviceAllocation* out,
                DeviceContext* context) noexcept override;
  Queue make_queue(const DeviceContext& context, bool awaited) noexcept override;
  Event make_event(const DeviceContext& context) noexcept override;
  Outcome copy_now(const DeviceContext& context, Queue queue, void* to, const void* from,
                   size_t bytes) noexcept override;
  Outcome start(const DeviceContext& context, Queue queue, Event event, void* to, const void* from,
                size_t bytes) noexcept override;
  Outcome state_of(const DeviceContext& context, Event event) noexcept override;
  // Level Zero pins memory of the host by itself, for each copy.
  bool pin(const DeviceContext&, void*, size_t) noexcept override { return false; }
  void unpin(const DeviceContext&, void*) noexcept override {}
  bool export_allocation(const DeviceContext& context, const DeviceAllocation& allocation,
                         ExportedAllocation* out) noexcept override;
  void* open(const ExportedAllocation& exported) noexcept override;
  void close(void* base) noexcept override;
  int dmabuf(const DeviceContext& context, const DeviceAllocation& allocation,
             uintptr_t* start) noexcept override;
  int device_count() noexcept override;
  void device_name(int device, char* text, size_t bytes) noexcept override;
  void* allocate(int device, uint64_t bytes) noexcept override;
  void release(void* base) noexcept override;

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

  explicit ZeDriver(const ze::Functions& functions) : call_(functions) {}

  // Finds the devices, once. False: the program has not initialized Level Zero.
  [[nodiscard]] bool find_devices() noexcept;
  void read_devices() LINTEL_REQUIRES(lock_);
  [[nodiscard]] static Device& device_of(const DeviceContext& context) {
    return *static_cast<Device*>(context.handle);
  }
  [[nodiscard]] Outcome outcome_of(ze::Result result, const char* function, size_t bytes) noexcept;
  void say(ze::Result result, const char* function, size_t bytes) noexcept;

  const ze::Functions call_;
  Mutex lock_;
  std::atomic<bool> found_{false};
  // Unchanged once `found_` is set, but for the event pools, which `lock_` guards.
  std::vector<ze::Context> contexts_;
  std::vector<Device> devices_;
};

}  // namespace lintel
