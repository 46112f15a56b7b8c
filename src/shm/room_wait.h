// Sleeping for room: asks the consumers of full lanes to ring the doorbell when they have some.
// Called before and after the poller sleeps; the poll token held.
#pragma once

#include "shm/shm_links.h"
#include "util/doorbell.h"

namespace lintel {

class RoomWait {
 public:
  RoomWait(const ShmLinks& links, Doorbell& own) noexcept : links_(links), own_(own) {}

  // False: room has appeared already.
  [[nodiscard]] bool arm() noexcept {
    for_each_blocked([this](LaneSender& sender) {
      sender.ask_to_be_woken(true);
      armed_ = true;
    });
    if (!armed_) return true;  // the senders wait for something else
    own_.fences.heavy();
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
  Doorbell& own_;
  bool armed_ = false;
};

}  // namespace lintel
