// One line on a terminal that says what is being measured. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace lintel::perf {

/** Writes to standard error, and only if that is a terminal and this process is rank 0. */
class ProgressLine {
 public:
  explicit ProgressLine(bool rank_0);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /** Sets the number of lines of results that follow. */
  void expect(std::size_t points);

  /** Shows that the next line is `label`. */
  void show(const std::string& label);

  /** Takes the line away, for output that stays. */
  void clear();

 private:
  bool active_;
  bool shown_ = false;
  std::size_t expected_ = 0;
  std::size_t begun_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace lintel::perf
