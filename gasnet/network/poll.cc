/* poll.cc: progress, and how long to spin. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "network/poll.h"

#include <portals4_lintel.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>

#include "job/job.h"
#include "job/neighbourhood.h"
#include "job/progress_record.h"
#include "job/thread.h"
#include "network/network.h"
#include "tools/headers.h"

namespace lintel::gasnet {
namespace {

constexpr unsigned int kMaximum = 8;
constexpr unsigned int kMostArrivalCounters = 4;
constexpr ptl_time_t kLongestSleepMs = 1;
constexpr unsigned int kQuickLooks = 40;
constexpr unsigned int kLooksPerPause = 4; /* a pause takes longer than a look */
/* Another thread may be the one that polls Portals, and may be waiting for a processor. */
constexpr unsigned int kLooksForPoll = 4;
constexpr unsigned int kSpinsBeforeYield = 4096;
constexpr unsigned int kSpinsBetweenYields = 1024;
PollFunction g_functions[kMaximum];
unsigned int g_count = 0;
QuickLook g_quick_look = nullptr;
QuietFunction g_quiet_functions[kMaximum];
unsigned int g_quiet_count = 0;
ptl_handle_ct_t g_arrival_counters[kMostArrivalCounters];
unsigned int g_arrival_count = 0;
std::atomic<bool> g_stopped{false};
std::atomic<int> g_wait_mode{GASNET_WAIT_SPIN};

/** Whether the job has more processes than processors. A process that spins delays others then. */
bool is_crowded() {
  static const bool crowded = [] {
    if (!job().joined()) return false;
    const bool is_known = job().host_count() == 1 && job().processors() > 0;
    const uint32_t processors =
        is_known ? job().processors() : static_cast<uint32_t>(gasnett_cpu_count());
    return job().ranks_of_host().size() > processors;
  }();
  return crowded;
}

ptl_sr_value_t status(ptl_sr_index_t which) {
  ptl_sr_value_t value = 0;
  check(PtlNIStatus(network().interface(), which, &value), "PtlNIStatus");
  return value;
}

/** Progress of Portals since the last look of this thread. */
class PortalsProgress {
 public:
  void look() {
    const ptl_sr_value_t work = status(PTL_SR_LINTEL_POLLS_WITH_WORK);
    const ptl_sr_value_t polls = status(PTL_SR_LINTEL_POLLS);
    has_worked_ = work != work_seen_;
    has_polled_ = polls != polls_seen_;
    work_seen_ = work;
    polls_seen_ = polls;
  }
  bool has_worked() const { return has_worked_; }
  bool has_polled() const { return has_polled_; }

 private:
  ptl_sr_value_t work_seen_ = 0;
  ptl_sr_value_t polls_seen_ = 0;
  bool has_worked_ = false;
  bool has_polled_ = false;
};
LINTEL_GASNET_PER_THREAD PortalsProgress t_progress;

/** To be called after a poll that did nothing here. Messages may have triggered operations of
 * Portals. More messages may be waiting, since not every check of a queue polls. A process that
 * yields now gets its processor back only after all others have run.
 * @return false once a poll of Portals found nothing. */
bool has_portals_work() {
  static LINTEL_GASNET_PER_THREAD unsigned int looks = 0;
  t_progress.look();
  const bool is_idle =
      !t_progress.has_worked() && (t_progress.has_polled() || ++looks >= kLooksForPoll);
  if (is_idle) looks = 0;
  return !is_idle;
}

/** The counts that end a wait: some that the caller awaits, and new messages for poll(). */
class AwaitedCounts {
 public:
  AwaitedCounts(const AwaitedCount* awaited, unsigned int size) : size_(g_arrival_count + size) {
    for (unsigned int i = 0; i < g_arrival_count; ++i) {
      counters_[i] = g_arrival_counters[i];
      thresholds_[i] = t_arrivals_seen[i] + 1;
    }
    for (unsigned int i = 0; i < size; ++i) {
      counters_[g_arrival_count + i] = awaited[i].counter;
      thresholds_[g_arrival_count + i] = awaited[i].threshold;
    }
  }
  /** Polls Portals if none is reached. @return whether one is reached. */
  bool wait(ptl_time_t timeout_ms) const {
    ptl_ct_event_t count;
    unsigned int which = 0;
    const int code = PtlCTPoll(counters_, thresholds_, size_, timeout_ms, &count, &which);
    if (code == PTL_CT_NONE_REACHED) return false;
    check(code, "PtlCTPoll");
    if (which < g_arrival_count) note_arrivals();
    return true;
  }

 private:
  void note_arrivals() const {
    for (unsigned int i = 0; i < g_arrival_count; ++i) {
      ptl_ct_event_t count;
      check(PtlCTGet(counters_[i], &count), "PtlCTGet");
      t_arrivals_seen[i] = count.success;
    }
  }
  /* Read before the last poll(): messages that arrived since then are not handled yet, and end the
   * next wait at once. */
  static LINTEL_GASNET_PER_THREAD ptl_size_t t_arrivals_seen[kMostArrivalCounters];

  ptl_handle_ct_t counters_[kMostArrivalCounters + kMostAwaited];
  ptl_size_t thresholds_[kMostArrivalCounters + kMostAwaited];
  unsigned int size_;
};
LINTEL_GASNET_PER_THREAD ptl_size_t AwaitedCounts::t_arrivals_seen[kMostArrivalCounters];

}  // namespace

void add_poll_function(PollFunction function) {
  if (g_count == kMaximum) gasnett_fatalerror("more than %u poll functions", kMaximum);
  g_functions[g_count++] = function;
}

void set_quick_look(QuickLook look) { g_quick_look = look; }

void add_quiet_function(QuietFunction function) {
  if (g_quiet_count == kMaximum) gasnett_fatalerror_nopos("more than %u rooms", kMaximum);
  g_quiet_functions[g_quiet_count++] = function;
}

bool is_quiet() {
  for (unsigned int i = 0; i < g_quiet_count; ++i)
    if (!g_quiet_functions[i]()) return false;
  return true;
}

void stop_threads_that_poll() { g_stopped.store(true, std::memory_order_relaxed); }

void stop_this_thread() {
  retire_this_thread();
  for (;;) pause();
}

void stop_if_process_ends() {
  if (g_stopped.load(std::memory_order_relaxed)) stop_this_thread();
}

unsigned int run_poll_functions() {
  stop_if_process_ends();
  unsigned int done = 0;
  for (unsigned int i = 0; i < g_count; ++i) done += g_functions[i]();
  if (done != 0) note_progress();
  return done;
}

unsigned int poll() {
  unsigned int done = run_poll_functions();
  if (done == 0 && is_crowded() && has_portals_work()) done = 1;
  return done;
}

void wait_hint(unsigned int done) {
  static LINTEL_GASNET_PER_THREAD unsigned int idle = 0;
  if (done != 0) {
    idle = 0;
    return;
  }
  note_idle_poll();
  const int mode = g_wait_mode.load(std::memory_order_relaxed);
  ++idle;
  // A rank that shares the processor can answer only when it runs.
  if (mode == GASNET_WAIT_BLOCK || is_crowded()) {
    sched_yield();
    if (mode == GASNET_WAIT_BLOCK) gasnett_nsleep(20'000);
    return;
  }
  // If each process has a processor, a process that yields to another program loses a time slice.
  if (idle >= kSpinsBeforeYield && idle % kSpinsBetweenYields == 0) sched_yield();
  gasnett_spinloop_hint();
  for (unsigned int i = 1; g_quick_look && i <= kQuickLooks; ++i) {
    if (g_quick_look()) return;
    if (i % kLooksPerPause == 0) gasnett_spinloop_hint();
  }
}

void add_arrival_counter(ptl_handle_ct_t counter) {
  if (g_arrival_count == kMostArrivalCounters)
    gasnett_fatalerror_nopos("more than %u counters of messages", kMostArrivalCounters);
  g_arrival_counters[g_arrival_count++] = counter;
}

bool sleeps_while_waiting() { return is_crowded() && neighbourhood().count() == 1; }

bool look_for_one(const AwaitedCount* awaited, unsigned int size) {
  const AwaitedCounts counts(awaited, size);
  for (unsigned int looks = 0; looks < kLooksForPoll;) {
    t_progress.look();
    if (t_progress.has_worked()) {
      if (size == 0) return true;
      looks = 0;
    } else if (t_progress.has_polled()) {
      return false;
    } else {
      ++looks;
    }
    if (counts.wait(0)) return true;
  }
  return false;
}

void sleep_until_one(const AwaitedCount* awaited, unsigned int size) {
  note_idle_poll();
  static_cast<void>(AwaitedCounts(awaited, size).wait(kLongestSleepMs));
}

}  // namespace lintel::gasnet

using namespace lintel::gasnet;

int gasnet_AMPoll() {
  check_may_communicate("gasnet_AMPoll");
  poll();
  return GASNET_OK;
}

void gasneti_poll_or_wait() {
  check_may_communicate("GASNET_BLOCKUNTIL");
  wait_hint(poll());
}

int gasnet_set_waitmode(int wait_mode) {
  if (wait_mode < GASNET_WAIT_SPIN || wait_mode > GASNET_WAIT_SPINBLOCK) return GASNET_ERR_BAD_ARG;
  g_wait_mode.store(wait_mode, std::memory_order_relaxed);
  return GASNET_OK;
}
