// Registrars come and go; forked children. Set-up path.
#include <unistd.h>

#include <new>
#include <string>

#include "registration/watched_cache.h"
#include "util/futex.h"
#include "util/log.h"

namespace lintel {

AttachedMemory::AttachedMemory(WatchedCache& cache, Registrar& registrar, uint32_t generation,
                               size_t capacity)
    : cache_(cache), registrar_(registrar), generation_(generation) {
  for_writing_.open(capacity);
  for_reading_.open(capacity);
}

AttachedMemory::~AttachedMemory() {
  if (generation_ == cache_.generation_.load(std::memory_order_relaxed)) cache_.detach(*this);
}

std::unique_ptr<RegisteredMemory> WatchedCache::attach(Registrar& registrar) noexcept {
  try {
    const std::lock_guard attach_guard(attach_lock_);
    auto memory = std::make_unique<AttachedMemory>(
        *this, registrar, generation_.load(std::memory_order_relaxed), settings_.most_regions);
    if (attached_count_ == 0 && settings_.most_regions != 0) start_watching();
    ++attached_count_;
    const std::lock_guard guard(lock_);
    memory->next_ = attached_;
    attached_ = memory.get();
    return memory;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// Without it everything works, but slowly.
void WatchedCache::start_watching() {
  static std::atomic<bool> said{false};
  std::string reason;
  if (!watch_.open(reason)) {
    log_once(said, LogLevel::warn,
             "memory is registered with the device for each transfer anew, which takes time: %s",
             reason.c_str());
  } else if (!start_threads()) {
    watch_.close();
  }
}

void WatchedCache::detach(AttachedMemory& memory) noexcept {
  const std::lock_guard attach_guard(attach_lock_);
  {
    const std::lock_guard guard(lock_);
    const auto retire = [&](Region& region) { retire_locked(region); };
    memory.for_writing_.take_overlapping(0, UINT64_MAX, retire);
    memory.for_reading_.take_overlapping(0, UINT64_MAX, retire);
    for (Region* region = memory.regions_.head(); region != nullptr;
         region = RegionSiblings::next(*region)) {
      if (region->leases == 0) continue;
      region->leases = 0;
      retired_.append(*region);
    }
  }
  deregister_retired();
  // Other threads may be at work on some.
  for (;;) {
    const uint32_t seen = deregistrations_.load(std::memory_order_acquire);
    {
      const std::lock_guard guard(lock_);
      if (memory.regions_.empty() && memory.deregistering_ == 0) break;
    }
    futex_wait(deregistrations_, seen, futex_no_timeout);
  }
  {
    const std::lock_guard guard(lock_);
    AttachedMemory** place = &attached_;
    while (*place != &memory) place = &(*place)->next_;
    *place = memory.next_;
  }
  if (--attached_count_ == 0 && watch_.active()) {
    stop_threads();
    watch_.close();
  }
}

RegistrationCounters WatchedCache::counters() const noexcept {
  const std::lock_guard guard(lock_);
  return counters_;
}

void WatchedCache::after_fork_in_child() noexcept {
  generation_.fetch_add(1, std::memory_order_relaxed);
  // Other threads may have held the locks; they are not here.
  new (&attach_lock_) std::mutex;
  new (&watch_lock_) std::mutex;
  new (&lock_) SpinLock;
  watch_.close();
  if (stop_reader_ >= 0) close(stop_reader_);
  stop_reader_ = -1;
  attached_ = nullptr;
  attached_count_ = 0;
  entering_.abandon();
  idle_.abandon();
  retired_.abandon();
  counters_ = {};
}

}  // namespace lintel
