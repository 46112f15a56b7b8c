// The shared receive queue. Message path, except for open().
#include "verbs/receive_buffers.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace lintel {

bool ReceiveBuffers::open(VerbsDevice& device, uint32_t count, uint32_t bytes, uint64_t tag,
                          std::string& reason) {
  constexpr uint32_t alignment = 64;
  count_ = std::min(count, static_cast<uint32_t>(std::max(device.attributes.max_srq_wr, 1)));
  bytes_ = (bytes + alignment - 1) / alignment * alignment;
  tag_ = tag;
  if (!memory_.open(device.pd, size_t{count_} * bytes_, IBV_ACCESS_LOCAL_WRITE,
                    "messages that arrive", reason))
    return false;
  ibv_srq_init_attr wanted{};
  wanted.attr.max_wr = count_;
  wanted.attr.max_sge = 1;
  queue_ = ibv_create_srq(device.pd, &wanted);
  if (queue_ == nullptr) {
    reason = std::string("a shared receive queue cannot be made: ").append(std::strerror(errno));
    return false;
  }
  returned_.reserve(count_);
  for (uint32_t i = 0; i < count_; ++i) give_back(i);
  if (!returned_.empty()) post_returned();
  // Most buffers are always posted.
  batch_ = std::clamp<size_t>(count_ / 8, 1, largest_batch);
  return true;
}

ReceiveBuffers::~ReceiveBuffers() {
  if (queue_ != nullptr) ibv_destroy_srq(queue_);
}

void ReceiveBuffers::post_returned() noexcept {
  ibv_recv_wr requests[largest_batch];
  ibv_sge pieces[largest_batch];
  const size_t count = std::min<size_t>(returned_.size(), largest_batch);
  const size_t first = returned_.size() - count;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t index = returned_[first + i];
    pieces[i] = {reinterpret_cast<uint64_t>(data(index)), bytes_, memory_.local_key()};
    requests[i] = {};
    requests[i].wr_id = tag_ | index;
    requests[i].sg_list = &pieces[i];
    requests[i].num_sge = 1;
    requests[i].next = i + 1 < count ? &requests[i + 1] : nullptr;
  }
  returned_.resize(first);
  ibv_recv_wr* refused = nullptr;
  if (ibv_post_srq_recv(queue_, requests, &refused) == 0) [[likely]]
    return;
  // There is room for all of them: a refusal is an error of the device, and may pass.
  for (; refused != nullptr; refused = refused->next)
    returned_.push_back(static_cast<uint32_t>(refused->wr_id));
}

}  // namespace lintel
