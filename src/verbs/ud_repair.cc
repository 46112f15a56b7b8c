// A queue pair that has failed is made anew in place: same number, same Q_Key, so that peers need not know.
// Frames that were on the way are lost like others. Connection path, the poller.
//
// First every work request has to come back from the device: those that were posted to receive are counted,
// those to send end in the order of posting. A device that keeps some is not waited for longer than
// longest_flush_ns: completions carry the epoch, so that late ones mean nothing.
#include <mutex>

#include "util/clock.h"
#include "util/log.h"
#include "verbs/ud_link.h"

namespace lintel {

void UdLink::repair() noexcept {
  const uint64_t now = now_ns();
  if (!flushing_) {
    if (now - repaired_ns_ < between_repairs_ns) return;
    const std::lock_guard guard(send_lock_);
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    ibv_modify_qp(queue_pair_, &attributes, IBV_QP_STATE);
    sending_stopped_ = true;
    flushing_ = true;
    flushing_since_ns_ = now;
    return;
  }
  const std::lock_guard guard(send_lock_);
  reap_sends();
  const bool all_back = to_post_.size() == receive_slots_ && completed_ == posted_;
  if (!all_back && now - flushing_since_ns_ < longest_flush_ns) return;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RESET;
  if (ibv_modify_qp(queue_pair_, &attributes, IBV_QP_STATE) != 0) {
    flushing_since_ns_ = now;
    return;
  }
  reap_sends();
  completed_ = posted_;
  last_signalled_ = posted_;
  ++epoch_;
  has_early_ = false;
  to_post_.clear();
  for (uint32_t i = 0; i < receive_slots_; ++i) to_post_.push_back(i);
  flushing_ = false;
  repaired_ns_ = now;
  std::string reason;
  if (!start_queue_pair(reason)) {
    static std::atomic<bool> said{false};
    log_once(said, LogLevel::warn, "verbs: %s; trying again", reason.c_str());
    return;
  }
  broken_.store(false, std::memory_order_relaxed);
  sending_stopped_ = false;
  repairs_.fetch_add(1, std::memory_order_relaxed);
  log_message(LogLevel::info,
              "verbs: the queue pair for datagrams of %s had failed and works again",
              device_->name().c_str());
}

}  // namespace lintel
