// Devices of AMD through HIP. A device has one context.
#pragma once

#include <memory>

#include "memory_kind/device_driver.h"
#include "memory_kind/driver_library.h"
#include "memory_kind/hip_functions.h"

namespace lintel {

class HipDriver final : public DeviceDriver {
 public:
  static constexpr const char* library_names[] = {"libamdhip64.so", "libamdhip64.so.7",
                                                  "libamdhip64.so.6", "libamdhip64.so.5"};

  // nullptr: the library lacks a function; its reason() says which.
  [[nodiscard]] static std::unique_ptr<DeviceDriver> make(DriverLibrary& library);

  const char* name() const noexcept override { return "hip"; }
  uint8_t number() const noexcept override { return 2; }
  bool describe(const void* address, DeviceAllocation* out,
                DeviceContext* context) noexcept override;
  Queue make_queue(const DeviceContext& context, bool awaited) noexcept override;
  Event make_event(const DeviceContext& context) noexcept override;
  Outcome copy_now(const DeviceContext& context, Queue queue, void* to, const void* from,
                   size_t bytes) noexcept override;
  Outcome start(const DeviceContext& context, Queue queue, Event event, void* to, const void* from,
                size_t bytes) noexcept override;
  Outcome state_of(const DeviceContext& context, Event event) noexcept override;
  bool pin(const DeviceContext& context, void* host, size_t bytes) noexcept override;
  void unpin(const DeviceContext& context, void* host) noexcept override;
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
  // The device is current in this thread while the object exists.
  class Current;

  HipDriver(const hip::Functions& functions, unsigned memory_type_device)
      : call_(functions), memory_type_device_(memory_type_device) {}

  [[nodiscard]] hip::Uuid uuid_of(int device) const noexcept;
  [[nodiscard]] Outcome outcome_of(hip::Result result, const char* function, size_t bytes) noexcept;
  void say(hip::Result result, const char* function, size_t bytes) noexcept;

  const hip::Functions call_;
  const unsigned memory_type_device_;
};

}  // namespace lintel
