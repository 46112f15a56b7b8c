/* fork_spawner.cc: assigns numbers to the processes, starts them and waits for them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "spawner/fork_spawner.h"

#include <fcntl.h>
#include <portals4.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "spawner/job_memory.h"
#include "spawner/pid_blocks.h"
#include "spawner/progress_watch.h"

namespace lintel::gasnet {
namespace {

/** Opens and closes an interface, which a process can do only once. @return whether it opened. */
bool open_once(ptl_nid_t& nid) {
  ptl_handle_ni_t interface;
  ptl_process_t id;
  if (PtlInit() != PTL_OK) return false;
  const bool found = PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY,
                               nullptr, nullptr, &interface) == PTL_OK &&
                     PtlGetPhysId(interface, &id) == PTL_OK;
  if (found) {
    nid = id.phys.nid;
    PtlNIFini(interface);
  }
  PtlFini();
  return found;
}

/** The nid of this host, found by a child process that opens an interface. That also removes what
 * killed processes have left in /dev/shm. @return false if it does not open. */
bool find_nid(ptl_nid_t& nid) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  const pid_t child = fork();
  if (child == 0) {
    const bool found = open_once(nid) && write(ends[1], &nid, sizeof nid) == sizeof nid;
    std::exit(found ? 0 : 1);
  }
  close(ends[1]);
  const bool found = child > 0 && read(ends[0], &nid, sizeof nid) == sizeof nid;
  close(ends[0]);
  while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return found;
}

pid_t start_process(const Options& options, unsigned int rank, pid_t parent,
                    const AwaitedSignals& signals) {
  const pid_t child = fork();
  if (child != 0) return child;
  signals.restore();
  // When this process ends, the job ends.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  setenv("PTL_MY_RID", std::to_string(rank).c_str(), 1);
  if (rank != 0) {
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    if (nothing != STDIN_FILENO) close(nothing);
  }
  std::vector<char*> arguments;
  for (const std::string& argument : options.command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "gasnetrun_portals4: %s cannot be started: %s\n", arguments[0],
               std::strerror(errno));
  _exit(127);
}

/** Waits for the ranks. A job that has failed ends by itself, but the wait has a limit. Then all
 * that the ranks have started ends, too. */
int wait_for(std::vector<pid_t>& ranks, JobMemory& memory, ProgressWatch& watch,
             const AwaitedSignals& signals) {
  constexpr unsigned int kPatience_s = 5;
  constexpr int kExpired = 124; /* same status as of timeout(1) */
  Children children;
  int result = 0;
  int end_signal = 0; /* signal for each child, also for those that are adopted later */
  bool has_alarm = false;
  bool has_children = true;
  if (watch.is_on()) alarm(1);
  for (size_t left = ranks.size(); left > 0 || (result != 0 && has_children);) {
    const int number = signals.wait().si_signo;
    if (number == parent_ended_signal()) {
      Children::kill_all();
      return 128 + SIGKILL;
    }
    if (number == SIGALRM && result == 0) {
      if (watch.has_expired(ranks)) {
        std::fprintf(
            stderr,
            "gasnetrun_portals4: all %zu processes that are left have only waited for each "
            "other for the %u s of -limit, so the job ends\n",
            left, watch.limit_s());
        result = kExpired;
        end_signal = SIGTERM;
      }
    } else if (number == SIGALRM) {
      end_signal = end_signal == 0 ? SIGTERM : SIGKILL;
    } else if (number != SIGCHLD) {
      end_signal = number;
      children = Children();
      if (result == 0) result = 128 + number;
    }
    int status = 0;
    pid_t ended = 0;
    int found = 0; /* status of the ranks that have ended since the last look */
    while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
      const auto rank = std::find(ranks.begin(), ranks.end(), ended);
      if (rank == ranks.end()) continue;
      *rank = 0;
      --left;
      memory.note_end();
      // A rank that a signal has ended is why the others end.
      if (WIFSIGNALED(status))
        found = 128 + WTERMSIG(status);
      else if (found == 0)
        found = WEXITSTATUS(status);
    }
    if (result == 0) result = found;
    has_children = ended == 0;
    // Processes that a failed job has left are ended.
    if (left == 0 && result != 0 && end_signal == 0) end_signal = SIGTERM;
    if (end_signal != 0) children.signal(end_signal);
    if (number == SIGALRM)
      alarm(1);
    else if (result != 0 && !std::exchange(has_alarm, true))
      alarm(kPatience_s);
  }
  alarm(0);
  return result;
}

}  // namespace

int run_by_fork(const Options& options, const AwaitedSignals& signals) {
  ptl_nid_t nid = 0;
  if (!find_nid(nid)) {
    std::fprintf(stderr, "gasnetrun_portals4: no Portals interface opens; see ptl_info\n");
    return 1;
  }
  const std::vector<unsigned int> pids = take_pids(options.processes);
  if (pids.size() < options.processes) {
    std::fprintf(stderr,
                 "gasnetrun_portals4: -n %u: the spawner fork has Portals pids for %zu processes "
                 "left; use -spawner=mpi\n",
                 options.processes, pids.size());
    return 1;
  }
  std::string nid_map;
  std::string pid_map;
  for (const unsigned int pid : pids) {
    nid_map.append(nid_map.empty() ? "" : ":").append(std::to_string(nid));
    pid_map.append(pid_map.empty() ? "" : ":").append(std::to_string(pid));
  }
  if (options.verbosity > 0)
    std::fprintf(stderr,
                 "gasnetrun_portals4: %u processes of this host, PTL_NIDMAP=%s PTL_PIDMAP=%s\n",
                 options.processes, nid_map.c_str(), pid_map.c_str());
  if (options.only_print) return 0;

  setenv("PTL_NIDMAP", nid_map.c_str(), 1);
  setenv("PTL_PIDMAP", pid_map.c_str(), 1);
  JobMemory memory;
  memory.provide();
  ProgressWatch watch;
  if (!watch.start(options.processes, options.limit_s)) {
    std::fprintf(stderr, "gasnetrun_portals4: no memory for -limit: %s\n", std::strerror(errno));
    return 1;
  }
  std::vector<pid_t> ranks;
  const pid_t own = getpid();
  for (unsigned int rank = 0; rank < options.processes; ++rank) {
    ranks.push_back(start_process(options, rank, own, signals));
    if (ranks.back() > 0) continue;
    std::fprintf(stderr, "gasnetrun_portals4: no more processes can be started: %s\n",
                 std::strerror(errno));
    Children::kill_all();
    return 1;
  }
  const int result = wait_for(ranks, memory, watch, signals);
  if (result != 0) find_nid(nid);
  return result;
}

}  // namespace lintel::gasnet
