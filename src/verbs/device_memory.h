// Memory of this process that the device may read and write: regions of the registration cache, and
// registrations for one use. Not message path: system calls, except where the cache has the region.
#pragma once

#include <cstdint>
#include <memory>

#include <infiniband/verbs.h>

#include "registration/registration.h"
#include "transport/transport.h"
#include "util/counter.h"
#include "verbs/device.h"

namespace lintel {

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

  // nullptr: the memory cannot be registered. Until release() the region stays registered.
  [[nodiscard]] const RegisteredRegion* acquire(const Piece& piece, bool writable) noexcept {
    int error = 0;
    return registered_->acquire(piece.base, piece.length, writable, error);
  }
  void release(const RegisteredRegion* region) noexcept { registered_->release(region); }

  // Exactly these bytes, for the peer to read or to `write`. nullptr: not possible.
  [[nodiscard]] ibv_mr* register_once(const Piece& piece, bool write) noexcept;

  // Registrations whose pages are not pinned.
  [[nodiscard]] uint64_t on_demand_count() const noexcept { return on_demand_.get(); }

 private:
  ibv_mr* register_pages(void* address, uint64_t length, int access) noexcept;
  int register_memory(void* address, uint64_t length, bool writable,
                      Registration& registration) noexcept override;
  void deregister_memory(Registration& registration) noexcept override;

  VerbsDevice& device_;
  const bool has_windows_;
  std::unique_ptr<RegisteredMemory> registered_;
  SharedCounter on_demand_;
};

}  // namespace lintel
