// A thread of a rank that is about to wait; the test continues when the thread sleeps. Set-up path.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <functional>
#include <thread>

#include "support/rank.h"

namespace lintel::test {

// Whether a thread of this process sleeps in the kernel; whether all but the calling one do;
// whether all threads of a process are stopped.
[[nodiscard]] bool is_asleep(pid_t thread);
[[nodiscard]] bool others_are_asleep();
[[nodiscard]] bool is_stopped(pid_t process);

class WaitingThread {
 public:
  explicit WaitingThread(std::function<void()> body);
  WaitingThread(const WaitingThread&) = delete;
  WaitingThread& operator=(const WaitingThread&) = delete;

  void await_sleep(Place place = Place::current()) const;
  // Its signal handler runs in this thread.
  void interrupt(int signal) { pthread_kill(thread_.native_handle(), signal); }
  void join() { thread_.join(); }

 private:
  std::atomic<pid_t> id_{0};
  std::thread thread_;
};

}  // namespace lintel::test
