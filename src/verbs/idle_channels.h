// Stops queue pairs that are not used: after a time, or when another peer needs one. The poller.
#pragma once

#include <cstdint>

#include "verbs/channels.h"

namespace lintel {

class IdleChannels {
 public:
  // After `idle_ns` without use; 0: never.
  IdleChannels(Channels& channels, uint64_t idle_ns) noexcept
      : channels_(channels), idle_ns_(idle_ns) {}

  // Every so often, also without messages.
  void look() noexcept;
  // For another peer, while there are as many as there may be. False: all are in use.
  [[nodiscard]] bool stop_longest_idle() noexcept;

 private:
  Channels& channels_;
  const uint64_t idle_ns_;
  uint64_t next_look_ns_ = 0;
};

}  // namespace lintel
