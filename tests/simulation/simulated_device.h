// A device of accelerators in a simulation. The processor cannot access its memory. Copies take
// virtual time and end in any order; some fail. The seed decides all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "memory_kind/memory_kind.h"
#include "simulation/dice.h"

namespace lintel::simulation {

class SimulatedDevice final : public MemoryKind {
 public:
  // `failing`: the probability that a copy fails. In use as long as it exists.
  SimulatedDevice(uint64_t seed, double failing);
  ~SimulatedDevice() override;
  // nullptr: the simulation has no device.
  [[nodiscard]] static SimulatedDevice* current() noexcept { return current_; }
  [[nodiscard]] static bool has_failed() noexcept {
    return current_ != nullptr && current_->failures_ != 0;
  }
  // What the device sees at that address; any other address as it is.
  [[nodiscard]] static std::byte* view_of(void* address) noexcept;

  [[nodiscard]] const char* name() const noexcept override { return "simulated"; }
  [[nodiscard]] uint8_t number() const noexcept override { return 8; }
  [[nodiscard]] bool describe(const void* address, DeviceAllocation* out) noexcept override;
  [[nodiscard]] CopyStatus copy(void* to, const void* from, size_t bytes,
                                const DeviceAllocation* known) noexcept override;
  [[nodiscard]] CopyTicket start_copy(void* to, const void* from, size_t bytes,
                                      CopyStatus* status) noexcept override;
  [[nodiscard]] CopyStatus state_of(CopyTicket ticket) noexcept override;
  bool pin(void*, size_t) noexcept override { return true; }
  void unpin(void*) noexcept override {}
  [[nodiscard]] bool export_allocation(const DeviceAllocation&,
                                       ExportedAllocation*) noexcept override {
    return false;
  }
  [[nodiscard]] void* open_exported(const ExportedAllocation&) noexcept override { return nullptr; }
  void close_exported(void*) noexcept override {}
  void forget_exported(uint32_t, const uint64_t*) noexcept override {}
  [[nodiscard]] int dmabuf(const void*, uint64_t, uint64_t*) noexcept override { return -1; }
  [[nodiscard]] int device_count() noexcept override { return 1; }
  void device_name(int, char* text, size_t) noexcept override { *text = '\0'; }
  void pci_address(int, char* text, size_t) noexcept override { *text = '\0'; }
  // Memory that was released is used again, with another id.
  [[nodiscard]] void* allocate(int device, uint64_t bytes) noexcept override;
  void release(void* base) noexcept override;

 private:
  struct Allocation {
    std::byte* view;
    size_t bytes;
    uint64_t id;
  };
  struct Copy {
    void* to;
    const void* from;
    size_t bytes;
    uint64_t ends_ns;
    uint64_t questions_left;  // the clock may stand still while an interface closes
  };
  using Allocations = std::map<std::byte*, Allocation>;

  [[nodiscard]] Allocations::iterator find(const void* address) noexcept;
  [[nodiscard]] CopyStatus move(void* to, const void* from, size_t bytes) noexcept;

  static inline SimulatedDevice* current_ = nullptr;
  Dice dice_;
  const double failing_;
  uint64_t failures_ = 0;
  uint64_t allocated_ = 0;
  Allocations allocations_;
  std::map<CopyTicket, Copy> copies_;
  CopyTicket last_ticket_ = no_copy;
};

// Memory of an application.
class Memory {
 public:
  Memory() = default;
  Memory(uint64_t bytes, bool of_device);
  Memory(Memory&& other) noexcept { *this = static_cast<Memory&&>(other); }
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();
  // What Portals is told, and where the application finds it.
  [[nodiscard]] std::byte* start() const noexcept { return start_; }
  [[nodiscard]] std::byte* view() const noexcept { return view_; }

 private:
  std::byte* start_ = nullptr;
  std::byte* view_ = nullptr;  // the same in memory of the host
};

}  // namespace lintel::simulation
