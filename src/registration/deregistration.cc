// Retired regions leave the device and the watch. Connection path.
#include "registration/deregistration.h"

#include <memory>

#include "util/futex.h"
#include "util/lock.h"

namespace lintel {

bool Deregistration::watch(MemoryRange range) noexcept {
  const LockGuard guard(lock_);
  return watch_.add(range.begin, range.end);
}

void Deregistration::stop_watching(MemoryRange range) noexcept {
  const LockGuard guard(lock_);
  while (range.begin < range.end) {
    const MemoryRange unused = table_.first_unused(range);
    // A region that is begun there from now on is watched only after this.
    if (unused.begin < unused.end) watch_.remove(unused.begin, unused.end);
    range.begin = unused.end;
  }
}

void Deregistration::deregister_retired() noexcept {
  while (const std::unique_ptr<Region> region{table_.take_retired()}) {
    // The unmapped range may be watched for another region by now.
    if (region->watched && region->gone_begin != region->gone_end) {
      stop_watching({region->begin(), region->gone_begin});
      stop_watching({region->gone_end, region->end()});
    } else if (region->watched) {
      stop_watching(region->range());
    }
    region->owner.registrar.deregister_memory(region->registration);
    table_.note_deregistered(region->owner);
    // The owner may be gone from here on.
    done_.fetch_add(1, std::memory_order_release);
    futex_wake(done_);
  }
}

bool Deregistration::make_room(uint64_t bytes) noexcept {
  const uint32_t seen = done_.load(std::memory_order_acquire);
  const RegionTable::Evicted evicted = table_.evict(bytes);
  if (evicted == RegionTable::Evicted::some) deregister_retired();
  if (evicted == RegionTable::Evicted::others_work) futex_wait(done_, seen, futex_no_timeout);
  return evicted != RegionTable::Evicted::none;
}

void Deregistration::remove(RegionOwner& owner) noexcept {
  table_.retire_all(owner);
  deregister_retired();
  for (;;) {
    // Other threads may be deregistering some.
    const uint32_t seen = done_.load(std::memory_order_acquire);
    if (table_.remove(owner)) return;
    futex_wait(done_, seen, futex_no_timeout);
  }
}

}  // namespace lintel
