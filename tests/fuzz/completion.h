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

  // Waits until all operations have ended (spec 3.13.3) and releases the descriptors.
  void finish_operations();
  // When a message has been processed, all earlier ones have been, too.
  void fence();

 private:
  // Describes an operation of this endpoint that has not ended; empty: all have ended.
  [[nodiscard]] std::string unfinished();
  void finish_triggers();
  // Waits until `missing` returns an empty text.
  void wait_until(const char* what, const std::function<std::string()>& missing);

  const Phase& phase_;
  const Descriptors& descriptors_;
  EventTaker& events_;
};

}  // namespace lintel::fuzz
