// The entries that an endpoint has posted, and for which operation: to cancel them, and to unlink
// them when the endpoint is closed. Message path.
#pragma once

#include <portals4.h>

#include <vector>

#include "endpoint/operation.h"

namespace lintel::ofi {

class PostedTable {
 public:
  // The operation remembers its position. Its handle is to be set.
  [[nodiscard]] ptl_handle_me_t* add(Operation& operation) {
    uint32_t position = first_free_;
    if (position == none) {
      position = static_cast<uint32_t>(slots_.size());
      slots_.emplace_back();
    } else {
      first_free_ = static_cast<uint32_t>(slots_[position].entry);
    }
    slots_[position].operation = &operation;
    slots_[position].entry = PTL_INVALID_HANDLE;
    operation.posted = position;
    return &slots_[position].entry;
  }
  void remove(Operation& operation) noexcept {
    Slot& slot = slots_[operation.posted];
    slot.operation = nullptr;
    slot.entry = first_free_;
    first_free_ = operation.posted;
    operation.posted = Operation::not_posted;
  }
  [[nodiscard]] ptl_handle_me_t entry(const Operation& operation) const noexcept {
    return slots_[operation.posted].entry;
  }
  // The first operation for which test(operation), or NULL.
  template <typename Test>
  [[nodiscard]] Operation* find(Test&& test) const {
    for (const Slot& slot : slots_)
      if (slot.operation != nullptr && test(*slot.operation)) return slot.operation;
    return nullptr;
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;

  struct Slot {
    Operation* operation = nullptr;  // NULL: free
    ptl_handle_me_t entry = none;    // free: position of the next free one
  };

  std::vector<Slot> slots_;
  uint32_t first_free_ = none;
};

}  // namespace lintel::ofi
