/* supervisor.h: no process of a job outlives it, whichever of them is killed. Set-up path.
 *
 * gasnetrun_portals4 consists of two processes: the one that users see and kill, and below it the
 * one that starts the ranks. If either is killed, the other ends all that is below. Both adopt what
 * lies deeper once its parent has ended (PR_SET_CHILD_SUBREAPER): programs that a wrapper, such as
 * `sh -c`, has started for a rank.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_SPAWNER_SUPERVISOR_H
#define LINTEL_GASNET_SPAWNER_SUPERVISOR_H

#include <sys/types.h>

#include <csignal>
#include <set>

#include "spawner/options.h"

namespace lintel::gasnet {

/** Sent by the kernel when the parent, or the thread of it that started this process, has ended. */
inline int parent_ended_signal() { return SIGRTMIN; }

/** Blocks signals and waits for them. */
class AwaitedSignals {
 public:
  /** SIGCHLD, SIGALRM, the requests to end, and parent_ended_signal(). SIGHUP stays ignored if it
   * is (nohup). */
  AwaitedSignals();
  siginfo_t wait() const;
  /** Called by a child before it starts a program. */
  void restore() const;

 private:
  sigset_t awaited_;
  sigset_t before_;
};

/** The children of this process, with those that it has adopted. */
class Children {
 public:
  /** Once for each child. @return whether there was one that had not got this signal. */
  bool signal(int number);
  /** Kills all that are below this process, and waits for their end. */
  static void kill_all();

 private:
  int number_ = 0;
  std::set<pid_t> signalled_;
};

/** Calls `run` in a process of its own, passes on signals that are sent to this process, and ends
 * the job when the process that has started this one ends. That does not apply under nohup and
 * setsid. @return the exit status. */
int run_supervised(int (*run)(const Options&, const AwaitedSignals&), const Options& options);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_SPAWNER_SUPERVISOR_H
