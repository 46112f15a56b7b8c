// The shared receive queue. Message path for post_returned().
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
  if (!memory_.open(device.pd, size_t{count_} * bytes_, IBV_ACCESS_LOCAL_WRITE, "messages that arrive", reason))
    return false;
  ibv_srq_init_attr wanted{};
  wanted.attr.max_wr = count_;
  wanted.attr.max_sge = 1;
  queue_ = ibv_create_srq(device.pd, &wanted);
  if (queue_ == nullptr) {
    reason = std::string("a shared receive queue cannot be made: ").append(std::strerror(errno));
    return false;
  }
  for (uint32_t i = 0; i < count_; ++i) give_back(i);
  post_returned();
  return true;
}

ReceiveBuffers::~ReceiveBuffers() {
  if (queue_ != nullptr) ibv_destroy_srq(queue_);
}

void ReceiveBuffers::post_returned() noexcept {
  if (returned_count_ == 0) return;
  ibv_recv_wr requests[batch];
  ibv_sge pieces[batch];
  for (unsigned i = 0; i < returned_count_; ++i) {
    pieces[i] = {reinterpret_cast<uint64_t>(data(returned_[i])), bytes_, memory_.local_key()};
    requests[i] = {};
    requests[i].wr_id = tag_ | returned_[i];
    requests[i].sg_list = &pieces[i];
    requests[i].num_sge = 1;
    requests[i].next = i + 1 < returned_count_ ? &requests[i + 1] : nullptr;
  }
  ibv_recv_wr* refused = nullptr;
  unsigned kept = 0;
  // There is room for all of them: a refusal is an error of the device, and may pass.
  if (ibv_post_srq_recv(queue_, requests, &refused) != 0) {
    for (const ibv_recv_wr* request = refused; request != nullptr && kept + 1 < batch;
         request = request->next)
      returned_[kept++] = static_cast<uint32_t>(request->wr_id);
  }
  returned_count_ = kept;
}

}  // namespace lintel
