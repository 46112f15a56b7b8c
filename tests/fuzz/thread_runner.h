// Executes the steps of a thread of an endpoint. Set-up path.
#pragma once

#include "fuzz/event_taker.h"
#include "fuzz/list_calls.h"
#include "fuzz/message_calls.h"

namespace lintel::fuzz {

class ThreadRunner {
 public:
  ThreadRunner(const Phase& phase, int thread, EventTaker& events, MessageCalls& messages,
               ListCalls& lists);

  void run();

 private:
  void take(const Step& step);
  void count(const Step& step);
  void reuse_counter(const Step& step);

  const Phase& phase_;
  int thread_;
  EventTaker& events_;
  MessageCalls& messages_;
  ListCalls& lists_;
  ptl_size_t probes_;  // expected count of the probes of reuse_counter()
};

}  // namespace lintel::fuzz
