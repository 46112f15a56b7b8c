// One line on a terminal that says what is being measured. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/progress_line.h"

#include <unistd.h>

#include <cstdio>

namespace lintel::perf {

ProgressLine::ProgressLine(bool rank_0) : active_(rank_0 && isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::expect(std::size_t points) {
  expected_ = points;
  begun_ = 0;
}

void ProgressLine::show(const std::string& label) {
  ++begun_;
  if (!active_) return;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  std::fprintf(stderr, "\r\033[K[%zu/%zu] %s ... (%.0f s)", begun_, expected_, label.c_str(),
               elapsed.count());
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace lintel::perf
