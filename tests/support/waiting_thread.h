// A thread of a rank that is about to wait; the test continues when the thread sleeps. Set-up path.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <thread>

#include "support/rank.h"

namespace lintel::test {

// Whether a thread of this process sleeps in the kernel; whether all threads of a process are
// stopped.
[[nodiscard]] bool is_asleep(pid_t thread);
[[nodiscard]] bool is_stopped(pid_t process);

class WaitingThread {
 public:
  explicit WaitingThread(std::function<void()> body);
  WaitingThread(const WaitingThread&) = delete;
  WaitingThread& operator=(const WaitingThread&) = delete;

  void await_sleep(Place place = Place::current()) const;
  void join() { thread_.join(); }

 private:
  std::atomic<pid_t> id_{0};
  std::thread thread_;
};

}  // namespace lintel::test
