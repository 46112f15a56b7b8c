// The software queue of completions: it grows, so that no completion is lost. Message path; it
// allocates memory only when it grows, and for errors.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <rdma/fi_eq.h>

#include "base/assert.h"

namespace lintel::ofi {

// An error, with the data that its entry points to.
struct CompletionError {
  fi_cq_err_entry entry{};
  std::vector<std::byte> data;
};

struct Completion {
  fi_cq_tagged_entry entry;  // the other formats are its beginning
  fi_addr_t source;
  std::unique_ptr<CompletionError> error;  // NULL: a success
};

class CompletionRing {
 public:
  [[nodiscard]] bool empty() const noexcept { return head_ == tail_; }
  [[nodiscard]] Completion& front() noexcept { return slots_[head_ & mask_]; }
  void pop() noexcept {
    OFI_ASSERT(!empty());
    if (front().error != nullptr) [[unlikely]]
      front().error.reset();
    ++head_;
  }
  // A success.
  void push(const fi_cq_tagged_entry& entry, fi_addr_t source) {
    Completion& slot = next();
    slot.entry = entry;
    slot.source = source;
  }
  void push_error(std::unique_ptr<CompletionError> error) { next().error = std::move(error); }

 private:
  [[nodiscard]] Completion& next() {
    if (tail_ - head_ > mask_) [[unlikely]]
      grow();
    OFI_ASSERT(tail_ - head_ <= mask_ && (mask_ & (mask_ + 1)) == 0);
    Completion& slot = slots_[tail_++ & mask_];
    OFI_ASSERT(slot.error == nullptr);
    return slot;
  }
  [[gnu::cold, gnu::noinline]] void grow() {
    const uint64_t larger_mask = 2 * mask_ + 1;
    auto larger = std::make_unique<Completion[]>(larger_mask + 1);
    for (uint64_t i = head_; i != tail_; ++i)
      larger[i & larger_mask] = std::move(slots_[i & mask_]);
    slots_ = std::move(larger);
    mask_ = larger_mask;
  }

  uint64_t mask_ = 255;  // slots less one
  std::unique_ptr<Completion[]> slots_ = std::make_unique<Completion[]>(mask_ + 1);
  uint64_t head_ = 0;
  uint64_t tail_ = 0;
};

}  // namespace lintel::ofi
