// Set-up path.
#include "fuzz/trigger_plan.h"

#include <algorithm>

namespace lintel::fuzz {

std::vector<Fired> TriggerPlan::post(const Operation& operation) {
  waiting_.push_back(operation);
  return move(count_);
}

bool TriggerPlan::cancel_append(uint32_t entry) {
  const auto is_it = [&](const Operation& operation) {
    return operation.what == Fired::What::append && operation.id == entry;
  };
  return std::erase_if(waiting_, is_it) + std::erase_if(ready_, is_it) != 0;
}

void TriggerPlan::reach(uint64_t value) {
  count_ = value;
  std::stable_sort(waiting_.begin(), waiting_.end(),
                   [](const Operation& left, const Operation& right) {
                     return left.threshold < right.threshold;
                   });
  while (!waiting_.empty() && waiting_.front().threshold <= value) {
    ready_.push_back(waiting_.front());
    waiting_.erase(waiting_.begin());
  }
}

std::vector<Fired> TriggerPlan::move(uint64_t value) {
  std::vector<Fired> fired;
  reach(value);
  while (!ready_.empty()) {
    const Operation next = ready_.front();
    ready_.pop_front();
    switch (next.what) {
      case Fired::What::count:
        reach(count_ + next.amount);
        break;
      case Fired::What::set:
        reach(next.amount);
        break;
      case Fired::What::unlink:
        if (!cancel_append(next.id)) fired.push_back({next.what, next.id});
        break;
      default:
        fired.push_back({next.what, next.id});
    }
  }
  return fired;
}

}  // namespace lintel::fuzz
