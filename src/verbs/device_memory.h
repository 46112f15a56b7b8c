// Memory of this process that the device may read and write: regions of the registration cache, and
// registrations for one use. Not message path: system calls, except where the cache has the region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <infiniband/verbs.h>

#include "registration/registration.h"
#include "transport/transport.h"
#include "util/counter.h"
#include "verbs/device.h"

namespace lintel {

// Memory of our own that the device reads from or writes to as long as it exists. Set-up path.
class RegisteredBuffer {
 public:
  RegisteredBuffer() = default;
  RegisteredBuffer(const RegisteredBuffer&) = delete;
  RegisteredBuffer& operator=(const RegisteredBuffer&) = delete;
  // No work request refers to it any more.
  ~RegisteredBuffer();

  // Makes zeroed memory, aligned to pages. `what`: the purpose of the memory; `access`:
  // IBV_ACCESS_... False: `reason` is a sentence that says why not, and what to do.
  [[nodiscard]] bool open(ibv_pd* pd, size_t bytes, int access, const char* what,
                          std::string& reason);

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] uint32_t local_key() const noexcept { return region_->lkey; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  ibv_mr* region_ = nullptr;
};

class DeviceMemory final : private Registrar {
 public:
  explicit DeviceMemory(VerbsDevice& device);

  // Whether memory windows of type 2 can be bound to regions. rxe has them, but they break its
  // queue pairs.
  [[nodiscard]] bool has_windows() const noexcept { return has_windows_; }
  // Set-up path; all regions have been released when it is destroyed. Without a cache no memory can
  // be registered.
  void open(RegistrationCache* cache);
  [[nodiscard]] bool is_open() const noexcept { return registered_ != nullptr; }

  // Returns nullptr if the memory cannot be registered. Until release() the region stays
  // registered.
  [[nodiscard]] const RegisteredRegion* acquire(const Piece& piece, bool writable) noexcept {
    int error = 0;
    return registered_->acquire(piece.base, piece.length, writable, error);
  }
  void release(const RegisteredRegion* region) noexcept { registered_->release(region); }
  // The same for a region that windows can be bound to: not memory of an accelerator.
  [[nodiscard]] const RegisteredRegion* acquire_for_window(const Piece& piece) noexcept;

  // Registers exactly these bytes for the peer to read, or to `write`. nullptr: not possible.
  [[nodiscard]] ibv_mr* register_once(const Piece& piece, bool write) noexcept;

  // See RegisteredMemory::end_freed().
  bool end_freed() noexcept { return registered_ != nullptr && registered_->end_freed(); }

  // Number of registrations of memory of accelerators.
  [[nodiscard]] uint64_t accelerator_count() const noexcept { return of_accelerators_.get(); }
  // Number of registrations whose pages are not pinned.
  [[nodiscard]] uint64_t on_demand_count() const noexcept { return on_demand_.get(); }

 private:
  ibv_mr* register_pages(void* address, uint64_t length, int access) noexcept;
  int register_memory(void* address, uint64_t length, bool writable,
                      Registration& registration) noexcept override;
  ibv_mr* register_range(const AcceleratorRange& range, int access) noexcept;
  int register_accelerator(const AcceleratorRange& range,
                           Registration& registration) noexcept override;
  void deregister_memory(Registration& registration) noexcept override;

  VerbsDevice& device_;
  const bool has_windows_;
  std::unique_ptr<RegisteredMemory> registered_;
  SharedCounter on_demand_;
  SharedCounter of_accelerators_;
};

}  // namespace lintel
