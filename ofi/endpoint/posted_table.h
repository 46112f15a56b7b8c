// The entries that an endpoint has posted, and for which operation: to cancel them, and to unlink
// them when the endpoint is closed. Message path.
#pragma once

#include <portals4.h>

#include <vector>

#include "base/assert.h"
#include "endpoint/operation.h"

namespace lintel::ofi {

class PostedTable {
 public:
  // The operation remembers its position. Its handle is to be set.
  [[nodiscard]] ptl_handle_me_t* add(Operation& operation) {
    if (first_free_ == none) [[unlikely]]
      grow();
    const uint32_t position = first_free_;
    first_free_ = static_cast<uint32_t>(slots_[position].entry);
    OFI_ASSERT(!slots_[position].is_used());
    slots_[position].reference = OperationReference(operation);
    slots_[position].entry = PTL_INVALID_HANDLE;
    operation.posted = position;
    ++count_;
    return &slots_[position].entry;
  }
  void remove(Operation& operation) noexcept {
    OFI_ASSERT(operation.posted < slots_.size());
    OFI_ASSERT(slots_[operation.posted].reference.operation == &operation);
    release(operation.posted);
    operation.posted = Operation::not_posted;
  }
  [[nodiscard]] ptl_handle_me_t& entry(const Operation& operation) noexcept {
    return slots_[operation.posted].entry;
  }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  // The first receive with a context, or NULL.
  [[nodiscard]] Operation* find_receive(const void* context) const noexcept {
    for (const Slot& slot : slots_)
      if (slot.is_used() && slot.reference.is_receive_of(context)) return slot.reference.operation;
    return nullptr;
  }
  template <typename Action>
  void for_each(Action&& action) const {
    for (const Slot& slot : slots_)
      if (slot.is_used()) action(slot.reference);
  }
  // Removes those for which action(reference, entry) is true.
  template <typename Action>
  void remove_if(Action&& action) {
    for (uint32_t i = 0; i < slots_.size(); ++i)
      if (slots_[i].is_used() && action(slots_[i].reference, slots_[i].entry)) release(i);
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;

  struct Slot {
    OperationReference reference;  // of no operation: free
    ptl_handle_me_t entry = none;  // free: position of the next free one

    [[nodiscard]] bool is_used() const noexcept { return reference.operation != nullptr; }
  };

  [[gnu::cold]] void grow() {
    first_free_ = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  }
  void release(uint32_t position) noexcept {
    OFI_ASSERT(count_ != 0 && slots_[position].is_used());
    slots_[position].reference.operation = nullptr;
    slots_[position].entry = first_free_;
    first_free_ = position;
    --count_;
  }

  std::vector<Slot> slots_;
  uint32_t first_free_ = none;
  size_t count_ = 0;
};

}  // namespace lintel::ofi
