// Ends a process whose measurement makes no progress. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace lintel::perf {

/** One per process. Works also while a timed loop spins in Portals calls, since it is a signal. */
class Watchdog {
 public:
  explicit Watchdog(unsigned deadline_s);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /** Progress was made: the time starts again. `doing` is named if it runs out. */
  void restart(const std::string& doing);

 private:
  unsigned deadline_s_;
};

}  // namespace lintel::perf
