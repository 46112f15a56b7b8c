// Data that a test needs to run in one process. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ptl_perf/result.h"
#include "ptl_perf/session.h"
#include "ptl_perf/settings.h"
#include "ptl_perf/ticks.h"

namespace lintel::perf {

class ProgressLine;
class Reporter;
class Watchdog;

struct Context {
  Session& session;
  Settings settings;
  Watchdog& watchdog;
  ProgressLine& progress;
  Reporter* reporter;  // rank 0 only
  TickScale scale{};
  std::vector<std::uint64_t>
      stamps{};  // times of the timed loops; allocated and touched beforehand

  Endpoint& endpoint() { return session.endpoint(settings); }

  /** Shows what is being measured and gives it its time. */
  void begin(const std::string& label);

  /** Prints a result, at rank 0. */
  void report(const std::optional<Result>& result);
};

/** One run of a timed loop. */
struct Pass {
  std::uint64_t operations;  // a multiple of batch
  std::uint64_t batch;       // operations between two stamps
  std::uint64_t* stamps;     // room for operations / batch + 1
};

/** Runs one pass in this process; returns how often events were lost. */
using Body = std::function<std::uint64_t(const Pass& pass)>;

/** Collective: finds out how many operations fill the time, warms up, measures, and puts together
 *  what the initiators saw. Result at rank 0. */
std::optional<Result> measure(Context& context, const Point& point, const Body& body);

/** Stamps for loops in which only parts are timed: as if nothing else had happened. */
class PartialClock {
 public:
  explicit PartialClock(const Pass& pass) : next_(pass.stamps), batch_(pass.batch) { *next_ = 0; }

  /** `operations` took `ticks`; batches are a multiple of what is given here. */
  void add(std::uint64_t operations, std::uint64_t ticks) {
    total_ticks_ += ticks;
    in_batch_ += operations;
    if (in_batch_ == batch_) {
      *++next_ = total_ticks_;
      in_batch_ = 0;
    }
  }

 private:
  std::uint64_t* next_;
  std::uint64_t batch_;
  std::uint64_t in_batch_ = 0;
  std::uint64_t total_ticks_ = 0;
};

}  // namespace lintel::perf
