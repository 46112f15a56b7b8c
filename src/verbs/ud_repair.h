// Starts a queue pair that has failed again in place: same number, same Q_Key, so that peers need
// not know. Frames that were on the way are lost like others. Connection path, the poller.
#pragma once

#include <cstdint>

#include "util/counter.h"
#include "verbs/ud_queue_pair.h"
#include "verbs/ud_receiver.h"
#include "verbs/ud_sender.h"

namespace lintel {

class UdRepair {
 public:
  UdRepair(UdQueuePair& queue_pair, UdSender& sender, UdReceiver& receiver) noexcept
      : queue_pair_(queue_pair), sender_(sender), receiver_(receiver) {}

  // Goes on with the repair, as long as the queue pair is broken. Never waits.
  void step() noexcept;
  [[nodiscard]] uint64_t count() const noexcept { return count_.get(); }

 private:
  UdQueuePair& queue_pair_;
  UdSender& sender_;
  UdReceiver& receiver_;
  bool flushing_ = false;
  uint64_t flushing_since_ns_ = 0;
  uint64_t repaired_ns_ = 0;
  SharedCounter count_;
};

}  // namespace lintel
