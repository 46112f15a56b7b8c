#include "verbs/send_queue.h"

#include <utility>

namespace lintel {

namespace {

constexpr const char* refusal = "the device refused a work request";

}  // namespace

void SendQueue::open(VerbsLink& link, ChannelRequests& requests, ibv_qp* pair,
                     uint32_t channel_index) noexcept {
  link_ = &link;
  requests_ = &requests;
  pair_ = pair;
  channel_index_ = channel_index;
}

bool SendQueue::post(ibv_send_wr& request, PostedRequest record, bool signalled,
                     Posting when) noexcept {
  request.wr_id = uint64_t{channel_index_} << 32 | posted_;
  if (++unsignalled_ >= signal_interval || signalled) {
    request.send_flags |= IBV_SEND_SIGNALED;
    unsignalled_ = 0;
  }
  const bool waits = when == Posting::with_next || link_->corks != 0;
  if (!waits && held_count_ == 0) [[likely]] {
    ibv_send_wr* refused = nullptr;
    if (ibv_post_send(pair_, &request, &refused) != 0) [[unlikely]] {
      requests_->ask_to_stop(*link_, refusal);
      return false;
    }
    records_[posted_++ % capacity] = record;
    return true;
  }
  records_[posted_++ % capacity] = record;
  held_[held_count_] = request;
  if (request.num_sge == 1) {
    held_pieces_[held_count_] = request.sg_list[0];
    held_[held_count_].sg_list = &held_pieces_[held_count_];
  }
  ++held_count_;
  // The list of several pieces is the caller's and does not last.
  if (!waits || request.num_sge > 1 || held_count_ == most_held) flush();
  return true;
}

// Posts in one call, as the call costs most. Refused requests count as posted: their messages are
// sent as datagrams when the queue pair has been stopped.
void SendQueue::flush() noexcept {
  const unsigned count = std::exchange(held_count_, 0u);
  if (count == 0) return;
  for (unsigned i = 0; i < count; ++i) held_[i].next = i + 1 < count ? &held_[i + 1] : nullptr;
  ibv_send_wr* refused = nullptr;
  if (ibv_post_send(pair_, held_, &refused) != 0) [[unlikely]]
    requests_->ask_to_stop(*link_, refusal);
  // ibv_post_send() of a binding needs the former key there; its user notes the new one.
  for (unsigned i = 0; i < count; ++i)
    if (held_[i].opcode == IBV_WR_BIND_MW) held_[i].bind_mw.mw->rkey = held_[i].bind_mw.rkey;
}

}  // namespace lintel
