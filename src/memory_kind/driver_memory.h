// The memory of the devices of one driver. Message path: start_copy(), state_of(), describe().
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "memory_kind/context_queues.h"
#include "memory_kind/device_driver.h"
#include "util/lock.h"

namespace lintel {

// Allocations of other processes that are mapped here. Mappings are kept after use, for the next
// message that names them, and given up when the exporter has freed them or names another
// allocation at the same addresses, or when too many are kept. Connection path.
class ImportCache {
 public:
  static constexpr size_t max_imports = 256;

  explicit ImportCache(DeviceDriver& driver) : driver_(driver) {}

  [[nodiscard]] void* open(const ExportedAllocation& exported) noexcept;
  void close(void* base) noexcept;
  void forget(uint32_t process, const uint64_t* id) noexcept;
  // Whether an allocation that begins there is one of these.
  [[nodiscard]] bool contains(uintptr_t base) noexcept;

 private:
  struct Import {
    ExportedAllocation exported;
    void* base;
    unsigned users;
    uint64_t last_use;
    bool is_forgotten = false;
  };

  // Gives up mappings without users of which `is_stale(import)` is true.
  template <typename IsStale>
  void drop(const IsStale& is_stale) LINTEL_REQUIRES(lock_);
  [[nodiscard]] bool make_room() LINTEL_REQUIRES(lock_);
  [[nodiscard]] void* map(const ExportedAllocation& exported) LINTEL_REQUIRES(lock_);

  DeviceDriver& driver_;
  Mutex lock_;
  std::vector<Import> imports_ LINTEL_GUARDED_BY(lock_);
  uint64_t uses_ LINTEL_GUARDED_BY(lock_) = 0;
  std::atomic<bool> is_used_{false};  // since the first mapping
};

class DriverMemory final : public MemoryKind {
 public:
  explicit DriverMemory(std::unique_ptr<DeviceDriver> driver);

  const char* name() const noexcept override { return driver_->name(); }
  uint8_t number() const noexcept override { return driver_->number(); }
  bool describe(const void* address, DeviceAllocation* out) noexcept override;
  using MemoryKind::copy;
  CopyStatus copy(void* to, const void* from, size_t bytes,
                  const DeviceAllocation* known) noexcept override;
  CopyTicket start_copy(void* to, const void* from, size_t bytes,
                        CopyStatus* status) noexcept override;
  CopyStatus state_of(CopyTicket ticket) noexcept override;
  bool pin(void* host, size_t bytes) noexcept override;
  void unpin(void* host) noexcept override;
  bool export_allocation(const DeviceAllocation& allocation,
                         ExportedAllocation* out) noexcept override;
  void* open_exported(const ExportedAllocation& exported) noexcept override;
  void close_exported(void* base) noexcept override { imports_.close(base); }
  void forget_exported(uint32_t process, const uint64_t* id) noexcept override {
    imports_.forget(process, id);
  }
  int dmabuf(const void* address, uint64_t length, uint64_t* offset) noexcept override;
  int device_count() noexcept override { return driver_->device_count(); }
  void device_name(int device, char* text, size_t bytes) noexcept override {
    driver_->device_name(device, text, bytes);
  }
  void pci_address(int device, char* text, size_t bytes) noexcept override {
    driver_->pci_address(device, text, bytes);
  }
  void* allocate(int device, uint64_t bytes) noexcept override {
    return driver_->allocate(device, bytes);
  }
  void release(void* base) noexcept override { driver_->release(base); }

 private:
  struct Route {
    DeviceContext context;
    ContextQueues::Direction direction;
  };
  [[nodiscard]] bool find_route(const void* to, const void* from, Route* out) noexcept;

  std::unique_ptr<DeviceDriver> driver_;
  ContextQueues contexts_;
  ImportCache imports_;
  std::atomic<bool> has_context_{false};
};

}  // namespace lintel
