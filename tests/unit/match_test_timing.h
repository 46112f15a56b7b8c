// Median costs of one operation, for tests that compare lists of different lengths.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace lintel::testing {

// Nanoseconds per operation: the median of `rounds` calls of round(), which performs `count`
// operations.
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

// Prevents the compiler from removing an unused result.
template <typename T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

}  // namespace lintel::testing
