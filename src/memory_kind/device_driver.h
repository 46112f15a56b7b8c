// Differences between drivers: contexts, queues, events, and the functions that take them.
// DriverMemory makes a MemoryKind of it. Thread-safe; nothing throws.
#pragma once

#include "memory_kind/memory_kind.h"

namespace lintel {

// A context of the driver with its device. Equal values are the same context.
struct DeviceContext {
  void* handle = nullptr;
  int device = 0;
  bool operator==(const DeviceContext&) const = default;
};

class DeviceDriver {
 public:
  using Queue = void*;  // copies in order
  using Event = void*;

  DeviceDriver() = default;
  DeviceDriver(const DeviceDriver&) = delete;
  DeviceDriver& operator=(const DeviceDriver&) = delete;
  virtual ~DeviceDriver() = default;

  [[nodiscard]] virtual const char* name() const noexcept = 0;
  [[nodiscard]] virtual uint8_t number() const noexcept = 0;

  // As MemoryKind::describe(), with the context in which the memory is accessed.
  [[nodiscard]] virtual bool describe(const void* address, DeviceAllocation* out,
                                      DeviceContext* context) noexcept = 0;

  // nullptr: failed, and said so. A queue that is `awaited` is used by copy_now() only. Never
  // destroyed.
  [[nodiscard]] virtual Queue make_queue(const DeviceContext& context, bool awaited) noexcept = 0;
  [[nodiscard]] virtual Event make_event(const DeviceContext& context) noexcept = 0;

  // stale: the context is not the one that the queue was made in, which was destroyed.
  enum class Outcome : uint8_t { done, running, no_memory, failed, stale };
  [[nodiscard]] virtual Outcome copy_now(const DeviceContext& context, Queue queue, void* to,
                                         const void* from, size_t bytes) noexcept = 0;
  // Starts a copy; `event` tells its end. running: started.
  [[nodiscard]] virtual Outcome start(const DeviceContext& context, Queue queue, Event event,
                                      void* to, const void* from, size_t bytes) noexcept = 0;
  [[nodiscard]] virtual Outcome state_of(const DeviceContext& context, Event event) noexcept = 0;

  virtual bool pin(const DeviceContext& context, void* host, size_t bytes) noexcept = 0;
  virtual void unpin(const DeviceContext& context, void* host) noexcept = 0;

  // Fills in `handle`, `handle_bytes` and `device`.
  [[nodiscard]] virtual bool export_allocation(const DeviceContext& context,
                                               const DeviceAllocation& allocation,
                                               ExportedAllocation* out) noexcept = 0;
  [[nodiscard]] virtual void* open(const ExportedAllocation& exported) noexcept = 0;
  virtual void close(void* base) noexcept = 0;

  // A descriptor for the whole allocation; -1: none. `start`: the address at which it begins.
  [[nodiscard]] virtual int dmabuf(const DeviceContext& context, const DeviceAllocation& allocation,
                                   uintptr_t* start) noexcept = 0;

  [[nodiscard]] virtual int device_count() noexcept = 0;
  virtual void device_name(int device, char* text, size_t bytes) noexcept = 0;
  virtual void pci_address(int device, char* text, size_t bytes) noexcept = 0;
  [[nodiscard]] virtual void* allocate(int device, uint64_t bytes) noexcept = 0;
  virtual void release(void* base) noexcept = 0;
};

// Writes that `function` of the driver failed with this error, unless it did so within the last
// seconds. `bytes`: length that it was called for, or 0.
void say_driver_fault(uint8_t kind, const char* driver, int error, const char* function,
                      size_t bytes, const char* text) noexcept;

}  // namespace lintel
