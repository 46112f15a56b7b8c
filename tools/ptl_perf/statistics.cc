// Distributions of samples. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/statistics.h"

#include <algorithm>
#include <cmath>

namespace lintel::perf {
namespace {

double percentile(const std::vector<float>& sorted, double fraction) {
  const auto rank = std::ceil(fraction * static_cast<double>(sorted.size()));
  const auto index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

double middle(const std::vector<float>& sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 != 0 ? sorted[half] : (double{sorted[half - 1]} + sorted[half]) / 2;
}

}  // namespace

Distribution summarize(std::vector<float> samples, double overall_average) {
  Distribution result;
  result.samples = samples.size();
  result.mean = overall_average;
  if (samples.empty()) return result;
  std::sort(samples.begin(), samples.end());
  result.minimum = samples.front();
  result.lower_quartile = percentile(samples, 0.25);
  result.median = middle(samples);
  result.upper_quartile = percentile(samples, 0.75);
  result.p99 = percentile(samples, 0.99);
  result.maximum = samples.back();
  return result;
}

}  // namespace lintel::perf
