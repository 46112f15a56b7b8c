// Distributions of samples. Set-up path: after the timed loops.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

namespace lintel::perf {

struct Distribution {
  std::uint64_t samples = 0;
  double minimum = 0;
  double lower_quartile = 0;
  double median = 0;
  double upper_quartile = 0;
  double p99 = 0;
  double maximum = 0;
  double mean = 0;  // overall average, not the mean of the samples

  /** A median of so few says little, and an upper percentile nothing. */
  static constexpr std::uint64_t few = 10;
  bool has_few_samples() const { return samples < few; }
};

/** The median of an even number of samples is the mean of the two in the middle. Other percentiles
 *  by nearest rank: the smallest sample that at least so many are not above. */
Distribution summarize(std::vector<float> samples, double overall_average);

}  // namespace lintel::perf
