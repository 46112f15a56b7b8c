// Ends a process whose measurement makes no progress. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/watchdog.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "ptl_perf/errors.h"

namespace lintel::perf {
namespace {

// Written before the alarm is set, read by the handler: only write() and _exit() may be called
// there.
std::array<char, 256> message;
volatile std::size_t message_length = 0;

void give_up(int) {
  if (write(STDERR_FILENO, message.data(), message_length) < 0) {
    // The output is closed; the exit code still reports it.
  }
  _exit(static_cast<int>(ExitCode::deadline));
}

}  // namespace

Watchdog::Watchdog(unsigned deadline_s) : deadline_s_(deadline_s) {
  struct sigaction action {};
  action.sa_handler = give_up;
  sigaction(SIGALRM, &action, nullptr);
  restart("starting");
}

Watchdog::~Watchdog() { alarm(0); }

void Watchdog::restart(const std::string& doing) {
  alarm(0);
  const int length = std::snprintf(
      message.data(), message.size(),
      "\nptl_perf: no progress for %u s (--deadline) in: %s. A message was lost or a peer hangs.\n",
      deadline_s_, doing.c_str());
  message_length = std::min(static_cast<std::size_t>(std::max(length, 0)), message.size() - 1);
  alarm(deadline_s_);
}

}  // namespace lintel::perf
