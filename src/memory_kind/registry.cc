// The kinds of memory that this process uses.
#include "memory_kind/memory_kind.h"

namespace lintel {

namespace memory_kind_detail {
constinit std::atomic<bool> in_use{false};
}  // namespace memory_kind_detail

namespace {
constexpr unsigned most_kinds = 4;
constinit std::atomic<MemoryKind*> kinds[most_kinds] = {};
}  // namespace

void look_for_drivers() noexcept {}

void use_kind(MemoryKind& kind) noexcept {
  for (std::atomic<MemoryKind*>& place : kinds) {
    MemoryKind* none = nullptr;
    if (!place.compare_exchange_strong(none, &kind)) continue;
    memory_kind_detail::in_use.store(true);
    return;
  }
}

MemoryKind* kind_of(const void* address, DeviceAllocation* out) noexcept {
  for (const std::atomic<MemoryKind*>& place : kinds) {
    MemoryKind* const kind = place.load(std::memory_order_acquire);
    if (kind != nullptr && kind->describe(address, out)) return kind;
  }
  return nullptr;
}

MemoryKind* kind_numbered(uint8_t number) noexcept {
  for (const std::atomic<MemoryKind*>& place : kinds) {
    MemoryKind* const kind = place.load(std::memory_order_acquire);
    if (kind != nullptr && kind->number() == number) return kind;
  }
  return nullptr;
}

}  // namespace lintel
