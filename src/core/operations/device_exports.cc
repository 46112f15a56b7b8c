#include "core/operations/device_exports.h"

#include <new>

#include "util/assert.h"

namespace lintel {

namespace {

bool is_there(const ExportedAllocation& exported) noexcept {
  MemoryKind* const kind = kind_numbered(exported.kind);
  DeviceAllocation now;
  return kind != nullptr && kind->describe(reinterpret_cast<const void*>(exported.base), &now) &&
         now.id == exported.id;
}

}  // namespace

bool DeviceExports::find_or_export(MemoryKind& kind, const DeviceAllocation& allocation,
                                   ExportedAllocation* out) noexcept {
  const LockGuard guard(lock_);
  for (const ExportedAllocation& exported : exports_)
    if (exported.id == allocation.id && exported.base == allocation.base &&
        exported.kind == kind.number()) {
      *out = exported;
      return true;
    }
  if (!kind.export_allocation(allocation, out)) return false;
  LINTEL_ASSERT(exports_.size() <= most);
  if (exports_.size() == most) return true;
  try {
    exports_.push_back(*out);
  } catch (const std::bad_alloc&) {  // not kept
  }
  return true;
}

bool DeviceExports::take_freed(size_t* place, ExportedAllocation* out) noexcept {
  const LockGuard guard(lock_);
  for (; *place < exports_.size(); ++*place) {
    ExportedAllocation& exported = exports_[*place];
    if (is_there(exported)) continue;
    *out = exported;
    exported = exports_.back();
    exports_.pop_back();
    return true;
  }
  return false;
}

}  // namespace lintel
