/* supervisor.cc: signals, orphans, and the process that users see.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "spawner/supervisor.h"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace lintel::gasnet {
namespace {

constexpr int kRequests[] = {SIGINT, SIGTERM, SIGHUP};

bool is_ignored(int number) {
  struct sigaction action {};
  sigaction(number, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

/** @return 0 if there is no such process. */
pid_t parent_of(const char* process) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(
      std::fopen(("/proc/" + std::string(process) + "/stat").c_str(), "re"), std::fclose);
  char text[256] = {};
  if (!file || std::fread(text, 1, sizeof text - 1, file.get()) == 0) return 0;
  // The name of the program, which may contain parentheses, comes before the state and the parent.
  const char* const name_end = std::strrchr(text, ')');
  int parent = 0;
  return name_end && std::sscanf(name_end, ") %*c %d", &parent) == 1 ? parent : 0;
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc"), closedir);
  const pid_t own = getpid();
  while (const dirent* const entry = directory ? readdir(directory.get()) : nullptr)
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && parent_of(entry->d_name) == own)
      found.push_back(std::atoi(entry->d_name));
  return found;
}

/** Whether the end of the parent ends the job: not under nohup, and not after setsid. */
bool depends_on_parent() { return !is_ignored(SIGHUP) && getsid(0) != getpid(); }

int status_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/** Called by the outer process. @return the wait status of the inner process. */
int wait_for(pid_t inner, const AwaitedSignals& signals, pid_t parent) {
  for (;;) {
    const siginfo_t info = signals.wait();
    if (info.si_signo == SIGCHLD) {
      int status = 0;
      for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;)
        if (ended == inner) return status;
    } else if (info.si_signo == parent_ended_signal()) {
      // A thread of the parent may have ended.
      if (getppid() == parent) continue;
      std::fprintf(stderr,
                   "gasnetrun_portals4: the process that started it has ended, so the job ends; to "
                   "go on without it, use nohup or setsid\n");
      kill(inner, SIGTERM);
    } else if (info.si_code != SI_KERNEL) {
      kill(inner, info.si_signo);  // a terminal has sent it to both
    }
  }
}

}  // namespace

AwaitedSignals::AwaitedSignals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, nullptr);
  sigemptyset(&awaited_);
  sigaddset(&awaited_, SIGCHLD);
  sigaddset(&awaited_, SIGALRM);
  sigaddset(&awaited_, parent_ended_signal());
  for (const int number : kRequests)
    if (number != SIGHUP || !is_ignored(number)) sigaddset(&awaited_, number);
  sigprocmask(SIG_BLOCK, &awaited_, &before_);
}

siginfo_t AwaitedSignals::wait() const {
  siginfo_t info{};
  while (sigwaitinfo(&awaited_, &info) < 0) {
  }
  return info;
}

void AwaitedSignals::restore() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

bool Children::signal(int number) {
  if (number != number_) signalled_.clear();
  number_ = number;
  bool is_new = false;
  for (const pid_t child : children()) {
    if (!signalled_.insert(child).second) continue;
    kill(child, number);
    is_new = true;
  }
  return is_new;
}

void Children::kill_all() {
  for (;;) {
    // Each child that ends leaves its own children here.
    for (const pid_t child : children()) kill(child, SIGKILL);
    if (waitpid(-1, nullptr, 0) < 0) return;
  }
}

int run_supervised(int (*run)(const Options&, const AwaitedSignals&), const Options& options) {
  const bool depends = depends_on_parent();
  const AwaitedSignals signals;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t parent = getppid();
  const pid_t outer = getpid();
  if (depends) prctl(PR_SET_PDEATHSIG, parent_ended_signal());
  if (depends && getppid() != parent) kill(outer, parent_ended_signal());
  const pid_t inner = fork();
  if (inner < 0) {
    std::perror("gasnetrun_portals4: fork");
    return 1;
  }
  if (inner == 0) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, parent_ended_signal());
    std::exit(getppid() == outer ? run(options, signals) : 1);
  }
  const int status = wait_for(inner, signals, parent);
  if (WIFSIGNALED(status)) Children::kill_all();
  return status_of(status);
}

}  // namespace lintel::gasnet
