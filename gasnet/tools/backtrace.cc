/* backtrace.cc: writing the call stack of this process, by the first mechanism that works.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <execinfo.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tools/fatal.h"
#include "tools/headers.h"

// The program may define it. Its definition replaces this one.
__attribute__((weak)) gasnett_backtrace_type_t gasnett_backtrace_user = {nullptr, nullptr, 0};

namespace lintel::gasnet {
namespace {

struct Mechanism {
  const char* name;
  int (*write)(int fd);
};

struct Settings {
  bool enabled = false;
  bool all_threads = true;
  std::vector<Mechanism> order;
};
Settings& settings() {
  static Settings& instance = *new Settings;
  return instance;
}

/** Runs a program whose output goes to `fd`. Returns 0 if it succeeded. */
int run_program(int fd, const char* const argv[]) {
  // Lets the child attach if only ancestors may do so (Yama).
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  // fork() is not used, because it takes the locks of the heap and of streams: this thread may hold
  // them.
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child < 0) return 1;
  if (child == 0) {
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(fd, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    // The program must not load the libraries that this process was started with.
    unsetenv("LD_PRELOAD");
    execvp(argv[0], const_cast<char* const*>(argv));
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return 1;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

// The number of this process as text.
struct PidText {
  char text[16];
  PidText() { std::snprintf(text, sizeof text, "%d", static_cast<int>(getpid())); }
};

int by_gstack(int fd) {
  const PidText pid;
  const char* const argv[] = {"gstack", pid.text, nullptr};
  return run_program(fd, argv);
}

int by_pstack(int fd) {
  const PidText pid;
  const char* const argv[] = {"pstack", pid.text, nullptr};
  return run_program(fd, argv);
}

int by_gdb(int fd) {
  const PidText pid;
  const char* const argv[] = {"gdb",
                              "-nx",
                              "-batch",
                              "-ex",
                              settings().all_threads ? "thread apply all backtrace" : "backtrace",
                              "-p",
                              pid.text,
                              nullptr};
  return run_program(fd, argv);
}

int by_execinfo(int fd) {
  void* frames[64];
  const int count = backtrace(frames, 64);
  if (count <= 0) return 1;
  backtrace_symbols_fd(frames, count, fd);
  return 0;
}

constexpr Mechanism kMechanisms[] = {
    {"GDB", by_gdb}, {"GSTACK", by_gstack}, {"PSTACK", by_pstack}, {"EXECINFO", by_execinfo}};

int print_if_enabled(int fd) { return settings().enabled ? gasnett_print_backtrace(fd) : 1; }

std::vector<Mechanism> known() {
  std::vector<Mechanism> all(std::begin(kMechanisms), std::end(kMechanisms));
  if (gasnett_backtrace_user.name && gasnett_backtrace_user.fnp)
    all.push_back({gasnett_backtrace_user.name, gasnett_backtrace_user.fnp});
  return all;
}

}  // namespace
}  // namespace lintel::gasnet

using namespace lintel::gasnet;

int (*gasnett_print_backtrace_ifenabled)(int fd) = print_if_enabled;

void gasnett_backtrace_init(const char* /*argv0*/) {
  Settings& s = settings();
  s.order.clear();
  const std::vector<Mechanism> all = known();
  std::string every;
  for (const Mechanism& m : all) {
    if (!every.empty()) every += ',';
    every += m.name;
  }
  const std::string asked = gasnett_getenv_withdefault("GASNET_BACKTRACE_TYPE", every.c_str());
  for (size_t start = 0; start <= asked.size();) {
    const size_t end = std::min(asked.find(',', start), asked.size());
    const std::string name = asked.substr(start, end - start);
    for (const Mechanism& m : all)
      if (name == m.name) s.order.push_back(m);
    start = end + 1;
  }
  s.all_threads = gasnett_getenv_yesno_withdefault("GASNET_BACKTRACE_MT", 1) != 0;
  s.enabled = gasnett_getenv_yesno_withdefault("GASNET_BACKTRACE", 0) != 0;
  // The first call loads a library, which allocates.
  void* frame = nullptr;
  if (s.enabled) backtrace(&frame, 1);
}

int gasnett_print_backtrace(int fd) {
  // Only the first of several threads or nested faults prints a backtrace.
  static int running = 0;
  if (__atomic_exchange_n(&running, 1, __ATOMIC_ACQ_REL)) return 1;
  if (settings().order.empty()) settings().order = known();
  int result = 1;
  for (const Mechanism& m : settings().order) {
    write_message(fd, "%sbacktrace by %s:\n", process_label(), m.name);
    result = m.write(fd);
    if (result == 0) break;
  }
  if (result != 0) write_message(fd, "%sno mechanism could write a backtrace\n", process_label());
  __atomic_store_n(&running, 0, __ATOMIC_RELEASE);
  return result;
}
