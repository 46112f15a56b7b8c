#include "verbs/channel_requests.h"

namespace lintel {

void ChannelRequests::wake_poller() noexcept {
  pending_.store(true, std::memory_order_release);
  if (Doorbell* const doorbell = doorbell_.load(std::memory_order_acquire); doorbell != nullptr)
    doorbell->ring_if_sleeping();
}

void ChannelRequests::request_channel(VerbsLink& link) noexcept {
  if (link.wants_channel || link.channel != nullptr || !allowed_) return;
  if (link.messages_until_request != 0) {
    if (link.messages_until_request != never) --link.messages_until_request;
    return;
  }
  link.wants_channel = true;
  pending_.store(true, std::memory_order_release);
}

void ChannelRequests::request_rails(VerbsLink& link) noexcept {
  link.wants_rails = true;
  wake_poller();
}

void ChannelRequests::ask_to_stop(VerbsLink& link, const char* why) noexcept {
  if (link.path == Path::queue_pair) link.path = Path::stopping;
  link.stop_because = why;
  wake_poller();
}

// Queue pairs find out by themselves that a port went down. Where another port takes over, that
// takes too long.
void ChannelRequests::on_async_event(const ibv_async_event& event) noexcept {
  events_.increment();
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_PATH_MIG_ERR:
      broken_number_.store(event.element.qp->qp_num, std::memory_order_relaxed);
      break;
    case IBV_EVENT_CQ_ERR:
      if (event.element.cq != completions_) return;
      queue_lost_.store(true, std::memory_order_relaxed);
      break;
    case IBV_EVENT_SRQ_ERR:
      if (event.element.srq != receives_) return;
      [[fallthrough]];
    case IBV_EVENT_DEVICE_FATAL:
      queue_lost_.store(true, std::memory_order_relaxed);
      break;
    case IBV_EVENT_PORT_ERR:
      if (port_ == 0 || event.element.port_num != port_) return;
      port_lost_.store(true, std::memory_order_relaxed);
      break;
    default:
      return;
  }
  wake_poller();
}

ChannelRequests::Broken ChannelRequests::take() noexcept {
  // Acquires all that was noted before, or is_pending() stays true.
  pending_.exchange(false, std::memory_order_acquire);
  return {broken_number_.exchange(0, std::memory_order_relaxed),
          queue_lost_.exchange(false, std::memory_order_relaxed),
          port_lost_.exchange(false, std::memory_order_relaxed)};
}

}  // namespace lintel
