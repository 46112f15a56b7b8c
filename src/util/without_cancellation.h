// A scope without cancellation points: calls of Portals are none, and a thread that is cancelled
// under a noexcept function ends the process. Not for the message path, where bare system calls do.
#pragma once

#include <pthread.h>

namespace lintel {

class WithoutCancellation {
 public:
  WithoutCancellation() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~WithoutCancellation() { pthread_setcancelstate(before_, nullptr); }
  WithoutCancellation(const WithoutCancellation&) = delete;
  WithoutCancellation& operator=(const WithoutCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace lintel
