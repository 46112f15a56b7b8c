// Registers memory that no look-up finds. Connection path: takes as long as the device and the
// kernel need.
#include <string.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>

#include "registration/watched_cache.h"
#include "util/log.h"

namespace lintel {

namespace {

// A neighbour is registered anew together with what is asked for if it is at most this many times
// as long. Whatever the order in which an application uses a long stretch of memory: each time that
// some part of it is registered again, its region has grown by half, so that happens few times.
constexpr uint64_t longest_neighbour_factor = 2;

uint64_t rounded_down(uint64_t address, uint64_t granule) { return address & ~(granule - 1); }

// Ends at the last granule of the address space rather than beyond it.
uint64_t rounded_up(uint64_t address, uint64_t granule) {
  const uint64_t up = rounded_down(address + granule - 1, granule);
  return up < address ? ~(granule - 1) : up;
}

// What more room would help against.
bool wants_room(int error) { return error == ENOMEM || error == ENOSPC || error == EAGAIN; }

void report(int error, const Region& region) {
  if (error == EFAULT) return;  // the application's, told by an event
  static std::atomic<bool> said{false};
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  const auto bytes = static_cast<unsigned long long>(region.length);
  if (error != ENOMEM) {
    log_once(said, LogLevel::warn, "cannot register %llu bytes of memory with the device: %s",
             bytes, strerror(error));
  } else if (limit.rlim_cur == RLIM_INFINITY) {
    log_once(said, LogLevel::warn,
             "cannot register %llu bytes of memory with the device: %s; the limit of locked memory "
             "(RLIMIT_MEMLOCK) is unlimited, so the device or the machine has no more",
             bytes, strerror(error));
  } else {
    log_once(said, LogLevel::warn,
             "cannot register %llu bytes of memory with the device: %s; the limit of locked memory "
             "(RLIMIT_MEMLOCK) is %llu KiB: raise it with ulimit -l unlimited, for all users with "
             "memlock in /etc/security/limits.d, for Slurm with LimitMEMLOCK=infinity for slurmd",
             bytes, strerror(error), static_cast<unsigned long long>(limit.rlim_cur / 1024));
  }
}

}  // namespace

Region* WatchedCache::enter(AttachedMemory& memory, Range wanted, bool writable, bool keep,
                            int& error) noexcept {
  deregister_retired();
  std::unique_ptr<Region> region(new (std::nothrow) Region(memory));
  error = ENOMEM;
  if (region != nullptr) {
    region->writable = writable;
    Entry entry = keep ? enter_watched(*region, wanted, error) : Entry::unwatchable;
    if (entry == Entry::unwatchable) {
      const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
      region->cover(rounded_down(wanted.begin, page), rounded_up(wanted.end, page));
      error = register_making_room(*region);
      if (error == 0) {
        insert(*region);
        entry = Entry::entered;
      }
    }
    if (entry == Entry::entered) return region.release();
    report(error, *region);
  }
  const std::lock_guard guard(lock_);
  ++counters_.failures;
  return nullptr;
}

WatchedCache::Entry WatchedCache::enter_watched(Region& region, Range wanted, int& error) noexcept {
  for (const uint64_t granule : watch_.granules()) {
    const Range exact{rounded_down(wanted.begin, granule), rounded_up(wanted.end, granule)};
    if (begin_with_neighbours(region, exact) && enter_begun(region, false, error) == Entry::entered)
      return Entry::entered;
    begin(region, exact);
    const Entry entry = enter_begun(region, true, error);
    if (entry != Entry::unwatchable) return entry;
  }
  return Entry::unwatchable;
}

void WatchedCache::begin(Region& region, Range range) noexcept {
  const std::lock_guard guard(lock_);
  begin_locked(region, range);
}

void WatchedCache::begin_locked(Region& region, Range range) noexcept {
  region.cover(range.begin, range.end);
  region.outdated = false;
  entering_.append(region);
}

// Found and begun in one go: a neighbour whose memory is being discarded, but still there, may leave
// its index when the lock is released, and no event would tell of that memory again.
bool WatchedCache::begin_with_neighbours(Region& region, Range exact) noexcept {
  const std::lock_guard guard(lock_);
  const Range wide = widened_locked(region.owner, region.writable, exact);
  if (wide == exact) return false;
  begin_locked(region, wide);
  return true;
}

// With the neighbours that are worth it.
WatchedCache::Range WatchedCache::widened_locked(AttachedMemory& memory, bool writable,
                                                 Range range) noexcept {
  const RegionIndex& index = memory.index(writable);
  const auto worth = [&](const Region* neighbour) {
    const uint64_t length = range.end - range.begin;
    return neighbour != nullptr && neighbour->length / longest_neighbour_factor <= length &&
           length + neighbour->length <= settings_.most_bytes / 2;
  };
  for (;;) {
    const Region* const left = index.left_neighbour(range.begin);
    const Region* const right = index.right_neighbour(range.end);
    if (worth(left)) {
      range.begin = left->begin();
    } else if (worth(right)) {
      range.end = right->end();
    } else {
      return range;
    }
  }
}

WatchedCache::Entry WatchedCache::enter_begun(Region& region, bool make_room, int& error) noexcept {
  const Range range{region.begin(), region.end()};
  bool watched;
  {
    const std::lock_guard guard(watch_lock_);
    watched = watch_.add(range.begin, range.end);
  }
  // Watched first, registered then: whatever changes after the device has its pages is told.
  if (watched) {
    error = make_room ? register_making_room(region)
                      : region.owner.registrar_.register_memory(
                            reinterpret_cast<void*>(range.begin), range.end - range.begin,
                            region.writable, region.registration);
    if (error == 0) {
      keep_if_possible(region);
      return Entry::entered;
    }
  }
  {
    const std::lock_guard guard(lock_);
    entering_.remove(region);
  }
  stop_watching(range);
  return watched ? Entry::failed : Entry::unwatchable;
}

int WatchedCache::register_making_room(Region& region) noexcept {
  void* const address = reinterpret_cast<void*>(region.address);
  for (uint64_t room = region.length;; room = room > UINT64_MAX / 2 ? room : room * 2) {
    const int error = region.owner.registrar_.register_memory(address, region.length,
                                                              region.writable, region.registration);
    if (!wants_room(error) || !evict(room)) return error;
  }
}

// The memory is registered, and leased to the caller from now on. It is kept for others unless the
// application changed it meanwhile, another thread was faster, or there is no room for it.
void WatchedCache::keep_if_possible(Region& region) noexcept {
  bool kept = false;
  {
    const std::lock_guard guard(lock_);
    entering_.remove(region);
    region.leases = 1;
    region.owner.regions_.append(region);
    AttachedMemory& memory = region.owner;
    if (!region.outdated && memory.find(region.begin(), region.end(), region.writable) == nullptr) {
      const auto retire = [&](Region& other) { retire_locked(other); };
      RegionIndex& index = memory.index(region.writable);
      index.take_within(region.begin(), region.end(), retire);
      if (region.writable) memory.for_reading_.take_within(region.begin(), region.end(), retire);
      while (!has_room_locked(region) && evict_locked() != 0) continue;
      if (has_room_locked(region)) {
        index.insert(region);
        region.kept = kept = true;
        ++counters_.regions;
        counters_.bytes += region.length;
      }
    }
    region.watched = kept;
    ++(kept ? counters_.misses : counters_.single_uses);
  }
  if (!kept) stop_watching({region.begin(), region.end()});
  deregister_retired();
}

void WatchedCache::insert(Region& region) noexcept {
  const std::lock_guard guard(lock_);
  region.leases = 1;
  region.owner.regions_.append(region);
  ++counters_.single_uses;
}

}  // namespace lintel
