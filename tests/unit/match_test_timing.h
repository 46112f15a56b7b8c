// Medians of the cost of one operation, for tests that compare depths of a list.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace lintel::testing {

// Nanoseconds for each of `count` operations: the median of `rounds` runs of round(), which
// performs them.
template <typename Round>
[[nodiscard]] double median_ns(int rounds, int count, Round&& round) {
  std::vector<double> samples;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    round();
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    samples.push_back(taken.count() / count);
  }
  const auto middle = samples.begin() + rounds / 2;
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

// Keeps a result alive that nothing else looks at.
template <typename T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

}  // namespace lintel::testing
