// Test kind idle: processor time of a process that has an open interface and does nothing, and of
// one that waits for an event that does not come. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "ptl_perf/channel.h"
#include "ptl_perf/context.h"
#include "ptl_perf/progress_line.h"
#include "ptl_perf/sweep.h"
#include "ptl_perf/tests.h"

namespace lintel::perf {
namespace {

constexpr const char* meaning =
    "processor time of all threads of the process per elapsed time (100 % is one core), system "
    "calls included; measured from 0.2 s after it fell idle. Of several processes the busiest. "
    "MiB before, open: resident memory before PtlInit, and after PtlNIInit";

constexpr double mib = 1024.0 * 1024.0;

struct Usage {
  double processor_s = 0;
  double switches = 0;  // context switches

  static Usage now() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return {seconds(usage.ru_utime) + seconds(usage.ru_stime),
            static_cast<double>(usage.ru_nvcsw + usage.ru_nivcsw)};
  }
};

struct IdleCost {
  double processor_percent = 0;
  double switches_per_s = 0;
  double resident_before_bytes = 0;  // before PtlInit
  double resident_bytes = 0;         // after PtlNIInit
};

// Looks on for a while, without Portals calls.
IdleCost watch(const Context& context) {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const Usage before = Usage::now();
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(context.settings.idle_seconds));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  const Usage after = Usage::now();
  return {100.0 * (after.processor_s - before.processor_s) / elapsed.count(),
          (after.switches - before.switches) / elapsed.count(),
          static_cast<double>(context.session.resident_bytes_before_start()),
          static_cast<double>(context.session.resident_bytes_after_start())};
}

void report_busiest(Context& context, const std::string& state, const IdleCost& own) {
  const auto all = context.session.rendezvous().gather_value(own);
  if (context.session.rank() != 0) return;
  IdleCost busiest;
  for (const IdleCost& each : all) {
    busiest.processor_percent = std::max(busiest.processor_percent, each.processor_percent);
    busiest.switches_per_s = std::max(busiest.switches_per_s, each.switches_per_s);
    busiest.resident_before_bytes =
        std::max(busiest.resident_before_bytes, each.resident_before_bytes);
    busiest.resident_bytes = std::max(busiest.resident_bytes, each.resident_bytes);
  }
  Result result;
  result.point = make_point(context, "idle", state, meaning);
  result.point.configuration =
      std::to_string(context.settings.idle_seconds).substr(0, 4) + " s each";
  result.operations = 1;
  result.extras = {
      {"processor_percent", "processor %", busiest.processor_percent, 3},
      {"context_switches_per_s", "switches/s", busiest.switches_per_s, 1},
      {"resident_before_init_mib", "MiB before", busiest.resident_before_bytes / mib, 2},
      {"resident_mib", "MiB open", busiest.resident_bytes / mib, 2},
  };
  context.report(result);
}

// The target waits in `wait_for_it` while a thread beside it looks on; then the initiator ends the
// wait with a put.
template <class WaitForIt>
IdleCost watch_waiting(Context& context, EndMarker& marker, WaitForIt wait_for_it) {
  Session& session = context.session;
  IdleCost cost;
  session.barrier();
  if (session.initiator()) {
    session.barrier();  // the target has looked on long enough
    marker.send();
  } else {
    std::thread observer([&] {
      cost = watch(context);
      session.barrier();
    });
    wait_for_it();
    observer.join();
  }
  session.barrier();
  return cost;
}

void idle_without_calls(Context& context) {
  context.begin("idle without calls");
  context.session.barrier();
  const IdleCost cost = watch(context);
  report_busiest(context, "no calls", cost);
}

void idle_in_wait(Context& context, Events events) {
  const char* state = events == Events::full ? "in PtlEQWait" : "in PtlCTWait";
  context.begin(std::string("idle ") + state);
  Endpoint& endpoint = context.endpoint();
  Region nothing(0, 1, 0);
  Exposure arrivals(endpoint, events, 64);
  arrivals.expose(nothing, endpoint.addresses[context.session.peer_rank()]);
  EndMarker marker(endpoint, peer_of(context.session, endpoint));
  const IdleCost cost = arrivals.with_waiter(Wait::blocking, [&](auto waiter) {
    return watch_waiting(context, marker, [&] { waiter.next(); });
  });
  report_busiest(context, state, cost);
  context.session.barrier();
}

}  // namespace

void run_idle(Context& context) {
  context.endpoint();
  context.progress.expect(3);
  idle_without_calls(context);
  idle_in_wait(context, Events::full);
  idle_in_wait(context, Events::counting);
}

}  // namespace lintel::perf
