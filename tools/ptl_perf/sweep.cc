// Common parts of the tests of single operations. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/sweep.h"

#include <algorithm>

#include "common/text.h"
#include "ptl_perf/errors.h"
#include "ptl_perf/progress_line.h"
#include "ptl_perf/tests.h"

namespace lintel::perf {

bool wants_metric(const Settings& settings, const std::string& metric) {
  if (!settings.metrics.empty()) {
    return std::find(settings.metrics.begin(), settings.metrics.end(), metric) !=
           settings.metrics.end();
  }
  // With --sizes the lines of the rate would repeat those of the bandwidth.
  if (metric == "rate") return settings.sizes_bytes.empty();
  return metric != "completion";
}

std::vector<std::uint64_t> sizes_of(const Settings& settings, std::uint64_t unit_bytes,
                                    std::uint64_t limit_bytes) {
  std::vector<std::uint64_t> wanted = settings.sizes_bytes;
  if (wanted.empty()) {
    const std::uint64_t last = std::min(settings.max_bytes, limit_bytes);
    std::uint64_t size =
        unit_bytes > 1 ? std::max(settings.min_bytes, unit_bytes) : settings.min_bytes;
    while (size < last) {
      wanted.push_back(size);
      size = size == 0 ? 1 : size * settings.size_factor;
    }
    wanted.push_back(last);
  }
  std::vector<std::uint64_t> sizes;
  for (const std::uint64_t size : wanted) {
    const std::uint64_t whole = size / unit_bytes * unit_bytes;
    if (whole > limit_bytes || (whole == 0 && unit_bytes > 1)) continue;
    if (std::find(sizes.begin(), sizes.end(), whole) == sizes.end()) sizes.push_back(whole);
  }
  if (sizes.empty()) {
    throw Failure(ExitCode::usage,
                  "none of the sizes can be used: this operation takes multiples of " +
                      tools::format_bytes(unit_bytes) + " up to " +
                      tools::format_bytes(limit_bytes));
  }
  return sizes;
}

std::vector<std::uint64_t> rate_sizes_of(const Settings& settings, std::uint64_t unit_bytes,
                                         std::uint64_t limit_bytes) {
  if (!settings.sizes_bytes.empty()) return sizes_of(settings, unit_bytes, limit_bytes);
  return {std::max<std::uint64_t>(8, unit_bytes)};
}

Layout layout_of(const Settings& settings, std::uint64_t in_flight) {
  if (!settings.verify) return {settings.buffers, 0, settings.huge_pages};
  return {std::max(settings.buffers, in_flight), 64, settings.huge_pages};
}

const std::string& own_memory(const Context& context) {
  return context.session.initiator() ? context.settings.initiator_memory
                                     : context.settings.target_memory;
}

void measure_metrics(Context& context, const std::vector<std::uint64_t>& sizes,
                     const std::vector<std::uint64_t>& rate_sizes,
                     void (*measure_size)(Context& context, const std::string& metric,
                                          std::uint64_t size_bytes),
                     bool has_completion) {
  std::vector<std::string> metrics;
  for (const auto& metric : metric_names()) {
    if (metric == "completion" && !has_completion) continue;
    if (wants_metric(context.settings, metric)) metrics.push_back(metric);
  }
  std::size_t points = 0;
  for (const auto& metric : metrics) points += (metric == "rate" ? rate_sizes : sizes).size();
  context.progress.expect(points);
  for (const auto& metric : metrics) {
    for (const std::uint64_t size : metric == "rate" ? rate_sizes : sizes) {
      measure_size(context, metric, size);
    }
  }
}

Point make_point(const Context& context, const std::string& test, const std::string& metric,
                 const std::string& meaning) {
  Point point;
  point.test = test;
  point.metric = metric;
  point.configuration = describe_interface_use(context.settings);
  if (context.settings.has_device_memory())
    point.configuration += ", memory of " + context.settings.initiator_memory + " and " +
                           context.settings.target_memory;
  point.meaning = meaning;
  return point;
}

void set_window(Point& point, const Window& window) {
  point.parameter_name = "in flight";
  point.parameter = window.operations;
}

Window choose_window(const Settings& settings, std::uint64_t size_bytes) {
  std::uint64_t operations = settings.window;
  if (size_bytes > 0) {
    const std::uint64_t by_bytes = std::max<std::uint64_t>(settings.window_bytes / size_bytes, 2);
    operations = std::min(operations, by_bytes);
  }
  // The largest part of the window, at most half, that divides it.
  std::uint64_t chunk = std::max<std::uint64_t>(operations / 2, 1);
  while (operations % chunk != 0) --chunk;
  return {operations, chunk, operations / chunk - 1, chunk};
}

}  // namespace lintel::perf
