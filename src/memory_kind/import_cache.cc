// Mapped allocations of other processes. Connection path.
#include "memory_kind/import_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "util/assert.h"

namespace lintel {

namespace {

bool is_same(const ExportedAllocation& a, const ExportedAllocation& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

bool overlaps(const ExportedAllocation& a, const ExportedAllocation& b) {
  return a.process == b.process && a.base < b.base + b.length && b.base < a.base + a.length;
}

}  // namespace

// Two allocations of a process have no address in common, so the earlier one is gone.
void ImportCache::drop_stale(const ExportedAllocation& exported) {
  std::erase_if(imports_, [&](const Import& import) {
    if (import.users != 0 || !overlaps(import.exported, exported)) return false;
    driver_.close(import.base);
    return true;
  });
}

bool ImportCache::make_room() {
  if (imports_.size() < max_imports) return true;
  auto oldest = imports_.end();
  for (auto import = imports_.begin(); import != imports_.end(); ++import)
    if (import->users == 0 && (oldest == imports_.end() || import->last_use < oldest->last_use))
      oldest = import;
  if (oldest == imports_.end()) return false;
  driver_.close(oldest->base);
  imports_.erase(oldest);
  return true;
}

void* ImportCache::map(const ExportedAllocation& exported) {
  void* const base = driver_.open(exported);
  if (base == nullptr) return nullptr;
  DeviceAllocation mapped;
  DeviceContext context;
  if (driver_.describe(base, &mapped, &context) &&
      mapped.base + mapped.length - reinterpret_cast<uintptr_t>(base) >= exported.length)
    return base;
  driver_.close(base);  // shorter than its exporter says
  return nullptr;
}

void* ImportCache::open(const ExportedAllocation& exported) noexcept {
  if (exported.process == static_cast<uint32_t>(getpid()) || exported.length == 0 ||
      exported.base + exported.length < exported.base)
    return nullptr;
  LockGuard guard(lock_);
  for (Import& import : imports_)
    if (is_same(import.exported, exported)) {
      ++import.users;
      import.last_use = ++uses_;
      return import.base;
    }
  try {
    drop_stale(exported);
    if (!make_room()) return nullptr;
    imports_.reserve(imports_.size() + 1);
    void* const base = map(exported);
    if (base != nullptr) imports_.push_back({exported, base, 1, ++uses_});
    return base;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void ImportCache::close(void* base) noexcept {
  LockGuard guard(lock_);
  const auto import = std::find_if(imports_.begin(), imports_.end(),
                                   [&](const Import& each) { return each.base == base; });
  LINTEL_ASSERT(import != imports_.end() && import->users != 0);
  if (import != imports_.end() && import->users != 0) --import->users;
}

}  // namespace lintel
