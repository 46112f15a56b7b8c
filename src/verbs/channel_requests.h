// Requests of other threads to the poller about queue pairs: to make one, to stop one that failed,
// to stop all because the device has lost a queue that they share, or because the port is down.
#pragma once

#include <atomic>
#include <cstdint>

#include <infiniband/verbs.h>

#include "util/counter.h"
#include "util/doorbell.h"
#include "verbs/device.h"
#include "verbs/verbs_link.h"

namespace lintel {

class ChannelRequests final : public AsyncEventSink {
 public:
  static constexpr uint32_t never = UINT32_MAX;  // a value of VerbsLink::messages_until_request
  struct Broken {
    uint32_t queue_pair = 0;  // number; 0: none
    bool shared_queue = false;
    bool port = false;
  };

  // Set-up path. `allowed`: there may be queue pairs.
  explicit ChannelRequests(bool allowed) noexcept : allowed_(allowed) {}
  void set_doorbell(Doorbell& doorbell) noexcept {
    doorbell_.store(&doorbell, std::memory_order_release);
  }
  // Events of these queues concern all queue pairs, and so does the end of `port`; 0: that does
  // not.
  void watch(const ibv_cq* completions, const ibv_srq* receives, uint8_t port) noexcept {
    completions_ = completions;
    receives_ = receives;
    port_ = port;
  }

  // Any thread. Message path. Requests a queue pair for the link, if there may be one.
  void request_channel(VerbsLink& link) noexcept LINTEL_REQUIRES(link.lock);
  // The same for queue pairs by further ports.
  void request_rails(VerbsLink& link) noexcept LINTEL_REQUIRES(link.lock);
  // Requests the end of the queue pair. Nothing is sent until the poller has stopped it.
  void ask_to_stop(VerbsLink& link, const char* why) noexcept LINTEL_REQUIRES(link.lock);
  // Called by another thread.
  void on_async_event(const ibv_async_event& event) noexcept override;

  // The poller.
  [[nodiscard]] bool is_pending(std::memory_order order) const noexcept {
    return pending_.load(order);
  }
  // Called before the links are searched for requests.
  [[nodiscard]] Broken take() noexcept;

  [[nodiscard]] uint64_t events() const noexcept { return events_.get(); }

 private:
  void wake_poller() noexcept;

  const bool allowed_;
  std::atomic<Doorbell*> doorbell_{nullptr};
  const ibv_cq* completions_ = nullptr;
  const ibv_srq* receives_ = nullptr;
  uint8_t port_ = 0;
  std::atomic<bool> pending_{false};
  std::atomic<uint32_t> broken_number_{0};
  std::atomic<bool> queue_lost_{false};
  std::atomic<bool> port_lost_{false};
  SharedCounter events_;
};

}  // namespace lintel
