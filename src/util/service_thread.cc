// Starting and ending threads. Set-up path.
#include "util/service_thread.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#include <utility>

namespace lintel {

bool ServiceThread::start(void* (*entry)(void*), void* argument, const char* name,
                          std::string& reason) {
  entry_ = entry;
  argument_ = argument;
  name_ = name;
  sigset_t all, before;
  sigfillset(&all);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread_, nullptr, begin, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  running_ = error == 0;
  if (!running_) reason = std::string("cannot start a thread: ") + strerror(error);
  return running_;
}

// The thread names itself: that takes one system call, from another thread three.
void* ServiceThread::begin(void* self) {
  const ServiceThread& thread = *static_cast<ServiceThread*>(self);
  prctl(PR_SET_NAME, thread.name_);
  return thread.entry_(thread.argument_);
}

void ServiceThread::join() noexcept {
  if (std::exchange(running_, false)) pthread_join(thread_, nullptr);
}

}  // namespace lintel
