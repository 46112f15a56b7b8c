// Registrars come and go. Message path: acquire() of memory that is kept registered, release(). The
// rest: set-up path.
#include "registration/watched_cache.h"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <string>

#include "memory_kind/memory_kind.h"
#include "registration/accelerator_regions.h"
#include "util/config.h"
#include "util/lock.h"
#include "util/log.h"

namespace lintel {

// The memory of one registrar. In a forked child the one of its parent does nothing.
class WatchedCache::Attached final : public RegisteredMemory {
 public:
  Attached(WatchedCache& cache, Registrar& registrar)
      : cache_(cache),
        generation_(cache.generation_.load(std::memory_order_relaxed)),
        owner_(registrar, cache.settings_.most_regions),
        accelerators_(registrar, cache.settings_.most_regions) {}
  ~Attached() override;

  [[nodiscard]] const RegisteredRegion* acquire(const void* address, uint64_t length, bool writable,
                                                int& error) noexcept override;
  void release(const RegisteredRegion* region) noexcept override {
    if (!is_ours()) return;
    if (region->of_accelerator) return accelerators_.release(*region);
    if (cache_.parts_.table.give_back(*const_cast<Region*>(static_cast<const Region*>(region))))
      cache_.parts_.deregistration.deregister_retired();
  }
  [[nodiscard]] bool find_accelerator(const void* address, uint64_t length,
                                      AcceleratorRange* out) noexcept override;
  bool end_freed() noexcept override { return is_ours() && accelerators_.end_freed(); }
  [[nodiscard]] RegionOwner& owner() noexcept { return owner_; }

 private:
  [[nodiscard]] bool is_ours() const noexcept {
    return generation_ == cache_.generation_.load(std::memory_order_relaxed);
  }

  WatchedCache& cache_;
  const uint32_t generation_;
  RegionOwner owner_;
  AcceleratorRegions accelerators_;
};

const RegisteredRegion* WatchedCache::Attached::acquire(const void* address, uint64_t length,
                                                        bool writable, int& error) noexcept {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const MemoryRange range{begin, begin + length};
  if (length == 0 || range.end < begin || !is_ours()) {
    error = length == 0 ? EINVAL : range.end < begin ? EFAULT : ENODEV;
    return nullptr;
  }
  if (device_memory_in_use()) [[unlikely]] {
    DeviceAllocation allocation;
    if (MemoryKind* const kind = kind_of(address, &allocation))
      return accelerators_.acquire(*kind, allocation, range, error);
  }
  Parts& parts = cache_.parts_;
  bool keep = parts.watch.active();
  if (keep && parts.watch.changing()) keep = parts.changes.wait_for_changes();
  if (keep) {
    Region* const found = parts.table.lease(owner_, range, writable);
    if (found != nullptr) return found;
  }
  return parts.maker.make(owner_, range, writable, keep, error);
}

bool WatchedCache::Attached::find_accelerator(const void* address, uint64_t length,
                                              AcceleratorRange* out) noexcept {
  DeviceAllocation allocation;
  MemoryKind* const kind = device_memory_in_use() ? kind_of(address, &allocation) : nullptr;
  if (kind == nullptr) return false;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  int error = 0;
  const RegisteredRegion* const region =
      is_ours() ? accelerators_.acquire(*kind, allocation, {begin, begin + length}, error)
                : nullptr;
  if (region == nullptr) return true;
  *out = range_of(*kind, const_cast<void*>(address), length);
  accelerators_.release(*region);
  return true;
}

WatchedCache::Attached::~Attached() {
  if (!is_ours()) {
    accelerators_.abandon();
    return;
  }
  Parts& parts = cache_.parts_;
  const LockGuard guard(parts.attach_lock);
  parts.deregistration.remove(owner_);
  if (--parts.attached != 0 || !parts.watch.active()) return;
  parts.changes.stop();
  parts.watch.close();
}

std::unique_ptr<RegisteredMemory> WatchedCache::attach(Registrar& registrar) noexcept {
  try {
    const LockGuard guard(parts_.attach_lock);
    auto memory = std::make_unique<Attached>(*this, registrar);
    if (parts_.attached++ == 0 && settings_.most_regions != 0) start_watching();
    parts_.table.add(memory->owner());
    return memory;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// Starts watching memory. Without that the cache works, but slowly.
void WatchedCache::start_watching() {
  static std::atomic<bool> said{false};
  std::string reason;
  if (parts_.watch.open(reason) && parts_.changes.start(reason)) return;
  parts_.watch.close();
  log_once(said, LogLevel::warn,
           "memory is registered with the device again for each transfer, which takes time: %s",
           reason.c_str());
}

// Threads of the parent may have held the locks; they are not here. What it had allocated is lost.
void WatchedCache::after_fork_in_child() noexcept {
  generation_.fetch_add(1, std::memory_order_relaxed);
  parts_.watch.close();
  parts_.changes.close_in_child();
  new (&parts_) Parts(settings_);
}

namespace {

uint64_t half_of_memory() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) / 2 *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

WatchedCache::Settings configured() {
  WatchedCache::Settings settings;
  settings.most_regions = static_cast<uint32_t>(config_u64(ConfigKey::registration_regions));
  settings.most_bytes = config_u64(ConfigKey::registration_bytes);
  if (settings.most_bytes == 0) settings.most_bytes = half_of_memory();
  return settings;
}

WatchedCache* the_cache = nullptr;

WatchedCache* make_cache() {
  the_cache = new WatchedCache(configured());
  pthread_atfork(nullptr, nullptr, [] { the_cache->after_fork_in_child(); });
  return the_cache;
}

}  // namespace

RegistrationCache& process_registration_cache() {
  static WatchedCache* const cache = make_cache();
  return *cache;
}

}  // namespace lintel
