// Test kind overlap: gets from a process that computes and makes no Portals calls (spec 1.2:
// progress does not need the application). Message path between the readings of the clock.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "ptl_perf/channel.h"
#include "ptl_perf/context.h"
#include "ptl_perf/progress_line.h"
#include "ptl_perf/sweep.h"
#include "ptl_perf/tests.h"
#include "ptl_perf/verifier.h"

namespace lintel::perf {
namespace {

constexpr const char* meaning =
    "time of one get, from the call of PtlGet until its reply has been reported, begun 5 ms after "
    "the target began to compute; 'in time': the share that ended before it stopped";

constexpr auto head_start = std::chrono::milliseconds(5);

// Arithmetic and nothing else. The clock is a register of the processor, not a system call.
std::uint64_t compute_for(std::uint64_t ticks) {
  const std::uint64_t start = ticks_now();
  std::uint64_t x = start;
  while (ticks_now() - start < ticks) {
    for (int i = 0; i < 1000; ++i) x = x * 6364136223846793005u + 1442695040888963407u;
  }
  return x;
}

void measure_size(Context& context, std::uint64_t size_bytes) {
  Session& session = context.session;
  const Settings& settings = context.settings;
  Endpoint& endpoint = context.endpoint();
  Region region(size_bytes, 1, settings.verify ? 64 : 0, settings.huge_pages);
  Exposure target(endpoint, Events::counting, 0);
  target.expose(region, endpoint.addresses[session.peer_rank()]);
  const bool full = settings.events == Events::full;
  Source sink(endpoint, region, full ? Completion::full : Completion::counting,
              PTL_MD_EVENT_CT_REPLY, 64);
  const Destination from = peer_of(session, endpoint);
  GetVerifier verifier(region, region, session.rank(), session.peer_rank());

  Point point = make_point(context, "overlap", "get", meaning);
  point.configuration += ", target computes for " + std::to_string(settings.compute_ms) + " ms";
  point.size_bytes = size_bytes;
  point.has_rate = false;
  const double compute_ns = settings.compute_ms * 1e6;
  const auto compute_ticks =
      static_cast<std::uint64_t>(compute_ns / context.scale.nanoseconds_per_tick());
  std::uint64_t in_time = 0;
  std::uint64_t number = 0;
  volatile std::uint64_t sink_of_computation = 0;

  session.barrier();
  std::optional<Result> result = sink.with_waiter(settings.wait, [&](auto waiter) {
    return measure(context, point, [&](const Pass& pass) -> std::uint64_t {
      in_time = 0;  // only the last pass, which is the timed one, counts
      PartialClock clock(pass);
      for (std::uint64_t i = pass.operations; i != 0; --i) {
        session.barrier();
        if (!session.initiator()) {
          sink_of_computation = compute_for(compute_ticks);
          continue;
        }
        if (settings.verify) verifier.prepare(number);
        const std::uint64_t begin = ticks_now();
        std::this_thread::sleep_for(head_start);
        const std::uint64_t start = ticks_now();
        require(PtlGet(sink.descriptor(), 0, size_bytes, from.process, from.index, from.match_bits,
                       0, nullptr),
                "PtlGet");
        waiter.next();
        const std::uint64_t end = ticks_now();
        clock.add(1, end - start);
        if (end - begin < compute_ticks) ++in_time;
        if (settings.verify) verifier.inspect_reply(number);
        ++number;
      }
      return 0;
    });
  });
  const auto all_in_time = session.rendezvous().gather_value(in_time);
  if (result) {
    std::uint64_t sum = 0;
    for (const std::uint64_t each : all_in_time) sum += each;
    const auto gets = static_cast<double>(result->operations);
    result->extras.push_back(
        {"in_time_percent", "in time %", 100.0 * static_cast<double>(sum) / gets, 1});
  }
  context.report(result);
  session.barrier();
}

}  // namespace

void run_overlap(Context& context) {
  const Settings original = context.settings;
  // Each get takes the whole time of a computation: few of them.
  if (!context.settings.iterations) {
    const double rounds = context.settings.seconds_per_point * 1000.0 / original.compute_ms;
    context.settings.iterations = static_cast<std::uint64_t>(std::max(rounds, 10.0));
    context.settings.warm_up = original.warm_up.value_or(2);
    context.settings.batch = original.batch.value_or(1);
  }
  std::vector<std::uint64_t> sizes = context.settings.sizes_bytes;
  if (sizes.empty()) sizes = {8, std::uint64_t{64} << 10, std::uint64_t{4} << 20};
  context.progress.expect(sizes.size());
  for (const std::uint64_t size : sizes) measure_size(context, size);
  context.settings = original;
}

}  // namespace lintel::perf
