// Stands in for src/shm/receive_lanes.h in the model of joint copies: one lane, which is active.
#pragma once

#include "shm/shm_link.h"

namespace lintel {

class ReceiveLanes {
 public:
  enum class State : uint8_t { unused, active, refused };
  explicit ReceiveLanes(ShmLink& link) noexcept : link_(link) {}
  [[nodiscard]] uint32_t count() const noexcept { return 1; }
  [[nodiscard]] State state(uint32_t) const noexcept { return State::active; }
  [[nodiscard]] ShmLink* link(uint32_t) const noexcept { return &link_; }

 private:
  ShmLink& link_;
};

}  // namespace lintel
