// The tests of ptl_perf. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lintel::perf {

struct Context;

/** A test is run by every process of the measurement at the same time. */
struct Test {
  std::string name;
  std::string summary;
  void (*run)(Context& context);
};

const std::vector<Test>& all_tests();

/** The test of that name, or nullptr. */
const Test* find_test(std::string_view name);

/** Returns the words that --metric accepts. */
const std::vector<std::string>& metric_names();

void run_put(Context& context);
void run_get(Context& context);
void run_atomic(Context& context);
void run_fetch_atomic(Context& context);
void run_swap(Context& context);
void run_triggered(Context& context);
void run_match_depth(Context& context);
void run_unexpected_depth(Context& context);
void run_overlap(Context& context);
void run_idle(Context& context);
void run_all_pairs(Context& context);

/** A choice of the above that takes about 5 s: what ptl_perf does without a test. */
void run_short(Context& context);

}  // namespace lintel::perf
