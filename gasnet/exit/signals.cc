/* signals.cc: handlers of faults, of GASNET_FREEZE_SIGNAL and of GASNET_BACKTRACE_SIGNAL. Set-up
 * path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exit/signals.h"

#include <strings.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "exit/job_exit.h"
#include "network/poll.h"
#include "tools/fatal.h"
#include "tools/headers.h"

namespace lintel::gasnet {
namespace {

constexpr struct {
  int number;
  const char* name;
} kSignals[] = {{SIGABRT, "SIGABRT"}, {SIGILL, "SIGILL"},    {SIGSEGV, "SIGSEGV"},
                {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},    {SIGUSR1, "SIGUSR1"},
                {SIGUSR2, "SIGUSR2"}, {SIGHUP, "SIGHUP"},    {SIGINT, "SIGINT"},
                {SIGQUIT, "SIGQUIT"}, {SIGTERM, "SIGTERM"},  {SIGCONT, "SIGCONT"},
                {SIGTSTP, "SIGTSTP"}, {SIGPIPE, "SIGPIPE"},  {SIGPROF, "SIGPROF"},
                {SIGXCPU, "SIGXCPU"}, {SIGWINCH, "SIGWINCH"}};
constexpr int kFaults[] = {SIGABRT, SIGILL, SIGSEGV, SIGBUS, SIGFPE};

const char* signal_name(int number) {
  for (const auto& signal : kSignals)
    if (signal.number == number) return signal.name;
  return "unknown";
}

void on_fault(int number) {
  if (is_closing()) stop_this_thread();
  std::signal(number, SIG_DFL);
  // The thread may hold the lock of the heap or of a stream: nothing here takes one.
  write_message(STDERR_FILENO, "*** %scaught a fatal signal: %s(%d)\n", process_label(),
                signal_name(number), number);
  freeze_on_error();
  gasnett_print_backtrace_ifenabled(STDERR_FILENO);
  request_exit(128 + number, true);
  raise(number);
}

void on_freeze(int) { gasnett_freezeForDebuggerNow(&gasnet_frozen, "gasnet_frozen"); }
void on_backtrace(int) { gasnett_print_backtrace(STDERR_FILENO); }

/** Whether a comma list names the signal. */
bool lists(const char* list, int number) {
  if (!std::strcmp(list, "*")) return true;
  const std::string text = list;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    if (signal_number(text.substr(start, end - start).c_str()) == number) return true;
    start = end + 1;
  }
  return false;
}

void catch_named(const char* key, void (*handler)(int)) {
  const char* name = gasnett_getenv_withdefault(key, nullptr);
  if (!name || !*name) return;
  const int number = signal_number(name);
  if (number == 0) gasnett_fatalerror_nopos("%s=%s: give the name of a signal", key, name);
  std::signal(number, handler);
}

}  // namespace

int signal_number(const char* name) {
  char* end = nullptr;
  const long number = std::strtol(name, &end, 10);
  if (end != name && !*end) return number > 0 && number < NSIG ? static_cast<int>(number) : 0;
  for (const auto& signal : kSignals)
    if (!strcasecmp(name, signal.name) || !strcasecmp(name, signal.name + 3)) return signal.number;
  return 0;
}

void catch_signals() {
  const char* left_alone = gasnett_getenv_withdefault("GASNET_NO_CATCH_SIGNAL", "");
  for (const int number : kFaults) {
    if (lists(left_alone, number)) continue;
    struct sigaction previous {};
    sigaction(number, nullptr, &previous);
    // Handlers of the client stay installed.
    if (previous.sa_handler == SIG_DFL) std::signal(number, on_fault);
  }
}

void catch_requested_signals() {
  catch_named("GASNET_FREEZE_SIGNAL", on_freeze);
  catch_named("GASNET_BACKTRACE_SIGNAL", on_backtrace);
}

}  // namespace lintel::gasnet
