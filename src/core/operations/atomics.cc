// Atomic operations on memory (spec 3.15.4): in place where the processor can, under a lock where
// it cannot. Message path.
#include "core/operations/atomics.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/operations/atomics_table.h"
#include "util/cache_line.h"
#include "util/guarded_memory.h"
#include "util/lock.h"
#include "util/spin_lock.h"

namespace lintel {
namespace {

using atomics_detail::Functions;

constexpr atomics_detail::Dispatch dispatch =
    atomics_detail::dispatch_table(std::make_index_sequence<atomic_operations>());

// ---- locks for what the processor cannot do

constexpr uintptr_t stripe_bytes = 64;
constexpr size_t stripes = 64;
struct alignas(cache_line_bytes) Stripe {
  SpinLock lock;
};
static_assert(max_datatype_size <= stripe_bytes, "an item lies in at most two stripes");
constinit Stripe stripe_locks[stripes];

// Holds the stripes of the first and the last byte of an item, so that items that overlap exclude
// each other. Always in the order of the table, or two holders could wait for each other.
class StripeGuard {
 public:
  StripeGuard(const std::byte* first, const std::byte* last) noexcept
      : low_(stripe_of(first)), high_(stripe_of(last)) {
    if (high_ < low_) std::swap(low_, high_);
    stripe_locks[low_].lock.lock();
    if (high_ != low_) stripe_locks[high_].lock.lock();
  }
  ~StripeGuard() {
    if (high_ != low_) stripe_locks[high_].lock.unlock();
    stripe_locks[low_].lock.unlock();
  }
  StripeGuard(const StripeGuard&) = delete;
  StripeGuard& operator=(const StripeGuard&) = delete;

 private:
  [[nodiscard]] static size_t stripe_of(const std::byte* address) noexcept {
    return reinterpret_cast<uintptr_t>(address) / stripe_bytes % stripes;
  }
  size_t low_;
  size_t high_;
};

// ---- what is applied

struct AtomicUpdate {
  const Functions* functions;
  size_t size;  // bytes of one item
  const std::byte* data;
  const std::byte* operand;
  std::byte* fetched;  // null if nothing is fetched

  // Continues behind the first `items` items.
  void advance(size_t items) noexcept {
    data += items * size;
    if (fetched != nullptr) fetched += items * size;
  }
};

// One item through a private copy. Only the guarded copies touch the target, so that a fault comes
// back here and the locks are given up.
[[nodiscard]] bool apply_to_copy(const AtomicUpdate& update, const MemoryRegion& region,
                                 uint64_t offset) noexcept {
  std::byte item[max_datatype_size];
  const StripeGuard guard(region.address(offset), region.address(offset + update.size - 1));
  if (!region.read(offset, item, update.size)) return false;
  if (update.fetched != nullptr) std::memcpy(update.fetched, item, update.size);
  if (!update.functions->copy(item, update.data, update.operand)) return true;
  return region.write(offset, item, update.size);
}

[[nodiscard]] bool apply_to_copies(AtomicUpdate& update, const MemoryRegion& region,
                                   uint64_t offset, size_t items) noexcept {
  for (; items != 0; --items, offset += update.size) {
    if (!apply_to_copy(update, region, offset)) return false;
    update.advance(1);
  }
  return true;
}

[[nodiscard]] bool can_apply_in_place(const AtomicUpdate& update,
                                      const std::byte* target) noexcept {
  return update.functions->in_place != nullptr &&
         reinterpret_cast<uintptr_t>(target) % update.size == 0;
}

void apply_in_place(const AtomicUpdate& update, std::byte* target, size_t items) noexcept {
  update.functions->in_place(target, update.data, update.operand, update.fetched, items);
}

#if defined(__SANITIZE_THREAD__)
// The sanitizer holds a lock of its own during an atomic operation, so a fault must come before.
__attribute__((no_sanitize("thread"))) void touch(std::byte* target, size_t bytes) noexcept {
  for (size_t i = 0; i < bytes; ++i)
    __atomic_fetch_or(reinterpret_cast<unsigned char*>(target) + i, 0, __ATOMIC_RELAXED);
}
#else
void touch(std::byte*, size_t) noexcept {}
#endif

[[nodiscard]] bool apply_in_place_guarded(const AtomicUpdate& update, std::byte* target,
                                          size_t items) noexcept {
  struct Call {
    const AtomicUpdate& update;
    std::byte* target;
    size_t items;
  } call{update, target, items};
  return guarded_call(
      [](void* argument) {
        const Call& c = *static_cast<Call*>(argument);
        touch(c.target, c.items * c.update.size);
        apply_in_place(c.update, c.target, c.items);
      },
      &call);
}

// The part of a region that is contiguous: whole items only.
[[nodiscard]] bool apply_to_run(AtomicUpdate& update, const MemoryRegion& region, uint64_t offset,
                                std::byte* target, size_t items) noexcept {
  if (!can_apply_in_place(update, target)) return apply_to_copies(update, region, offset, items);
  if (!region.is_accessible()) {
    if (!apply_in_place_guarded(update, target, items)) return false;
  } else {
    apply_in_place(update, target, items);
  }
  update.advance(items);
  return true;
}

// ---- memory of devices

constinit SpinLock device_lock;

// Applies to a copy of whole items and stores the copy. One lock for all memory of devices excludes
// other Portals operations, but not what runs on the device.
[[nodiscard]] bool apply_to_device(AtomicUpdate& update, const MemoryRegion& region,
                                   uint64_t offset, size_t items) noexcept {
  constexpr size_t copied_bytes = 512;
  alignas(max_datatype_size) std::byte copy[copied_bytes];
  const LockGuard guard(device_lock);
  while (items != 0) {
    const size_t some = std::min(items, copied_bytes / update.size);
    const uint64_t bytes = some * update.size;
    if (!region.read(offset, copy, bytes)) return false;
    if (update.fetched != nullptr) std::memcpy(update.fetched, copy, bytes);
    bool changed = false;
    for (size_t i = 0; i < some; ++i)
      changed |= update.functions->copy(copy + i * update.size, update.data + i * update.size,
                                        update.operand);
    if (changed && !region.write(offset, copy, bytes)) return false;
    update.advance(some);
    offset += bytes;
    items -= some;
  }
  return true;
}

}  // namespace

bool atomic_allowed(ptl_op_t operation, ptl_datatype_t datatype, AtomicFunction function) noexcept {
  if (operation >= atomic_operations || datatype >= atomic_datatypes) return false;
  const atomics_detail::Legal& row = atomics_detail::table_3_4[operation];
  const bool in_function = function == AtomicFunction::atomic         ? row.atomic
                           : function == AtomicFunction::fetch_atomic ? row.fetch_atomic
                                                                      : row.swap;
  return in_function && dispatch[operation][datatype].copy != nullptr;
}

bool apply_atomic(ptl_op_t operation, ptl_datatype_t datatype, const MemoryRegion& region,
                  uint64_t offset, const std::byte* data, const std::byte* operand,
                  std::byte* fetched, size_t items) noexcept {
  AtomicUpdate update{&dispatch[operation][datatype], datatype_size(datatype), data, operand,
                      fetched};
  const uint64_t bytes = items * update.size;
  if (!region.contains(offset, bytes)) return false;
  if (!region.is_host(offset, bytes)) [[unlikely]]
    return apply_to_device(update, region, offset, items);
  if (region.is_contiguous())
    return apply_to_run(update, region, offset, region.address(offset), items);
  for (const uint64_t end = offset + bytes; offset != end;) {
    Piece piece{};
    uint64_t covered = 0;
    region.pieces(offset, end - offset, &piece, 1, &covered);
    // An item that spans elements is gathered and scattered.
    const size_t whole = covered / update.size;
    const bool done = whole != 0 ? apply_to_run(update, region, offset, piece.base, whole)
                                 : apply_to_copies(update, region, offset, 1);
    if (!done) return false;
    offset += (whole != 0 ? whole : 1) * update.size;
  }
  return true;
}

}  // namespace lintel
