// The pending triggered operations of one counter, ordered by threshold and among equals by
// posting. Message path: O(1) for operations posted with ascending thresholds (spec 3.16 advises
// so), O(log n) amortised for the others. Not thread-safe: the counter's lock protects it.
#pragma once

#include <cstdint>

#include "core/events/triggered_operation.h"

namespace lintel {

class TriggerQueue {
 public:
  static constexpr uint64_t no_threshold = UINT64_MAX;

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr && root_ == nullptr; }

  // Takes `operation` with its threshold set.
  void push(TriggeredOperation& operation) noexcept {
    operation.posting = postings_++;
    if (first_ == nullptr || last_->threshold <= operation.threshold) {
      operation.next = nullptr;
      (first_ == nullptr ? first_ : last_->next) = &operation;
      last_ = &operation;
    } else {
      push_heap(operation);
    }
  }

  // Threshold of the next operation; no_threshold if there is none.
  [[nodiscard]] uint64_t next_threshold() const noexcept {
    uint64_t lowest = first_ != nullptr ? first_->threshold : no_threshold;
    if (root_ != nullptr && root_->threshold < lowest) lowest = root_->threshold;
    return lowest;
  }

  // Removes the next operation if `value` reaches its threshold; null otherwise.
  [[nodiscard]] TriggeredOperation* pop_reached(uint64_t value) noexcept {
    if (root_ != nullptr) [[unlikely]]
      return pop_reached_of_both(value);
    TriggeredOperation* operation = first_;
    if (operation == nullptr || operation->threshold > value) return nullptr;
    first_ = operation->next;
    return operation;
  }

 private:
  [[nodiscard]] TriggeredOperation* pop_reached_of_both(uint64_t value) noexcept;
  void push_heap(TriggeredOperation& operation) noexcept;
  void pop_heap() noexcept;

  TriggeredOperation* first_ = nullptr;  // posted in ascending order, linked by `next`
  TriggeredOperation* last_ = nullptr;   // meaningful while first_ is not null
  TriggeredOperation* root_ = nullptr;   // pairing heap of the others
  uint64_t postings_ = 0;
};

}  // namespace lintel
