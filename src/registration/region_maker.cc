// Watching, registering and keeping a region. Connection path.
#include "registration/region_maker.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <new>

#include "util/futex.h"
#include "util/lock.h"
#include "util/log.h"

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

namespace {

MemoryRange rounded(MemoryRange range, uint64_t granule) {
  const uint64_t begin = range.begin & ~(granule - 1);
  const uint64_t end = (range.end + granule - 1) & ~(granule - 1);
  // Ends at the last granule of the address space rather than beyond it.
  return {begin, end < range.end ? ~(granule - 1) : end};
}

void report(int error, const Region& region) {
  if (error == EFAULT) return;  // the application's fault, which an event reports
  static std::atomic<bool> said{false};
  log_once(said, LogLevel::warn, "cannot register %llu bytes of memory with the device: %s%s%s",
           static_cast<unsigned long long>(region.length), strerror(error),
           error == ENOMEM ? "; " : "", error == ENOMEM ? locked_memory_advice().c_str() : "");
}

}  // namespace

Region* RegionMaker::make(RegionOwner& owner, MemoryRange wanted, bool writable, bool keep,
                          int& error) noexcept {
  deregistration_.deregister_retired();
  std::unique_ptr<Region> region(new (std::nothrow) Region(owner, writable));
  error = ENOMEM;
  if (region != nullptr) {
    Outcome outcome = keep ? make_watched(*region, wanted, error) : Outcome::unwatchable;
    if (outcome == Outcome::unwatchable) {
      region->cover(rounded(wanted, static_cast<uint64_t>(sysconf(_SC_PAGESIZE))));
      error = register_memory(*region, true);
      if (error == 0) {
        table_.add_single_use(*region);
        outcome = Outcome::made;
      }
    }
    if (outcome == Outcome::made) return region.release();
    report(error, *region);
  }
  table_.note_failure();
  return nullptr;
}

RegionMaker::Outcome RegionMaker::make_watched(Region& region, MemoryRange wanted,
                                               int& error) noexcept {
  for (const uint64_t granule : watch_.granules()) {
    const MemoryRange exact = rounded(wanted, granule);
    if (table_.begin_with_neighbours(region, exact) &&
        finish(region, false, error) == Outcome::made)
      return Outcome::made;
    table_.begin(region, exact);
    const Outcome outcome = finish(region, true, error);
    if (outcome != Outcome::unwatchable) return outcome;
  }
  return Outcome::unwatchable;
}

// Watches a region that was begun, and then registers it: so every change after the device has its
// pages is reported.
RegionMaker::Outcome RegionMaker::finish(Region& region, bool make_room, int& error) noexcept {
  const MemoryRange range = region.range();
  const bool watched = deregistration_.watch(range);
  if (watched) error = register_memory(region, make_room);
  if (watched && error == 0) {
    if (!table_.keep(region)) deregistration_.stop_watching(range);
    deregistration_.deregister_retired();
    return Outcome::made;
  }
  table_.cancel(region);
  deregistration_.stop_watching(range);
  return watched ? Outcome::failed : Outcome::unwatchable;
}

int RegionMaker::register_memory(Region& region, bool make_room) noexcept {
  for (uint64_t room = region.length;; room = room > UINT64_MAX / 2 ? room : room * 2) {
    const int error =
        region.owner.registrar.register_memory(reinterpret_cast<void*>(region.address),
                                               region.length, region.writable, region.registration);
    const bool room_helps = error == ENOMEM || error == ENOSPC || error == EAGAIN;
    if (!make_room || !room_helps || !deregistration_.make_room(room)) return error;
  }
}

std::string locked_memory_advice() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return "the limit of locked memory (RLIMIT_MEMLOCK) is not reached: the device or the kernel has "
           "no memory left";
  return "the limit of locked memory (RLIMIT_MEMLOCK) is " + std::to_string(limit.rlim_cur / 1024) +
         " KiB for this process: raise it with `ulimit -l unlimited`, memlock in "
         "/etc/security/limits.d, or LimitMEMLOCK=infinity in the unit of a service such as slurmd";
}

}  // namespace lintel
