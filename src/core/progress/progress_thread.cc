// The progress thread: when to poll, when to watch, when to sleep. Not on the message path of a
// process whose application threads poll.
#include "core/progress/progress_thread.h"

#include <sched.h>
#include <signal.h>
#include <string.h>

#include "core/progress/physical_interface.h"
#include "core/progress/wait_heuristics.h"
#include "util/clock.h"
#include "util/config.h"
#include "util/log.h"

namespace lintel {

bool ProgressThread::start(PhysicalInterface& interface, ProgressMode mode) noexcept {
  interface_ = &interface;
  mode_ = mode;
  stop_.store(false, std::memory_order_relaxed);
  ticks_.use(config_u64(ConfigKey::progress_tick_us) * 1000,
             configured_wait_heuristics().uses(WaitHeuristic::tick_backoff));
  if (mode == ProgressMode::caller) return true;
  // Signals are the application's: none is to be handled on this thread, but faults are ours.
  sigset_t all, before;
  sigfillset(&all);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread_, nullptr, &ProgressThread::entry, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    log_message(LogLevel::error,
                "cannot start the progress thread: %s; PTL_PROGRESS=caller works without",
                strerror(error));
    return false;
  }
  running_ = true;
  pthread_setname_np(thread_, "ptl-progress");
  return true;
}

void ProgressThread::stop() noexcept {
  if (!running_) return;
  stop_.store(true, std::memory_order_release);
  poller_left();
  interface_->doorbell_->ring();
  pthread_join(thread_, nullptr);
  running_ = false;
}

void ProgressThread::poller_left() noexcept {
  handoff_.fetch_add(1, std::memory_order_release);
  futex_wake(handoff_);
}

void* ProgressThread::entry(void* self) noexcept {
  auto* thread = static_cast<ProgressThread*>(self);
  thread->bind_to_processors();
  if (thread->mode_ == ProgressMode::thread) {
    thread->run_always();
  } else {
    thread->run();
  }
  return nullptr;
}

void ProgressThread::bind_to_processors() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  const std::vector<unsigned> processors = config_cpus(ConfigKey::progress_cpus);
  if (processors.empty()) return;
  for (unsigned cpu : processors) CPU_SET(cpu, &set);
  if (const int error = pthread_setaffinity_np(pthread_self(), sizeof set, &set); error != 0)
    log_message(LogLevel::warn, "PTL_PROGRESS_CPUS=%s: %s; the progress thread stays unbound",
                config_string(ConfigKey::progress_cpus).c_str(), strerror(error));
}

void ProgressThread::run_always() noexcept {
  PhysicalInterface& interface = *interface_;
  while (!stop_.load(std::memory_order_acquire)) {
    if (interface.token().exclusively_wanted() || !interface.token().try_acquire()) {
      sched_yield();
      continue;
    }
    for (unsigned i = 0; i < 256; ++i) interface.poll_once();
    interface.token().release();
  }
}

void ProgressThread::run() noexcept {
  PhysicalInterface& interface = *interface_;
  while (!stop_.load(std::memory_order_acquire)) {
    const uint32_t handoff_seen = handoff_.load(std::memory_order_acquire);
    const uint64_t polls = interface.token().application_polls();
    const bool application_polls = polls != application_polls_seen_;
    application_polls_seen_ = polls;
    if (application_polls || interface.token().exclusively_wanted() ||
        !interface.token().try_acquire()) {
      watch_application(handoff_seen);
    } else {
      take_over();
    }
  }
}

// Application threads poll: look again after a tick, or, if the poller itself sleeps, when it leaves.
void ProgressThread::watch_application(uint32_t handoff_seen) noexcept {
  if (interface_->token().asleep()) {
    futex_wait(handoff_, handoff_seen, futex_no_timeout);
    ticks_.restart();
    return;
  }
  futex_wait(handoff_, handoff_seen, static_cast<int64_t>(ticks_.next_ns()));
}

// Nobody polls; the token is ours. Polls until there is nothing to do, then sleeps on the doorbell.
void ProgressThread::take_over() noexcept {
  PhysicalInterface& interface = *interface_;
  ticks_.restart();
  interface.disarm_transports();
  PollToken& token = interface.token();
  token.forget_passing_wants();
  ticks_.note_work(now_ns());
  while (!stop_.load(std::memory_order_relaxed) && !token.exclusively_wanted() && !token.wanted()) {
    if (interface.poll_once() != 0 || interface.transfers_.has_active()) {
      ticks_.note_work(now_ns());
    } else if (ticks_.is_idle(now_ns())) {
      break;
    }
  }
  if (token.wanted()) {
    interface.token().release();
    sched_yield();
    return;
  }
  Doorbell& doorbell = *interface.doorbell_;
  const uint32_t seen = doorbell.announce_sleep();
  const bool asleep = interface.arm_transports();
  const int64_t timeout_ns = interface.sleep_limit_ns();
  interface.token().release();
  if (asleep && !stop_.load(std::memory_order_acquire)) {
    interface.poll_counters.sleeps.increment();
    doorbell.sleep(seen, timeout_ns);
    interface.poll_counters.wakeups.increment();
  }
}

}  // namespace lintel
