// A get must not wait for the target to call Portals (spec 1.2: progress is the library's
// business).
//
// The target is pinned to a core of its own and computes there, so that its progress has to come in
// between; the initiator waits on the other core.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "portals_process.h"
#include "probes.h"

namespace probe {

namespace {

constexpr std::size_t length_bytes = 4u << 20;
constexpr int repetitions = 21;

struct Meeting {
  std::atomic<std::uint64_t> target_id;
  std::atomic<bool> computing;
  std::atomic<bool> stop;
  std::atomic<std::uint64_t> steps;  // of the computation: shows that it went on
  double first_ms;
  double milliseconds[repetitions];
  bool computed_throughout;
};

void compute(Meeting& meeting, const Options& options) {
  pin_to(options.cpus[1]);
  std::vector<char> buffer(length_bytes, 'p');
  PortalsProcess process;
  process.expose(buffer.data(), buffer.size());
  meeting.target_id = (std::uint64_t{process.id().phys.nid} << 32) | process.id().phys.pid;
  meeting.computing = true;
  while (!meeting.stop.load(std::memory_order_relaxed))
    meeting.steps.store(meeting.steps.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
}

void get_from_it(Meeting& meeting, const Options& options) {
  pin_to(options.cpus[0]);
  std::vector<char> buffer(length_bytes, 0);
  PortalsProcess process;
  process.bind(buffer.data(), buffer.size());
  wait_until([&] { return meeting.computing.load(); }, "the target");
  ptl_process_t target{};
  target.phys.nid = static_cast<ptl_nid_t>(meeting.target_id >> 32);
  target.phys.pid = static_cast<ptl_pid_t>(meeting.target_id);

  meeting.computed_throughout = true;
  const auto timed_get = [&] {
    // The target's progress thread shall be asleep, as it would be during a long computation.
    const std::uint64_t steps = meeting.steps;
    const double rested = now_s() + 0.005;
    wait_until([&] { return now_s() > rested; }, "the progress thread to rest");
    const double start = now_s();
    process.get(target, length_bytes);
    process.expect(PTL_EVENT_REPLY);
    const double elapsed_ms = (now_s() - start) * 1e3;
    if (meeting.steps == steps || buffer.back() != 'p') meeting.computed_throughout = false;
    return elapsed_ms;
  };
  meeting.first_ms = timed_get();
  for (double& elapsed : meeting.milliseconds) elapsed = timed_get();
  meeting.stop = true;
}

}  // namespace

void measure_computing_get(const Options& options) {
  auto* meeting = static_cast<Meeting*>(allocate_shared(sizeof(Meeting)));
  join_children(fork_children(2, [&](int index) {
    if (index == 0)
      get_from_it(*meeting, options);
    else
      compute(*meeting, options);
  }));
  std::sort(std::begin(meeting->milliseconds), std::end(meeting->milliseconds));
  std::printf(
      "{\"bytes\": %zu, \"first_ms\": %.3f, \"median_ms\": %.3f, \"maximum_ms\": %.3f, "
      "\"target_computed_throughout\": %s}\n",
      length_bytes, meeting->first_ms, meeting->milliseconds[repetitions / 2],
      meeting->milliseconds[repetitions - 1], meeting->computed_throughout ? "true" : "false");
}

}  // namespace probe
