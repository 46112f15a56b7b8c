// Transitions of a queue pair. Connection path.
#include "verbs/queue_pair.h"

#include <algorithm>
#include <cstring>

#include "util/random.h"
#include "util/text.h"

namespace lintel {

namespace {

constexpr uint8_t most_reads = 16;  // RDMA reads at once
// 0.54 s, seven times: after that the reliability layer goes on, until the peer was silent for
// PTL_PEER_TIMEOUT_MS. Shorter ones repeat what only took long: a software device, or an
// emulated one, may need 100 ms for what is queued.
constexpr uint8_t ack_timeout = 17;
constexpr uint8_t retries = 7;
// 0.13 s, seven times, where another port takes over.
constexpr uint8_t ack_timeout_of_several = 15;
constexpr uint8_t retries_of_several = 6;
// Requests to a peer that does not post receives are repeated without limit; the reliability layer
// finds out whether it still lives.
constexpr uint8_t receiver_retries = 7;
constexpr uint8_t receiver_not_ready_timer = 5;  // 80 us
constexpr uint32_t packet_number_mask = 0xffffff;

std::string failure(const char* what, int error) {
  return text_of(what, ": ", std::strerror(error));
}

}  // namespace

std::unique_ptr<QueuePair> QueuePair::create(VerbsDevice& device, ibv_cq* completions,
                                             ibv_srq* receives, const QueuePairSizes& sizes,
                                             std::string& reason) {
  std::unique_ptr<QueuePair> result(new QueuePair(device));
  ibv_qp_init_attr wanted{};
  wanted.send_cq = completions;
  wanted.recv_cq = completions;
  wanted.srq = receives;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = sizes.send_requests;
  wanted.cap.max_send_sge = sizes.pieces;
  wanted.cap.max_inline_data = sizes.inline_bytes;
  result->pair_ = ibv_create_qp(device.pd, &wanted);
  if (result->pair_ == nullptr && errno == EINVAL) {
    // Fewer bytes inline than we would like.
    wanted.cap.max_inline_data = 0;
    result->pair_ = ibv_create_qp(device.pd, &wanted);
  }
  if (result->pair_ == nullptr)
    return explained(nullptr, reason, failure("a queue pair cannot be made", errno));
  result->sizes_ = {sizes.send_requests, wanted.cap.max_inline_data, sizes.pieces};
  result->first_packet_ = static_cast<uint32_t>(random_u64()) & packet_number_mask;

  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.pkey_index = device.pkey_index;
  attributes.port_num = device.port;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  const int error =
      ibv_modify_qp(result->pair_, &attributes,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error != 0)
    return explained(nullptr, reason, failure("a queue pair cannot be initialised", error));
  return result;
}

QueuePair::~QueuePair() {
  if (pair_ != nullptr) ibv_destroy_qp(pair_);
}

QueuePairAddress QueuePair::address() const noexcept {
  QueuePairAddress address;
  address.gid = device_.gid;
  address.number = pair_->qp_num;
  address.first_packet = first_packet_;
  address.lid = device_.lid;
  address.mtu = static_cast<uint8_t>(device_.mtu);
  address.reads = static_cast<uint8_t>(
      std::clamp(device_.attributes.max_qp_rd_atom, 1, static_cast<int>(most_reads)));
  return address;
}

bool QueuePair::connect(const QueuePairAddress& peer, std::string& reason) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu =
      static_cast<ibv_mtu>(std::min<uint8_t>(static_cast<uint8_t>(device_.mtu), peer.mtu));
  attributes.dest_qp_num = peer.number;
  attributes.rq_psn = peer.first_packet;
  attributes.max_dest_rd_atomic = address().reads;
  attributes.min_rnr_timer = receiver_not_ready_timer;
  device_.fill_address(attributes.ah_attr, peer.gid, peer.lid);
  int error = ibv_modify_qp(pair_, &attributes,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0)
    return explained(false, reason, failure("a queue pair cannot be made ready to receive", error));
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = device_.is_one_of_several ? ack_timeout_of_several : ack_timeout;
  attributes.retry_cnt = device_.is_one_of_several ? retries_of_several : retries;
  attributes.rnr_retry = receiver_retries;
  attributes.sq_psn = first_packet_;
  attributes.max_rd_atomic = static_cast<uint8_t>(
      std::clamp(std::min(device_.attributes.max_qp_init_rd_atom, static_cast<int>(peer.reads)), 1,
                 static_cast<int>(most_reads)));
  error = ibv_modify_qp(pair_, &attributes,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (error != 0)
    return explained(false, reason, failure("a queue pair cannot be made ready to send", error));
  return true;
}

// A queue pair that the device has stopped already refuses nothing of interest.
void QueuePair::stop() noexcept { static_cast<void>(move_to(IBV_QPS_ERR)); }

bool QueuePair::move_to(ibv_qp_state state) noexcept {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  return ibv_modify_qp(pair_, &attributes, IBV_QP_STATE) == 0;
}

}  // namespace lintel
