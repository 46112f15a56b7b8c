// CUDA through its driver. Memory is accessed in the context that it was allocated in, or in the
// primary context of its device where it has none (as that of virtual memory management).
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "memory_kind/cuda_functions.h"
#include "memory_kind/device_driver.h"
#include "memory_kind/driver_library.h"
#include "util/lock.h"

namespace lintel {

class CudaDriver final : public DeviceDriver {
 public:
  static constexpr const char* library_names[] = {"libcuda.so.1"};

  // nullptr: the library lacks a function; its reason() says which.
  [[nodiscard]] static std::unique_ptr<DeviceDriver> make(DriverLibrary& library);

  const char* name() const noexcept override { return "cuda"; }
  uint8_t number() const noexcept override { return 1; }
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
  static constexpr int max_devices = 64;

  // The context is current in this thread while the object exists.
  class Current;

  explicit CudaDriver(const cuda::Functions& functions) : call_(functions) {}

  [[nodiscard]] cuda::Context primary_context(int device) noexcept;
  // Makes synchronous calls of the program on this memory wait for their end, since others than its
  // streams read it.
  void order_with_program(const DeviceAllocation& allocation) noexcept;
  [[nodiscard]] Outcome outcome_of(cuda::Result result, const char* function,
                                   size_t bytes) noexcept;
  void say(cuda::Result result, const char* function, size_t bytes) noexcept;

  const cuda::Functions call_;
  Mutex retaining_;
  std::array<std::atomic<cuda::Context>, max_devices> primary_{};
};

}  // namespace lintel
