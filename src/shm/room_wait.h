// Sleep until a full lane has room: requests that its consumer rings the doorbell then.
// Called before and after the poller sleeps; the poll token held.
#pragma once

#include "shm/shm_links.h"
#include "util/asymmetric_fence.h"

namespace lintel {

class RoomWait {
 public:
  explicit RoomWait(const ShmLinks& links) noexcept : links_(links) {}

  // False: room has appeared already.
  [[nodiscard]] bool arm() noexcept {
    for_each_blocked([this](LaneSender& sender) {
      sender.ask_to_be_woken(true);
      armed_ = true;
    });
    if (!armed_) return true;  // the senders wait for something else
    heavy_fence();
    bool still_full = true;
    for_each_blocked([&](LaneSender& sender) { still_full &= !sender.room_appeared(); });
    return still_full;
  }
  void disarm() noexcept {
    if (!armed_) return;
    armed_ = false;
    for_each_blocked([](LaneSender& sender) { sender.ask_to_be_woken(false); });
  }

 private:
  template <typename Action>
  void for_each_blocked(Action&& action) noexcept {
    for (ShmLink* link = links_.first(); link != nullptr; link = link->next)
      if (link->sender.blocked() && !link->failed.load(std::memory_order_relaxed))
        action(link->sender);
  }

  const ShmLinks& links_;
  bool armed_ = false;
};

}  // namespace lintel
