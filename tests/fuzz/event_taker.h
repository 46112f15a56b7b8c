// Removes events from the queues of an endpoint, and checks what each event guarantees at that
// time. Any thread. Set-up path.
#pragma once

#include <cstddef>

#include "fuzz/phase.h"

namespace lintel::fuzz {

class EventTaker {
 public:
  explicit EventTaker(const Phase& phase) : phase_(phase) {}

  // Removes up to `most` events. Holds the lock of the queue, so that its log has the order of the
  // events.
  void take_of_thread(int thread, std::size_t most = SIZE_MAX);
  // Returns the length of the log afterwards.
  std::size_t take_of_portal(int portal, std::size_t most = SIZE_MAX);

 private:
  [[nodiscard]] bool take(Queue& queue, bool polls, Taken& taken) const;
  void note_initiator_event(const Taken& taken);
  void note_target_event(int portal, const Taken& taken);

  const Phase& phase_;
};

}  // namespace lintel::fuzz
