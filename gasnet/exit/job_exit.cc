/* job_exit.cc: the thread that waits for the end of the job, and how a process ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exit/job_exit.h"

#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "exit/orderly_end.h"
#include "job/futex.h"
#include "job/job.h"
#include "job/neighbourhood.h"
#include "job/thread.h"
#include "network/network.h"
#include "network/poll.h"
#include "tools/descriptors.h"
#include "tools/headers.h"
#include "trace/trace.h"

namespace lintel::gasnet {
namespace {

std::atomic<bool> g_started{false};
std::atomic<bool> g_told_others{false};
std::atomic<bool> g_is_closing{false};
/* The process is in exit() already and ends by itself. */
std::atomic<bool> g_ends_by_itself{false};
pid_t g_process_id = 0;
pthread_t g_thread;
int g_exit_code = 0;
double g_timeout_s = 5;
bool g_catches_exit = true;
bool g_syncs_files = false;

constexpr uint64_t kLookAgainNs = 1'000'000;
constexpr unsigned int kLooksAtThreads = 20;
constexpr double kCloseWithinS = 0.5;

void decide(uint32_t word) {
  ControlBlock& control = neighbourhood().control();
  uint32_t undecided = 0;
  control.exit_word.compare_exchange_strong(undecided, word);
  futex_wake_all(control.exit_word);
}

/** Finds processes that ended unannounced. The first process watches all others; they watch it.
 * Made by the thread of the client: an allocation by another thread makes it a heap of its own. */
class DeathWatch {
 public:
  DeathWatch() {
    const Neighbourhood& n = neighbourhood();
    for (gex_Rank_t i = 0; i < n.count(); ++i) {
      if (i == n.index() || (!n.is_first() && i != 0)) continue;
      const int descriptor =
          above_standard(static_cast<int>(syscall(SYS_pidfd_open, n.process_ids()[i], 0)));
      if (descriptor < 0) continue;
      watched_.push_back({descriptor, POLLIN, 0});
      members_.push_back(i);
    }
  }

  /** @return whether a process has ended without announcing its end. */
  bool found_dead() {
    if (watched_.empty() || ::poll(watched_.data(), watched_.size(), 0) <= 0) return false;
    for (size_t i = 0; i < watched_.size(); ++i) {
      if (watched_[i].revents == 0) continue;
      if (!neighbourhood().control().finished[members_[i]].load()) return true;
      watched_[i].fd = -watched_[i].fd - 1;  // poll() ignores it from now on
    }
    return false;
  }

 private:
  std::vector<pollfd> watched_;
  std::vector<gex_Rank_t> members_;
};

/** Waits until the code is decided. @return the word. */
uint32_t wait_for_decision(DeathWatch& deaths) {
  ControlBlock& control = neighbourhood().control();
  // Puts of other neighbourhoods arrive without a wake-up, so the first one looks from time to
  // time.
  const long interval_ms = neighbourhood().is_first() ? 100 : 1000;
  for (;;) {
    if (const uint32_t word = control.exit_word.load(std::memory_order_acquire)) return word;
    if (const uint64_t word = control.remote_exit_word.load(std::memory_order_acquire))
      decide(static_cast<uint32_t>(word));
    else if (deaths.found_dead())
      decide(kExitDecided | kExitByFailure | 1);
    else
      futex_wait(control.exit_word, 0, interval_ms);
  }
}

/** Puts the word to the neighbourhoods at distances 1, 2, 4 and so on, which do the same. */
void tell_other_neighbourhoods(uint32_t word) {
  const Neighbourhood& n = neighbourhood();
  const gex_Rank_t count = n.number_of_neighbourhoods();
  if (!n.is_first() || count == 1) return;
  static uint64_t source;
  source = word;
  ptl_md_t md{};
  md.start = &source;
  md.length = sizeof source;
  md.options = PTL_MD_EVENT_CT_ACK;
  md.eq_handle = PTL_EQ_NONE;
  ptl_handle_md_t handle;
  if (PtlCTAlloc(network().interface(), &md.ct_handle) != PTL_OK ||
      PtlMDBind(network().interface(), &md, &handle) != PTL_OK)
    return;
  const gex_Rank_t own = n.number_of(job().rank());
  ptl_size_t sent = 0;
  for (uint64_t distance = 1; distance < count; distance *= 2) {
    const gex_Rank_t rank = n.first_of(static_cast<gex_Rank_t>((own + distance) % count));
    if (PtlPut(handle, 0, sizeof source, PTL_CT_ACK_REQ, process_of(rank),
               number_of(PortalIndex::kExit), 0, 0, nullptr, 0) == PTL_OK)
      ++sent;
  }
  ptl_ct_event_t counts{};
  unsigned int which = 0;
  const auto timeout_ms = static_cast<ptl_time_t>(g_timeout_s * 500);
  PtlCTPoll(&md.ct_handle, &sent, 1, timeout_ms, &counts, &which);
}

void on_deadline(int /*signal*/) { _exit(g_exit_code); }

/** Whatever hangs from here on (a lock of stdio, the launcher) does not keep the process alive. */
void set_deadline(double seconds) {
  struct sigaction action {};
  action.sa_handler = on_deadline;
  sigaction(SIGALRM, &action, nullptr);
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  timer.it_value.tv_usec =
      static_cast<suseconds_t>((seconds - static_cast<double>(timer.it_value.tv_sec)) * 1e6);
  setitimer(ITIMER_REAL, &timer, nullptr);
}

/** Portals removes its memory in /dev/shm. Only while no thread of the client can be in a call. */
void close_portals() {
  for (unsigned int i = 0; i < kLooksAtThreads && running_threads() != 0; ++i)
    gasnett_nsleep(kLookAgainNs);
  if (running_threads() != 0) return;
  g_is_closing = true;
  PtlNIFini(network().interface());
  PtlFini();
}

[[noreturn]] void end_process(int code) {
  close_trace_files();
  std::fflush(stdout);
  std::fflush(stderr);
  if (g_syncs_files) sync();
  // A launcher may count a process that ends without it as failed; with another code than 0 it is.
  if (code == 0) PtlJobFini();
  // A signal handler may have called gasnet_exit in the middle of a call that holds a lock.
  set_deadline(std::min(g_timeout_s, kCloseWithinS));
  close_portals();
  // While a thread computes Portals stays open, and removes its names in /dev/shm now.
  std::quick_exit(code);
}

/** A client may have a handler of SIGQUIT for its own clean-up. */
void call_quit_handler() {
  struct sigaction action {};
  sigaction(SIGQUIT, nullptr, &action);
  if (!(action.sa_flags & SA_SIGINFO) && action.sa_handler != SIG_DFL &&
      action.sa_handler != SIG_IGN)
    action.sa_handler(SIGQUIT);
}

void* watch(void* deaths) {
  const uint32_t word = wait_for_decision(*static_cast<DeathWatch*>(deaths));
  g_exit_code = static_cast<int>(word & 0xff);
  neighbourhood().control().finished[neighbourhood().index()] = 1;
  set_deadline(g_timeout_s);
  tell_other_neighbourhoods(word);
  if (!(word & kExitByFailure)) end_in_order(g_timeout_s / 2);
  g_told_others = true;
  g_told_others.notify_all();
  if (g_ends_by_itself) return nullptr;
  const bool asked_here = (word >> 8 & 0xffff) == (job().rank() & 0xffff);
  if (!asked_here) call_quit_handler();
  end_process(g_exit_code);
}

/** Runs in exit() and at the end of main. */
void on_process_exit(int status, void* /*argument*/) {
  // Children of the program that end are not the process.
  if (getpid() != g_process_id) return;
  ControlBlock& control = neighbourhood().control();
  g_ends_by_itself = true;
  if (!g_catches_exit) {
    control.finished[neighbourhood().index()] = 1;
    PtlJobFini();
    return;
  }
  request_exit(status);
  retire_this_thread();
  // The thread returns when it has notified the others, or ends the process. If that takes too
  // long, the deadline ends the process.
  pthread_join(g_thread, nullptr);
  if (status == 0) PtlJobFini();
  close_portals();
}

double read_timeout() {
  const double longest = gasnett_getenv_dbl_withdefault("GASNET_EXITTIMEOUT_MAX", 5);
  const double shortest = gasnett_getenv_dbl_withdefault("GASNET_EXITTIMEOUT_MIN", 2);
  const double factor = gasnett_getenv_dbl_withdefault("GASNET_EXITTIMEOUT_FACTOR", 0.01);
  const double usual = std::min(longest, shortest + factor * job().size());
  const double asked = gasnett_getenv_dbl_withdefault("GASNET_EXITTIMEOUT", usual);
  if (asked < 0.01)
    gasnett_fatalerror_nopos("GASNET_EXITTIMEOUT=%g: give at least 0.01 seconds", asked);
  return asked;
}

}  // namespace

void start_exit_watch() {
  g_timeout_s = read_timeout();
  g_catches_exit = gasnett_getenv_yesno_withdefault("GASNET_CATCH_EXIT", 1) != 0;
  g_syncs_files = gasnett_getenv_yesno_withdefault("GASNET_FS_SYNC", 0) != 0;
  g_process_id = getpid();
  if (neighbourhood().is_first()) expose_end();
  // Never destroyed: the thread uses it until the process ends.
  static DeathWatch& deaths = *new DeathWatch;
  // Signals are for the threads of the client.
  sigset_t all;
  sigset_t previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  const int error = pthread_create(&g_thread, nullptr, watch, &deaths);
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  if (error != 0) gasnett_fatalerror_nopos("no thread can be started (error %d)", error);
  on_exit(on_process_exit, nullptr);
  g_started = true;
}

bool is_closing() { return g_is_closing; }

bool request_exit(int code, bool by_failure) {
  if (!g_started) return false;
  decide(kExitDecided | (by_failure ? kExitByFailure : 0) | (job().rank() & 0xffff) << 8 |
         (static_cast<uint32_t>(code) & 0xff));
  return true;
}

}  // namespace lintel::gasnet

using namespace lintel::gasnet;

void gasnet_exit(int exitcode) {
  if (!request_exit(exitcode)) {
    // The process is not in a job yet.
    std::fflush(stdout);
    std::fflush(stderr);
    _exit(exitcode);
  }
  if (pthread_equal(pthread_self(), g_thread)) end_process(g_exit_code);
  // The thread ends the process. In exit() it waits for this one.
  if (g_ends_by_itself) {
    g_told_others.wait(false);
    retire_this_thread();
    end_process(exitcode & 0xff);
  }
  stop_this_thread();
}
