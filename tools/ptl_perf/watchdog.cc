// Ends a process whose measurement makes no progress, or whose peer has ended. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/watchdog.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "ptl_perf/errors.h"

namespace lintel::perf {
namespace {

// Written before the alarm is set, read by the handler: only functions that are safe in signal
// handlers may be called there.
std::array<char, 256> message;
volatile std::size_t message_length = 0;
volatile std::sig_atomic_t watched_connection = -1;
volatile std::sig_atomic_t seconds_left = 0;  // used if there is a connection

constexpr char peer_ended[] = "\nptl_perf: the other process has ended\n";

void give_up(ExitCode code, const char* text, std::size_t length) {
  if (write(STDERR_FILENO, text, length) < 0) {
    // The output is closed; the exit code still reports it.
  }
  _exit(static_cast<int>(code));
}

void look(int) {
  const int saved_errno = errno;
  if (watched_connection >= 0) {
    pollfd peer{watched_connection, POLLRDHUP, 0};
    if (poll(&peer, 1, 0) == 1) give_up(ExitCode::peer_lost, peer_ended, sizeof peer_ended - 1);
    seconds_left = seconds_left - 1;
    if (seconds_left > 0) {
      alarm(1);
      errno = saved_errno;
      return;
    }
  }
  give_up(ExitCode::deadline, message.data(), message_length);
}

}  // namespace

Watchdog::Watchdog(unsigned deadline_s, int connection) : deadline_s_(deadline_s) {
  watched_connection = connection;
  struct sigaction action {};
  action.sa_handler = look;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  restart("starting");
}

Watchdog::~Watchdog() { alarm(0); }

void Watchdog::ignore_connection() {
  alarm(0);
  watched_connection = -1;
  alarm(deadline_s_);
}

void Watchdog::restart(const std::string& doing) {
  alarm(0);
  const int length = std::snprintf(
      message.data(), message.size(),
      "\nptl_perf: no progress for %u s (--deadline) in: %s. A message was lost or a peer hangs.\n",
      deadline_s_, doing.c_str());
  message_length = std::min(static_cast<std::size_t>(std::max(length, 0)), message.size() - 1);
  seconds_left = static_cast<int>(deadline_s_);
  alarm(watched_connection >= 0 ? 1 : deadline_s_);
}

}  // namespace lintel::perf
