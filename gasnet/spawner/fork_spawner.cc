/* fork_spawner.cc: assigns numbers to the processes, starts them and waits for them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "spawner/fork_spawner.h"

#include <fcntl.h>
#include <portals4.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "spawner/job_memory.h"

namespace lintel::gasnet {
namespace {

/* Portals pids below 1024 may be chosen freely. */
constexpr unsigned int kFirstPid = 8;
constexpr unsigned int kLastPid = 1023;
constexpr unsigned int kBlock = 8;

volatile sig_atomic_t g_asked_to_end = 0;
void on_end(int signal) { g_asked_to_end = signal; }

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

/** Reserves a block of Portals pids until this process ends, by the name of an abstract socket. */
bool take_block(unsigned int first) {
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int length =
      std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "gasnetrun-pids-%u", first);
  const auto bytes =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
  if (bind(descriptor, reinterpret_cast<sockaddr*>(&address), bytes) == 0) return true;
  close(descriptor);
  return false;
}

/** Portals pids that no other gasnetrun_portals4 of this host uses. */
std::vector<unsigned int> take_pids(unsigned int count) {
  std::vector<unsigned int> pids;
  for (unsigned int first = kFirstPid; first <= kLastPid && pids.size() < count; first += kBlock) {
    if (!take_block(first)) continue;
    for (unsigned int pid = first; pid < first + kBlock && pids.size() < count; ++pid)
      pids.push_back(pid);
  }
  return pids;
}

pid_t start_process(const Options& options, unsigned int rank, pid_t parent) {
  const pid_t child = fork();
  if (child != 0) return child;
  // When this process ends, the job ends.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  setenv("PTL_MY_RID", std::to_string(rank).c_str(), 1);
  if (rank != 0) {
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    close(nothing);
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

void signal_all(const std::vector<pid_t>& children, int number) {
  for (const pid_t child : children)
    if (child > 0) kill(child, number);
}

/** Waits for the children. A job that has failed ends by itself, but the wait has a limit. */
int wait_for(std::vector<pid_t>& children, JobMemory& memory) {
  constexpr unsigned int kPatience_s = 5;
  int result = 0;
  bool hurries = false;
  bool kills = false;
  for (size_t left = children.size(); left > 0;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended < 0) {
      if (errno != EINTR) break;
      if (g_asked_to_end == SIGALRM) {
        signal_all(children, kills ? SIGKILL : SIGTERM);
        kills = true;
        alarm(1);
      } else if (g_asked_to_end != 0) {
        signal_all(children, g_asked_to_end);
        if (result == 0) result = 128 + g_asked_to_end;
        alarm(kPatience_s);
      }
      g_asked_to_end = 0;
      continue;
    }
    memory.note_end();
    for (pid_t& child : children) {
      if (child != ended) continue;
      child = 0;
      --left;
    }
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (result == 0) result = code;
    if (code != 0 && !hurries) {
      hurries = true;
      alarm(kPatience_s);
    }
  }
  return result;
}

}  // namespace

int run_by_fork(const Options& options) {
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
  struct sigaction action {};
  action.sa_handler = on_end;
  for (const int number : {SIGALRM, SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
  std::vector<pid_t> children;
  const pid_t own = getpid();
  for (unsigned int rank = 0; rank < options.processes; ++rank) {
    children.push_back(start_process(options, rank, own));
    if (children.back() > 0) continue;
    std::fprintf(stderr, "gasnetrun_portals4: no more processes can be started: %s\n",
                 std::strerror(errno));
    children.pop_back();
    signal_all(children, SIGKILL);
    wait_for(children, memory);
    return 1;
  }
  const int result = wait_for(children, memory);
  if (result != 0) find_nid(nid);
  return result;
}

}  // namespace lintel::gasnet
