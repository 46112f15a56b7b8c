// The progress thread: when to poll, when to watch, when to sleep. Not on the message path of a
// process whose application threads poll.
#include "core/progress/progress_thread.h"

#include <sched.h>
#include <string.h>

#include "core/progress/wait_heuristics.h"
#include "util/clock.h"
#include "util/config.h"
#include "util/log.h"

namespace lintel {

bool ProgressThread::start(Poller& poller, ProgressMode mode) noexcept {
  poller_ = &poller;
  mode_ = mode;
  stop_.store(false, std::memory_order_relaxed);
  ticks_.use(config_u64(ConfigKey::progress_tick_us) * 1000,
             configured_wait_heuristics().uses(WaitHeuristic::tick_backoff));
  std::string reason;
  if (mode == ProgressMode::caller ||
      thread_.start<&ProgressThread::run>(*this, "ptl-progress", reason))
    return true;
  log_message(LogLevel::error, "no progress thread: %s; PTL_PROGRESS=caller works without",
              reason.c_str());
  return false;
}

void ProgressThread::stop() noexcept {
  if (!thread_.running()) return;
  stop_.store(true, std::memory_order_release);
  poller_->token().hand_off();
  poller_->doorbell().ring();
  thread_.join();
}

void ProgressThread::run() noexcept {
  bind_to_processors();
  if (mode_ == ProgressMode::thread) {
    run_always();
  } else {
    run_when_needed();
  }
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
  PollToken& token = poller_->token();
  while (!stop_.load(std::memory_order_acquire)) {
    if (token.exclusively_wanted() || !token.try_acquire()) {
      sched_yield();
      continue;
    }
    poller_->check_peers_if_due(now_ns());
    for (unsigned i = 0; i < 256; ++i) poller_->poll_once();
    token.release();
  }
}

void ProgressThread::run_when_needed() noexcept {
  PollToken& token = poller_->token();
  while (!stop_.load(std::memory_order_acquire)) {
    const uint32_t handoffs_seen = token.handoffs();
    const uint32_t rings_seen = poller_->doorbell().rings.load(std::memory_order_acquire);
    const uint64_t polls = poller_->polls();
    const bool application_polls = polls != polls_seen_;
    polls_seen_ = polls;
    if (application_polls || token.exclusively_wanted() || !token.try_acquire()) {
      watch_application(handoffs_seen, rings_seen);
    } else {
      take_over();
    }
  }
}

// Application threads poll: checks again after a tick, after a wake-up by a peer, or, if the poller
// itself sleeps, when it leaves.
void ProgressThread::watch_application(uint32_t handoffs_seen, uint32_t rings_seen) noexcept {
  PollToken& token = poller_->token();
  if (token.asleep()) {
    token.await_handoff(handoffs_seen, futex_no_timeout);
    ticks_.restart();
    return;
  }
  // A thread that polls rarely, as by PtlCTGet, does not read the clock.
  poller_->check_peers_if_due(now_ns());
  const uint64_t tick_ns = ticks_.next_ns(!poller_->transports().take_needs_ticks());
  if (!ticks_.may_be_woken_in(tick_ns))
    token.await_handoff(handoffs_seen, static_cast<int64_t>(tick_ns));
  else if (poller_->doorbell().sleep_beside_poller(rings_seen, static_cast<int64_t>(tick_ns)))
    ticks_.restart();
}

// Nobody polls; the token is ours. Polls until there is nothing to do, then sleeps on the doorbell.
void ProgressThread::take_over() noexcept {
  PollToken& token = poller_->token();
  ticks_.restart();
  poller_->wake();
  token.forget_passing_wants();
  const uint64_t now = now_ns();
  ticks_.note_work(now);
  poller_->check_peers_if_due(now);
  while (!stop_.load(std::memory_order_relaxed) && !token.exclusively_wanted() && !token.wanted()) {
    if (poller_->poll_once() != 0 || poller_->is_ready()) {
      ticks_.note_work(now_ns());
    } else if (ticks_.is_idle(now_ns())) {
      break;
    }
  }
  polls_seen_ = poller_->polls();
  if (token.wanted()) {
    token.release();
    sched_yield();
    return;
  }
  const uint32_t announced = poller_->announce_sleep();
  const bool asleep = poller_->prepare_sleep();
  const int64_t timeout_ns = poller_->sleep_limit_ns();
  token.release();
  if (asleep && !stop_.load(std::memory_order_acquire)) poller_->sleep(announced, timeout_ns);
}

}  // namespace lintel
