// The common part of the drivers of CUDA and HIP: streams, events, results, handles for other
// processes. `Api` says in what they differ; see CudaApi (cuda_driver.cc) and HipApi. Message path:
// start().
#pragma once

#include <cstdio>
#include <cstring>

#include "memory_kind/device_driver.h"
#include "memory_kind/stream_numbers.h"

namespace lintel {

template <typename Api>
class StreamDriver : public DeviceDriver {
 public:
  using Functions = typename Api::Functions;
  using Current = typename Api::Current;
  using Result = stream_numbers::Result;
  static constexpr Result success = stream_numbers::success;

  explicit StreamDriver(const Functions& functions) : call_(functions) {}

  const char* name() const noexcept final { return Api::name; }
  uint8_t number() const noexcept final { return Api::number; }

  // A stream that does not wait for the kernels of the program, nor they for it.
  Queue make_queue(const DeviceContext& context, bool) noexcept final {
    typename Api::Stream stream = nullptr;
    within(context, "StreamCreate", 0,
           [&] { return call_.create_stream(&stream, stream_numbers::stream_non_blocking); });
    return stream;
  }
  Event make_event(const DeviceContext& context) noexcept final {
    typename Api::Event event = nullptr;
    within(context, "EventCreate", 0,
           [&] { return call_.create_event(&event, stream_numbers::event_disable_timing); });
    return event;
  }

  Outcome copy_now(const DeviceContext& context, Queue queue, void* to, const void* from,
                   size_t bytes) noexcept final {
    const Current current(call_, context);
    auto* const stream = static_cast<typename Api::Stream>(queue);
    const Outcome started = start_copy(current, stream, to, from, bytes);
    if (started != Outcome::done) return started;
    return outcome_of(call_.synchronize_stream(stream), "StreamSynchronize", bytes);
  }
  Outcome start(const DeviceContext& context, Queue queue, Event event, void* to, const void* from,
                size_t bytes) noexcept final {
    const Current current(call_, context);
    auto* const stream = static_cast<typename Api::Stream>(queue);
    const Outcome started = start_copy(current, stream, to, from, bytes);
    if (started != Outcome::done) return started;
    const Result recorded = call_.record_event(static_cast<typename Api::Event>(event), stream);
    return recorded == success ? Outcome::running : outcome_of(recorded, "EventRecord", bytes);
  }

  bool pin(const DeviceContext& context, void* host, size_t bytes) noexcept final {
    return within(context, Api::pins, bytes, [&] {
      return call_.register_host(host, bytes, stream_numbers::host_register_portable);
    });
  }
  void unpin(const DeviceContext& context, void* host) noexcept final {
    const Current current(call_, context);
    if (current.result() == success) call_.unregister_host(host);
  }

  // Memory of virtual memory management and of pools has no handle.
  bool export_allocation(const DeviceContext& context, const DeviceAllocation& allocation,
                         ExportedAllocation* out) noexcept final {
    stream_numbers::IpcHandle handle;
    static_assert(sizeof handle == sizeof out->handle);
    static_assert(sizeof(stream_numbers::Uuid) == sizeof out->device);
    const Current current(call_, context);
    if (current.result() != success ||
        Api::export_memory(call_, allocation.base, &handle) != success)
      return false;
    const stream_numbers::Uuid uuid = Api::uuid(call_, allocation.device);
    std::memcpy(out->handle.data(), &handle, sizeof handle);
    std::memcpy(out->device.data(), &uuid, sizeof uuid);
    out->handle_bytes = sizeof handle;
    return true;
  }
  // Maps it on the exporter's device if this process sees that device, else on the first one, which
  // then reads it as a peer.
  void* open(const ExportedAllocation& exported) noexcept final {
    stream_numbers::IpcHandle handle;
    const int count = device_count();
    if (exported.handle_bytes != sizeof handle || count == 0) return nullptr;
    std::memcpy(&handle, exported.handle.data(), sizeof handle);
    int device = 0;
    for (int i = count - 1; i >= 0; --i) {
      const stream_numbers::Uuid uuid = Api::uuid(call_, i);
      if (std::memcmp(&uuid, exported.device.data(), sizeof uuid) == 0) device = i;
    }
    void* base = nullptr;
    within(own_context(device), "IpcOpenMemHandle", exported.length,
           [&] { return Api::open_memory(call_, handle, &base); });
    return base;
  }

  int device_count() noexcept final {
    int count = 0;
    const Result result = Api::count_devices(call_, &count);
    if (result == success) return count;
    if (result != stream_numbers::no_device) say(result, Api::counts, 0);
    return 0;
  }
  void device_name(int device, char* text, size_t bytes) noexcept final {
    text[0] = '\0';
    if (device_count() > device) call_.device_name(text, static_cast<int>(bytes), device);
  }
  void pci_address(int device, char* text, size_t bytes) noexcept final {
    if (device_count() <= device || call_.pci_address == nullptr ||
        call_.pci_address(text, static_cast<int>(bytes), device) != success)
      text[0] = '\0';
  }
  void* allocate(int device, uint64_t bytes) noexcept final {
    void* pointer = nullptr;
    if (device >= 0 && device < device_count())
      within(own_context(device), Api::allocates, bytes,
             [&] { return Api::allocate(call_, bytes, &pointer); });
    return pointer;
  }

 protected:
  // A context of the library's own on that device.
  [[nodiscard]] virtual DeviceContext own_context(int device) noexcept = 0;

  [[nodiscard]] Outcome outcome_of(Result result, const char* function, size_t bytes) noexcept {
    switch (result) {
      case success:
        return Outcome::done;
      case stream_numbers::not_ready:
        return Outcome::running;
      case stream_numbers::invalid_context:
      case stream_numbers::invalid_handle:
      case stream_numbers::context_is_destroyed:
        return Outcome::stale;
      case stream_numbers::deinitialized:  // the process ends
        return Outcome::failed;
      default:
        say(result, function, bytes);
        return result == stream_numbers::invalid_value ? Outcome::no_memory : Outcome::failed;
    }
  }
  // `function`: its name without the prefix.
  void say(Result result, const char* function, size_t bytes) noexcept {
    char full_name[64];
    std::snprintf(full_name, sizeof full_name, "%s%s", Api::prefix, function);
    say_driver_fault(number(), name(), result, full_name, bytes, Api::text(call_, result));
  }
  // Calls a function in the context. False: failed, and said so.
  template <typename Call>
  bool within(const DeviceContext& context, const char* function, size_t bytes,
              const Call& call) noexcept {
    const Current current(call_, context);
    const Result result = current.result() == success ? call() : current.result();
    if (result != success) say(result, function, bytes);
    return result == success;
  }

  const Functions call_;

 private:
  [[nodiscard]] Outcome start_copy(const Current& current, typename Api::Stream stream, void* to,
                                   const void* from, size_t bytes) noexcept {
    if (current.result() != success) return outcome_of(current.result(), Api::makes_current, 0);
    return outcome_of(Api::copy(call_, to, from, bytes, stream), "MemcpyAsync", bytes);
  }
};

}  // namespace lintel
