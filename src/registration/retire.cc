// Makes room, deregisters, and ends the watching. Connection path.
#include <algorithm>
#include <memory>

#include "registration/watched_cache.h"
#include "util/futex.h"

namespace lintel {

bool WatchedCache::has_room_locked(const Region& region) const noexcept {
  return counters_.regions < settings_.most_regions && counters_.bytes <= settings_.most_bytes &&
         region.length <= settings_.most_bytes - counters_.bytes;
}

// The region has left its index: no look-up finds it any more. It is deregistered when the last
// lease has ended.
void WatchedCache::retire_locked(Region& region) noexcept {
  region.kept = false;
  --counters_.regions;
  counters_.bytes -= region.length;
  if (region.leases == 0) {
    idle_.remove(region);
    retired_.append(region);
  }
}

// The least recently used region that nobody uses. Returns its length; 0: there is none.
uint64_t WatchedCache::evict_locked() noexcept {
  Region* const oldest = idle_.head();
  if (oldest == nullptr) return 0;
  oldest->owner.index(oldest->writable).remove(*oldest);
  retire_locked(*oldest);
  ++counters_.evictions;
  return oldest->length;
}

// Deregisters at least so many bytes, if there are. False: there was nothing to deregister.
bool WatchedCache::evict(uint64_t bytes) noexcept {
  const uint32_t seen = deregistrations_.load(std::memory_order_acquire);
  bool others_work = false;
  bool found;
  {
    const std::lock_guard guard(lock_);
    uint64_t evicted = 0;
    for (uint64_t length; evicted < bytes && (length = evict_locked()) != 0;) evicted += length;
    found = !retired_.empty();
    for (const AttachedMemory* memory = attached_; memory != nullptr; memory = memory->next_)
      others_work = others_work || memory->deregistering_ != 0;
  }
  if (found) {
    deregister_retired();
  } else if (others_work) {
    futex_wait(deregistrations_, seen, futex_no_timeout);
  }
  return found || others_work;
}

void WatchedCache::deregister_retired() noexcept {
  for (;;) {
    std::unique_ptr<Region> region;
    {
      const std::lock_guard guard(lock_);
      region.reset(retired_.head());
      if (region == nullptr) return;
      retired_.remove(*region);
      region->owner.regions_.remove(*region);
      ++region->owner.deregistering_;
    }
    if (region->watched) {
      if (region->gone_begin == region->gone_end) {
        stop_watching({region->begin(), region->end()});
      } else {
        stop_watching({region->begin(), region->gone_begin});
        stop_watching({region->gone_end, region->end()});
      }
    }
    region->owner.registrar_.deregister_memory(region->registration);
    {
      const std::lock_guard guard(lock_);
      --region->owner.deregistering_;
    }
    // The owner may be gone from here on.
    deregistrations_.fetch_add(1, std::memory_order_release);
    futex_wake(deregistrations_);
  }
}

// As far as no region needs it: others may cover the same pages.
void WatchedCache::stop_watching(Range range) noexcept {
  const std::lock_guard watch_guard(watch_lock_);
  while (range.begin < range.end) {
    Range unused;
    {
      const std::lock_guard guard(lock_);
      unused = first_unused_locked(range);
    }
    // Whoever enters a region there from now on has it watched only after us.
    if (unused.begin < unused.end) watch_.remove(unused.begin, unused.end);
    range.begin = unused.end;
  }
}

WatchedCache::Range WatchedCache::first_unused_locked(Range range) noexcept {
  uint64_t begin = range.begin;
  for (uint64_t before = UINT64_MAX; before != begin && begin < range.end;) {
    before = begin;
    for (const AttachedMemory* memory = attached_; memory != nullptr; memory = memory->next_) {
      begin = memory->for_writing_.covered_until(begin);
      begin = memory->for_reading_.covered_until(begin);
    }
    for (const Region* region = entering_.head(); region != nullptr;
         region = RegionChain::next(*region))
      if (region->overlaps(begin, begin + 1)) begin = region->end();
  }
  if (begin >= range.end) return {range.end, range.end};
  uint64_t end = range.end;
  for (const AttachedMemory* memory = attached_; memory != nullptr; memory = memory->next_)
    end = std::min({end, memory->for_writing_.next_beginning(begin),
                    memory->for_reading_.next_beginning(begin)});
  for (const Region* region = entering_.head(); region != nullptr;
       region = RegionChain::next(*region))
    if (region->begin() > begin) end = std::min(end, region->begin());
  return {begin, end};
}

}  // namespace lintel
