// Making the queue pair, and its transitions. Set-up and connection path.
#include "verbs/ud_queue_pair.h"

#include <cerrno>
#include <utility>

#include "util/random.h"
#include "util/text.h"

namespace lintel {

namespace {

constexpr uint32_t wanted_inline_bytes = 188;  // four units of 64 bytes in the queue of mlx5

}  // namespace

bool UdQueuePair::open(uint32_t receive_depth, std::string& reason) {
  sends_ = ibv_create_cq(device_.context, send_depth, nullptr, nullptr, 0);
  receives_ = ibv_create_cq(device_.context, static_cast<int>(receive_depth), nullptr,
                            device_.events.channel(), 0);
  if (sends_ == nullptr || receives_ == nullptr)
    return explained(false, reason, verbs_failure(device_.name(), "ibv_create_cq", errno));
  ibv_qp_init_attr attributes{};
  attributes.send_cq = sends_;
  attributes.recv_cq = receives_;
  attributes.qp_type = IBV_QPT_UD;
  attributes.cap = {send_depth, receive_depth, most_elements, 1, wanted_inline_bytes};
  pair_ = ibv_create_qp(device_.pd, &attributes);
  if (pair_ == nullptr && (errno == EINVAL || errno == ENOTSUP)) {
    attributes.cap = {send_depth, receive_depth, most_elements, 1, 0};
    pair_ = ibv_create_qp(device_.pd, &attributes);
  }
  if (pair_ == nullptr)
    return explained(false, reason,
                     verbs_failure(device_.name(), "ibv_create_qp for datagrams", errno));
  inline_bytes_ = attributes.cap.max_inline_data;
  do {
    q_key_ = static_cast<uint32_t>(random_u64()) >> 1;
  } while (q_key_ == 0);
  return true;
}

void UdQueuePair::close() noexcept {
  if (pair_ != nullptr) ibv_destroy_qp(std::exchange(pair_, nullptr));
  // A queue whose events have not been taken cannot be destroyed.
  if (receives_ != nullptr) device_.events.drain();
  for (ibv_cq** queue : {&receives_, &sends_})
    if (*queue != nullptr) ibv_destroy_cq(std::exchange(*queue, nullptr));
}

int UdQueuePair::move_to(ibv_qp_state state, int further_attributes) noexcept {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  attributes.pkey_index = device_.pkey_index;
  attributes.port_num = device_.port;
  attributes.qkey = q_key_;
  return ibv_modify_qp(pair_, &attributes, IBV_QP_STATE | further_attributes);
}

bool UdQueuePair::start(std::string& reason) noexcept {
  const char* step = "ibv_modify_qp to INIT";
  int error = move_to(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  if (error == 0) {
    step = "ibv_modify_qp to RTR";
    error = move_to(IBV_QPS_RTR, 0);
  }
  if (error == 0) {
    step = "ibv_modify_qp to RTS";
    error = move_to(IBV_QPS_RTS, IBV_QP_SQ_PSN);
  }
  if (error == 0) return true;
  try {
    reason = verbs_failure(device_.name(), step, error);
  } catch (...) {
    reason.clear();
  }
  return false;
}

}  // namespace lintel
