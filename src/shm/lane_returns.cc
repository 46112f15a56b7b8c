// Looking for recalled lanes among all links. Connection path.
#include "shm/lane_returns.h"

namespace lintel {

void LaneReturns::look(MessageSink& sink) noexcept {
  const uint32_t recalls = own_.header().lanes_recalled.load(std::memory_order_acquire);
  if (recalls == recalls_seen_ && !postponed_) return;
  recalls_seen_ = recalls;
  postponed_ = false;
  for (ShmLink* link = links_.first(); link != nullptr; link = link->next) {
    const uint32_t lane = link->sender.lane();
    if (lane == no_lane || link->failed.load(std::memory_order_relaxed) ||
        !link->segment->is_recalled(lane, own_.nonce()))
      continue;
    const auto give_back = [](Link& base, void* links) {
      polling.assert_held();
      static_cast<ShmLinks*>(links)->return_lane(static_cast<ShmLink&>(base));
    };
    if (!sink.exclude_senders(*link, give_back, &links_)) postponed_ = true;
  }
}

}  // namespace lintel
