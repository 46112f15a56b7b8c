// A pairing heap for triggered operations that were not posted in ascending order (spec 3.16).
// Message path: amortised O(log n), no recursion.
#include "core/events/trigger_queue.h"

namespace lintel {
namespace {

[[nodiscard]] bool comes_before(const TriggeredOperation& a, const TriggeredOperation& b) noexcept {
  return a.threshold != b.threshold ? a.threshold < b.threshold : a.posting < b.posting;
}

// Two roots become one; `next` of the result is left to the caller.
[[nodiscard]] TriggeredOperation* meld(TriggeredOperation* a, TriggeredOperation* b) noexcept {
  if (comes_before(*b, *a)) {
    TriggeredOperation* const smaller = b;
    b = a;
    a = smaller;
  }
  b->next = a->child;
  a->child = b;
  return a;
}

}  // namespace

void TriggerQueue::push_heap(TriggeredOperation& operation) noexcept {
  operation.child = nullptr;
  root_ = root_ == nullptr ? &operation : meld(root_, &operation);
  root_->next = nullptr;
}

// Melds the children of the root in pairs from the left, then the pairs from the right.
void TriggerQueue::pop_heap() noexcept {
  TriggeredOperation* pairs = nullptr;
  for (TriggeredOperation* child = root_->child; child != nullptr;) {
    TriggeredOperation* first = child;
    TriggeredOperation* const second = child->next;
    child = second == nullptr ? nullptr : second->next;
    if (second != nullptr) first = meld(first, second);
    first->next = pairs;
    pairs = first;
  }
  root_ = nullptr;
  while (pairs != nullptr) {
    TriggeredOperation* const following = pairs->next;
    root_ = root_ == nullptr ? pairs : meld(root_, pairs);
    pairs = following;
  }
  if (root_ != nullptr) root_->next = nullptr;
}

TriggeredOperation* TriggerQueue::pop_reached_of_both(uint64_t value) noexcept {
  const bool from_heap = first_ == nullptr || comes_before(*root_, *first_);
  TriggeredOperation* const operation = from_heap ? root_ : first_;
  if (operation->threshold > value) return nullptr;
  if (from_heap) {
    pop_heap();
  } else {
    first_ = operation->next;
  }
  return operation;
}

}  // namespace lintel
