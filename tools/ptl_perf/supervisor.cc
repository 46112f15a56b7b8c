// Starts the processes of a measurement and looks after them. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/supervisor.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "ptl_perf/errors.h"

namespace lintel::perf {
namespace {

void end_all(const std::vector<pid_t>& children) {
  for (const pid_t child : children) {
    if (child > 0) kill(child, SIGKILL);
  }
}

}  // namespace

int run_processes(unsigned process_count, const std::function<int(unsigned rank)>& body) {
  std::fflush(nullptr);
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  for (unsigned rank = 0; rank < process_count; ++rank) {
    const pid_t child = fork();
    if (child < 0) {
      const int error = errno;
      end_all(children);
      throw Failure(ExitCode::failed,
                    std::string("cannot start a process: ") + std::strerror(error));
    }
    if (child == 0) {
      // If the supervisor is gone, a process that waits for a dead peer would not end.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(static_cast<int>(ExitCode::peer_lost));
      std::exit(body(rank));
    }
    children.push_back(child);
  }

  int result = 0;
  for (unsigned left = process_count; left > 0;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended < 0) {
      if (errno == EINTR) continue;
      break;
    }
    unsigned rank = 0;
    while (rank < process_count && children[rank] != ended) ++rank;
    if (rank == process_count) continue;
    children[rank] = -1;
    --left;
    if (result != 0) continue;  // already ending the others

    if (WIFSIGNALED(status)) {
      // SIGPIPE: the reader of the output needs no more, as in `ptl_perf | head`.
      if (WTERMSIG(status) != SIGPIPE)
        std::fprintf(stderr, "ptl_perf: the process of rank %u was killed by signal %d (%s)\n",
                     rank, WTERMSIG(status), strsignal(WTERMSIG(status)));
      result = static_cast<int>(ExitCode::peer_lost);
    } else {
      result = WEXITSTATUS(status);
    }
    if (result != 0) end_all(children);
  }
  return result;
}

}  // namespace lintel::perf
