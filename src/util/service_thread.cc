// Starting and ending threads. Set-up path.
#include "util/service_thread.h"

#include <signal.h>
#include <string.h>

#include <utility>

namespace lintel {

bool ServiceThread::start(void* (*entry)(void*), void* argument, const char* name,
                          std::string& reason) {
  sigset_t all, before;
  sigfillset(&all);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread_, nullptr, entry, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  running_ = error == 0;
  if (running_)
    pthread_setname_np(thread_, name);
  else
    reason = std::string("cannot start a thread: ") + strerror(error);
  return running_;
}

void ServiceThread::join() noexcept {
  if (std::exchange(running_, false)) pthread_join(thread_, nullptr);
}

}  // namespace lintel
