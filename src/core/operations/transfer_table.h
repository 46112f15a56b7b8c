// Messages at their target that are longer than one message of the transport: by cookie, with a
// list of those that the poller has to advance. Message path.
#pragma once

#include <cstdint>

#include "core/operations/operation.h"
#include "core/operations/peer.h"
#include "transport/polling.h"

namespace lintel {

class TransferTable {
 public:
  // `work_due` is set when a transfer is to be advanced or awaits release.
  explicit TransferTable(PollFlag& work_due) noexcept : work_due_(work_due) {}
  // Set-up path. False: no address space.
  [[nodiscard]] bool open() noexcept;

  // Returns nullptr if none is free, or if the peer has its share.
  [[nodiscard]] Transfer* allocate(const Peer& peer) noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] bool is_full() const noexcept { return in_use_ == transfers_.capacity(); }
  void release(Transfer& transfer) noexcept LINTEL_REQUIRES(polling);
  // Returns nullptr if the cookie names no object in use.
  [[nodiscard]] Transfer* find(uint32_t cookie) const noexcept {
    return find_by_cookie(transfers_, cookie);
  }
  [[nodiscard]] uint32_t cookie_of(const Transfer& transfer) const noexcept {
    return cookie_in(transfers_, transfer);
  }
  // Calls action(Transfer&) for all that go on.
  template <typename Action>
  void for_each(Action&& action) noexcept LINTEL_REQUIRES(polling) {
    for_each_live(transfers_, action);
  }

  // Active transfers are advanced in the next round of polling. Takes the chain of all, through
  // `next_active`.
  void activate(Transfer& transfer) noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] Transfer* take_active() noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] bool has_active() const noexcept LINTEL_REQUIRES(polling) {
    return active_ != nullptr;
  }

  // The transport refers to memory of an entry until the transfer's release mark is reached.
  void await_release(Transfer& transfer) noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] bool awaits_release() const noexcept LINTEL_REQUIRES(polling) {
    return unreleased_ != nullptr;
  }
  // The next one, of each peer in the order sent, whose memory is free; nullptr: none.
  [[nodiscard]] Transfer* take_released() noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] bool anything_released() const noexcept LINTEL_REQUIRES(polling);

  // Drops all of a logical interface that goes, without events.
  void drop_all_of(const NetworkInterface& interface) noexcept LINTEL_REQUIRES(polling);

 private:
  PollFlag& work_due_;
  Arena<Transfer> transfers_;
  uint32_t in_use_ = 0;
  Transfer* active_ = nullptr;
  Peer* unreleased_ = nullptr;  // peers with transfers in Peer::unreleased_head
};

}  // namespace lintel
