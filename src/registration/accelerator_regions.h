// Memory of accelerators that one registrar has registered, each allocation as a whole. No event
// tells that a program has freed an allocation: its number says so, which is compared at each
// look-up, and of all in end_freed(). Connection path; acquire() of memory that is registered asks
// the driver.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "memory_kind/memory_kind.h"
#include "registration/region_table.h"
#include "util/lock.h"

namespace lintel {

// The range for one registration.
[[nodiscard]] AcceleratorRange range_of(MemoryKind& kind, void* address, uint64_t length) noexcept;

class AcceleratorRegions {
 public:
  // `most`: allocations that are kept registered.
  AcceleratorRegions(Registrar& registrar, uint32_t most) noexcept
      : registrar_(registrar), most_(most) {}
  AcceleratorRegions(const AcceleratorRegions&) = delete;
  AcceleratorRegions& operator=(const AcceleratorRegions&) = delete;
  // Nobody holds a region.
  ~AcceleratorRegions();

  // Leases the region of an allocation that contains `wanted`. nullptr: `error` is the errno. An
  // allocation that the device refuses is not tried again.
  [[nodiscard]] const RegisteredRegion* acquire(MemoryKind& kind,
                                                const DeviceAllocation& allocation,
                                                MemoryRange wanted, int& error) noexcept;
  void release(const RegisteredRegion& region) noexcept;
  // Deregisters what was freed, at most ten times a second. Returns whether any is kept.
  bool end_freed() noexcept;
  // In a forked child: the registrations are those of the parent, one of whose threads may have
  // held the lock.
  void abandon() noexcept LINTEL_UNCHECKED_LOCKS;

 private:
  struct Kept : RegisteredRegion {
    MemoryKind* kind = nullptr;
    uint64_t id = 0;  // of the allocation
    uint32_t leases = 0;
    bool registered = false;  // otherwise refused
    bool is_freed = false;    // is in no map any more, but leased
  };
  using Regions = std::map<uint64_t, std::unique_ptr<Kept>>;

  [[nodiscard]] Kept* add(MemoryKind& kind, const DeviceAllocation& allocation, int& error)
      LINTEL_REQUIRES(lock_);
  [[nodiscard]] int register_allocation(Kept& region) noexcept LINTEL_REQUIRES(lock_);
  Regions::iterator drop(Regions::iterator region) noexcept LINTEL_REQUIRES(lock_);
  void deregister(Kept& region) noexcept;
  template <typename Condition>
  void drop_if(const Condition& condition) noexcept LINTEL_REQUIRES(lock_);
  void say_refusal(const MemoryKind& kind, int device, int error) noexcept LINTEL_REQUIRES(lock_);

  Registrar& registrar_;
  const uint32_t most_;
  Mutex lock_;
  Regions regions_ LINTEL_GUARDED_BY(lock_);  // by address
  uint64_t looked_ns_ LINTEL_GUARDED_BY(lock_) = 0;
  uint64_t said_ LINTEL_GUARDED_BY(lock_) = 0;  // bit i: of device i
};

}  // namespace lintel
