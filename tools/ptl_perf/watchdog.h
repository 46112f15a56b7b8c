// Ends a process whose measurement makes no progress, or whose peer has ended. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace lintel::perf {

/** One per process. Works also while a timed loop spins in Portals calls, since it is a signal. */
class Watchdog {
 public:
  /** `connection`: a socket that the peer closes when it ends, or -1. It is looked at once a
   *  second. */
  explicit Watchdog(unsigned deadline_s, int connection = -1);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /** Progress was made: the time starts again. `doing` is named if it runs out. */
  void restart(const std::string& doing);

  /** Permits that the peer ends from now on. */
  void ignore_connection();

 private:
  unsigned deadline_s_;
};

}  // namespace lintel::perf
