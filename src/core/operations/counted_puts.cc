#include "core/operations/counted_puts.h"

namespace lintel {

bool CountedPuts::acquire_ring() noexcept {
  const uint32_t index = rings_ == nullptr ? Arena<Ring>::no_index : rings_->allocate();
  if (index == Arena<Ring>::no_index) return false;
  ring_.store(&rings_->at(index), std::memory_order_release);
  return true;
}

}  // namespace lintel
