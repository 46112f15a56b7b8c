// Makes a line of the result with a timed loop: number of operations, warm-up, gathering. Set-up
// path.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/text.h"
#include "ptl_perf/context.h"
#include "ptl_perf/progress_line.h"
#include "ptl_perf/report.h"
#include "ptl_perf/watchdog.h"

namespace lintel::perf {
namespace {

constexpr std::uint64_t max_samples = std::uint64_t{1} << 18;
constexpr double sample_target_ns = 2500;  // reading the clock then costs 1 % where it takes 25 ns
constexpr double warm_up_target_ns = 10e6;
constexpr std::uint64_t least_operations = 2;

struct Plan {
  std::uint64_t lead;  // operations right before the timed ones
  std::uint64_t operations;
  std::uint64_t batch;
};

struct Summary {
  double elapsed_ns;
  std::uint64_t losses;
  std::uint64_t samples;
};

std::uint64_t round_up(double value, std::uint64_t multiple) {
  const double multiples = std::ceil(value / static_cast<double>(multiple));
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(multiples), 1) * multiple;
}

struct Trial {
  double elapsed_ns;  // duration of the whole loop
  double timed_ns;    // duration that the result counts; the same, for most tests
};

// One pass that is not part of the result, as rank 0 saw it; the same at all ranks.
Trial try_pass(Context& context, const Point& point, const Body& body, std::uint64_t operations) {
  context.watchdog.restart(point.label());  // each pass has the time of the deadline
  context.session.barrier();
  const std::uint64_t start = ticks_now();
  body({operations, operations, context.stamps.data()});
  const std::uint64_t end = ticks_now();
  const double ns_per_tick = context.scale.nanoseconds_per_tick();
  return context.session.rendezvous().broadcast_value(
      Trial{static_cast<double>(end - start) * ns_per_tick,
            static_cast<double>(context.stamps[1] - context.stamps[0]) * ns_per_tick});
}

std::uint64_t choose_batch(const Settings& settings, const Point& point, double operations,
                           double operation_ns) {
  double wanted = settings.batch ? static_cast<double>(*settings.batch)
                                 : sample_target_ns / std::max(operation_ns, 1.0);
  wanted = std::max(wanted, operations / static_cast<double>(max_samples - 1));
  return round_up(wanted, point.granularity);
}

Plan plan_from_time(Context& context, const Point& point, const Body& body) {
  const Settings& settings = context.settings;
  const double time_ns = settings.seconds_per_point * 1e9;
  const double enough_ns = std::min(warm_up_target_ns, time_ns / 4);

  try_pass(context, point, body, point.granularity);  // pages, connections and caches are cold
  std::uint64_t tried = point.granularity;
  Trial trial = try_pass(context, point, body, tried);
  double least_ns = trial.timed_ns / static_cast<double>(tried);  // time of one operation
  while (trial.elapsed_ns < enough_ns) {
    tried *= 4;
    trial = try_pass(context, point, body, tried);
    least_ns = std::min(least_ns, trial.timed_ns / static_cast<double>(tried));
  }
  const double operations = std::max(time_ns / trial.elapsed_ns * static_cast<double>(tried),
                                     static_cast<double>(least_operations * point.granularity));
  Plan plan{};
  plan.batch = choose_batch(settings, point, operations, least_ns);
  plan.operations = round_up(operations, plan.batch);
  plan.lead = settings.warm_up ? *settings.warm_up : tried;
  return plan;
}

Plan plan_from_iterations(Context& context, const Point& point, const Body& body) {
  const Settings& settings = context.settings;
  const std::uint64_t iterations = *settings.iterations;
  const std::uint64_t warm_up = settings.warm_up.value_or(iterations / 10);
  Plan plan{};
  double operation_ns = sample_target_ns;
  if (warm_up > 0) {
    const std::uint64_t tried = round_up(static_cast<double>(warm_up), point.granularity);
    operation_ns = try_pass(context, point, body, tried).timed_ns / static_cast<double>(tried);
  }
  plan.batch = choose_batch(settings, point, static_cast<double>(iterations), operation_ns);
  // A batch longer than all iterations would lengthen the run.
  plan.batch = std::min(plan.batch, round_up(static_cast<double>(iterations), point.granularity));
  plan.operations = round_up(static_cast<double>(iterations), plan.batch);
  plan.lead = std::min(warm_up, std::uint64_t{16});  // wakes both ends up again
  return plan;
}

Bytes pack(const Summary& summary, const std::vector<float>& samples) {
  Bytes bytes(sizeof summary + samples.size() * sizeof(float));
  std::memcpy(bytes.data(), &summary, sizeof summary);
  if (!samples.empty()) {
    std::memcpy(bytes.data() + sizeof summary, samples.data(), samples.size() * sizeof(float));
  }
  return bytes;
}

Result combine(const Point& point, const Plan& plan, const std::vector<Bytes>& all) {
  Result result;
  result.point = point;
  result.batch = plan.batch;
  std::vector<float> samples;
  double longest_ns = 0;
  double total_ns = 0;
  std::uint64_t initiators = 0;
  std::uint64_t losses = 0;
  for (unsigned rank = 0; rank < all.size(); ++rank) {
    const Bytes& bytes = all[rank];
    Summary summary;
    std::memcpy(&summary, bytes.data(), sizeof summary);
    losses += summary.losses;
    if (summary.samples == 0) continue;
    const std::size_t before = samples.size();
    samples.resize(before + summary.samples);
    std::memcpy(samples.data() + before, bytes.data() + sizeof summary,
                summary.samples * sizeof(float));
    if (point.by_initiator) {
      std::vector<float> own(samples.begin() + static_cast<std::ptrdiff_t>(before), samples.end());
      result.by_initiator.emplace_back(
          rank,
          summarize(std::move(own), summary.elapsed_ns / (static_cast<double>(plan.operations) *
                                                          point.units_per_operation)));
    }
    longest_ns = std::max(longest_ns, summary.elapsed_ns);
    total_ns += summary.elapsed_ns;
    ++initiators;
  }
  result.operations = plan.operations * initiators;
  const double units = static_cast<double>(plan.operations) * point.units_per_operation;
  result.times_ns =
      summarize(std::move(samples), total_ns / (units * static_cast<double>(initiators)));
  const double rate = units * static_cast<double>(initiators) / (longest_ns * 1e-9);
  if (point.has_rate) result.rate_per_s = rate;
  if (point.has_bandwidth && point.size_bytes) {
    result.bandwidth_bytes_per_s = rate * static_cast<double>(*point.size_bytes);
  }
  if (losses > 0) {
    result.remarks.push_back(
        "the target's event queue overflowed " + std::to_string(losses) +
        " times (spec 3.13.5): it took events more slowly than the messages came; the data all "
        "arrived, some events were overwritten");
  }
  return result;
}

}  // namespace

std::string Point::label() const {
  std::string text = test + ' ' + metric;
  if (size_bytes) text += ' ' + tools::format_bytes(*size_bytes);
  if (!parameter_name.empty()) text += ", " + parameter_name + ' ' + std::to_string(parameter);
  return text;
}

void Context::begin(const std::string& label) {
  watchdog.restart(label);
  progress.show(label);
}

void Context::report(const std::optional<Result>& result) {
  progress.clear();
  if (reporter && result) reporter->add(*result);
}

std::optional<Result> measure(Context& context, const Point& point, const Body& body) {
  context.begin(point.label());
  context.stamps.resize(max_samples + 1);

  const Plan plan = context.settings.iterations ? plan_from_iterations(context, point, body)
                                                : plan_from_time(context, point, body);
  context.watchdog.restart(point.label());
  context.session.barrier();
  if (plan.lead > 0) {
    // The first operations after a barrier meet a peer that is still waking up. No barrier after
    // this: the timed pass follows at once.
    const std::uint64_t lead = round_up(static_cast<double>(plan.lead), point.granularity);
    body({lead, lead, context.stamps.data()});
  }
  context.watchdog.restart(point.label());
  const std::uint64_t losses = body({plan.operations, plan.batch, context.stamps.data()});

  Summary summary{0, losses, 0};
  std::vector<float> samples;
  if (context.session.initiator()) {
    const double ns_per_tick = context.scale.nanoseconds_per_tick();
    const std::uint64_t count = plan.operations / plan.batch;
    const double sample_units = static_cast<double>(plan.batch) * point.units_per_operation;
    samples.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto ticks = static_cast<double>(context.stamps[i + 1] - context.stamps[i]);
      samples.push_back(static_cast<float>(ticks * ns_per_tick / sample_units));
    }
    summary.elapsed_ns =
        static_cast<double>(context.stamps[count] - context.stamps[0]) * ns_per_tick;
    summary.samples = count;
  }
  const std::vector<Bytes> all = context.session.rendezvous().gather(pack(summary, samples));
  if (context.session.rank() != 0) return std::nullopt;
  return combine(point, plan, all);
}

}  // namespace lintel::perf
