// The end of the operations that an endpoint has started in a phase. Set-up path.
#pragma once

#include <functional>
#include <string>

#include "fuzz/descriptors.h"
#include "fuzz/event_taker.h"

namespace lintel::fuzz {

class Completion {
 public:
  Completion(const Phase& phase, const Descriptors& descriptors, EventTaker& events)
      : phase_(phase), descriptors_(descriptors), events_(events) {}

  // All operations end (spec 3.13.3); then nothing holds the descriptors any more.
  void finish_operations();
  // What was sent before has been dealt with when a message behind it has.
  void fence();

 private:
  // What of the own operations has not ended; empty: all have.
  [[nodiscard]] std::string unfinished();
  void finish_triggers();
  // Until `missing` returns nothing.
  void wait_until(const char* what, const std::function<std::string()>& missing);

  const Phase& phase_;
  const Descriptors& descriptors_;
  EventTaker& events_;
};

}  // namespace lintel::fuzz
