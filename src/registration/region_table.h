// All regions of the cache by their state: being registered, kept (leased or idle), and retired,
// that is to be deregistered after the last lease. One lock protects them. Message path: lease()
// and give_back(). Nothing in here allocates, frees or waits, see watched_cache.h.
#pragma once

#include <cstdint>
#include <span>

#include "registration/memory_watch.h"
#include "registration/region_index.h"
#include "util/lock.h"
#include "util/spin_lock.h"

namespace lintel {

// The regions of one registrar; under the lock of the table.
struct RegionOwner {
  RegionOwner(Registrar& device, size_t capacity) : registrar(device) {
    for_writing.open(capacity);
    for_reading.open(capacity);
  }
  [[nodiscard]] RegionIndex& index(bool writable) noexcept {
    return writable ? for_writing : for_reading;
  }
  [[nodiscard]] Region* find(MemoryRange range, bool writable) const noexcept {
    Region* const found = for_writing.find(range.begin, range.end);
    return found != nullptr || writable ? found : for_reading.find(range.begin, range.end);
  }

  Registrar& registrar;
  RegionIndex for_writing;  // serves reading, too
  RegionIndex for_reading;
  RegionSiblings regions;
  unsigned deregistering = 0;  // regions that threads deregister now, without the lock
  RegionOwner* next = nullptr;
};

class RegionTable {
 public:
  RegionTable(uint64_t most_regions, uint64_t most_bytes) noexcept
      : most_regions_(most_regions), most_bytes_(most_bytes) {}

  // Leases a region that contains the range. nullptr: no kept region does.
  [[nodiscard]] Region* lease(RegionOwner& owner, MemoryRange range, bool writable) noexcept {
    const LockGuard guard(lock_);
    Region* const found = owner.find(range, writable);
    if (found == nullptr) return nullptr;
    if (found->leases++ == 0) idle_.remove(*found);
    ++counters_.hits;
    return found;
  }
  // True: the region has retired.
  [[nodiscard]] bool give_back(Region& region) noexcept {
    const LockGuard guard(lock_);
    if (--region.leases != 0) return false;
    (region.kept ? idle_ : retired_).append(region);
    return !region.kept;
  }

  void add(RegionOwner& owner) noexcept;
  // Retires all its regions, also those that are leased.
  void retire_all(RegionOwner& owner) noexcept;
  // False: some of its regions are still to be deregistered.
  [[nodiscard]] bool remove(RegionOwner& owner) noexcept;

  // The region is being registered for this range, or for this range and neighbours that are worth
  // it; false: there are none.
  void begin(Region& region, MemoryRange range) noexcept;
  [[nodiscard]] bool begin_with_neighbours(Region& region, MemoryRange range) noexcept;
  // Ends begin() of a region that could not be registered.
  void cancel(Region& region) noexcept;
  // Leases a region that was registered to the caller. True: it is kept for others. It is not if
  // the application changed its memory meanwhile, another thread was faster, or there is no room.
  [[nodiscard]] bool keep(Region& region) noexcept;
  // The same for a region that was not begun: it serves the caller alone.
  void add_single_use(Region& region) noexcept;
  void note_failure() noexcept;

  // Retires regions that are idle, the least recently used first, up to that many bytes.
  enum class Evicted : uint8_t { none, some, others_work };
  [[nodiscard]] Evicted evict(uint64_t bytes) noexcept;
  // Reads events and retires the regions that they concern. `retired`: some are to be deregistered.
  [[nodiscard]] unsigned take_events(MemoryWatch& watch, std::span<MemoryEvent> events,
                                     bool& retired) noexcept;
  // The next region to be deregistered, which leaves the table; nullptr: none.
  [[nodiscard]] Region* take_retired() noexcept;
  void note_deregistered(RegionOwner& owner) noexcept;
  // The first part of the range that no region covers; empty, at its end: none.
  [[nodiscard]] MemoryRange first_unused(MemoryRange range) const noexcept;

  [[nodiscard]] RegistrationCounters counters() const noexcept;

 private:
  [[nodiscard]] MemoryRange widened(const Region& region, MemoryRange range) const noexcept
      LINTEL_REQUIRES(lock_);
  [[nodiscard]] bool has_room(const Region& region) const noexcept LINTEL_REQUIRES(lock_);
  void retire(Region& region) noexcept LINTEL_REQUIRES(lock_);
  [[nodiscard]] uint64_t evict_one() noexcept LINTEL_REQUIRES(lock_);
  void handle(const MemoryEvent& event) noexcept LINTEL_REQUIRES(lock_);

  const uint64_t most_regions_;
  const uint64_t most_bytes_;
  // Held for some dozens of nanoseconds by look-ups, and for a short system call by readers of
  // events, which must be so and happens only when the application has changed registered memory.
  mutable SpinLock lock_;
  RegionOwner* owners_ LINTEL_GUARDED_BY(lock_) = nullptr;
  RegionChain entering_ LINTEL_GUARDED_BY(lock_);  // being registered
  RegionChain idle_ LINTEL_GUARDED_BY(lock_);      // kept and not leased, least recently used first
  RegionChain retired_ LINTEL_GUARDED_BY(lock_);   // regions without leases, to be deregistered
  RegistrationCounters counters_ LINTEL_GUARDED_BY(lock_);
};

}  // namespace lintel
