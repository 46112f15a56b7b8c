// Finding registered memory and giving it back. Message path as far as the memory is kept
// registered.
#include <cerrno>

#include "registration/watched_cache.h"

namespace lintel {

const RegisteredRegion* AttachedMemory::acquire(const void* address, uint64_t length, bool writable,
                                                int& error) noexcept {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  if (length == 0) {
    error = EINVAL;
    return nullptr;
  }
  if (begin + length < begin) {
    error = EFAULT;
    return nullptr;
  }
  // After a fork even the lock is the parent's.
  if (generation_ != cache_.generation_.load(std::memory_order_relaxed)) {
    error = ENODEV;
    return nullptr;
  }
  bool keep = cache_.watch_.active();
  if (keep) {
    if (cache_.settings_.check && cache_.watch_.changing()) keep = cache_.wait_for_changes();
    if (keep) {
      Region* const found = cache_.look_up(*this, {begin, begin + length}, writable);
      if (found != nullptr) return found;
    }
  }
  return cache_.enter(*this, {begin, begin + length}, writable, keep, error);
}

void AttachedMemory::release(const RegisteredRegion* region) noexcept {
  if (generation_ != cache_.generation_.load(std::memory_order_relaxed)) return;
  cache_.give_back(*const_cast<Region*>(static_cast<const Region*>(region)));
}

Region* WatchedCache::look_up(AttachedMemory& memory, Range wanted, bool writable) noexcept {
  const std::lock_guard guard(lock_);
  Region* const found = memory.find(wanted.begin, wanted.end, writable);
  if (found == nullptr) return nullptr;
  if (found->leases++ == 0) idle_.remove(*found);
  ++counters_.hits;
  return found;
}

void WatchedCache::give_back(Region& region) noexcept {
  {
    const std::lock_guard guard(lock_);
    if (--region.leases != 0) return;
    if (region.kept) {
      idle_.append(region);
      return;
    }
    retired_.append(region);
  }
  deregister_retired();
}

}  // namespace lintel
