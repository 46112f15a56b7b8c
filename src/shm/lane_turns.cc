// Choosing lanes and asking for them; looking for recalled lanes among all links.
#include "shm/lane_turns.h"

#include <algorithm>

namespace lintel {

LaneRecalls::LaneRecalls(const Segment& segment, ReceiveLanes& lanes)
    : segment_(segment), lanes_(lanes), size_(usual_size()) {
  batch_.reserve(lanes_.count());
  candidates_.reserve(lanes_.count());
}

uint32_t LaneRecalls::usual_size() const noexcept {
  return std::max(smallest_batch, lanes_.count() / lanes_per_batch);
}

void LaneRecalls::look(uint64_t now_ns) noexcept {
  std::atomic<uint32_t>& wanted = segment_.header().lanes_wanted;
  if (wanted.load(std::memory_order_relaxed) == 0 && !is_pending()) return;
  if (is_pending()) {
    if (not_returned() != 0 && now_ns < batch_end_ns_) return;
    end_batch();
  }
  if (wanted.exchange(0, std::memory_order_acquire) == 0) return;
  recall_least_recent(size_);
  batch_end_ns_ = now_ns + patience_ns;
}

void LaneRecalls::end_batch() noexcept {
  size_ = 2 * not_returned() > batch_.size() ? std::min(2 * size_, lanes_.count()) : usual_size();
  batch_.clear();
}

uint32_t LaneRecalls::not_returned() const noexcept {
  return static_cast<uint32_t>(std::count_if(batch_.begin(), batch_.end(), [this](uint32_t lane) {
    polling.assert_held();
    return lanes_.is_recalled(lane);
  }));
}

void LaneRecalls::recall_least_recent(uint32_t most) noexcept {
  candidates_.clear();
  for (const uint32_t lane : lanes_.active())
    if (!lanes_.is_recalled(lane)) candidates_.push_back(lane);
  const auto end = candidates_.begin() + std::min<ptrdiff_t>(most, std::ssize(candidates_));
  std::partial_sort(candidates_.begin(), end, candidates_.end(), [this](uint32_t a, uint32_t b) {
    return lanes_.last_message_poll(a) < lanes_.last_message_poll(b);
  });
  for (auto lane = candidates_.begin(); lane != end; ++lane)
    if (recall(*lane)) batch_.push_back(*lane);
}

// The state changes before the peer is notified.
bool LaneRecalls::recall(uint32_t lane) noexcept {
  PeerSegment* const peer = lanes_.link(lane)->segment.get();
  std::atomic<uint64_t>& owner = segment_.entry(lane).owner;
  uint64_t word = owner.load(std::memory_order_relaxed);
  if (peer == nullptr || (word & lane_state_mask) != static_cast<uint64_t>(LaneState::ready) ||
      !owner.compare_exchange_strong(
          word, (word & ~lane_state_mask) | static_cast<uint64_t>(LaneState::recalled),
          std::memory_order_acq_rel))
    return false;
  lanes_.note_recalled(lane);
  peer->tell_recall();
  ++count_;
  return true;
}

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
